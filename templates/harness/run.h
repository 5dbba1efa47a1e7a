// The calls: memory on the device, descriptors, the entry, its times, and what it left behind.
#ifndef AOTC_HARNESS_RUN_H
#define AOTC_HARNESS_RUN_H

#include "plan.h"

typedef struct harness_time {
  double device_milliseconds; // between two events on the stream; on the cpu, a clock
  double wall_milliseconds;   // from before the call until the device is done
} harness_time;

typedef struct harness_outcome {
  aotc_device device;
  harness_array *arrays; // one for each target: what is there after the first call. Data is NULL
                         // for the arguments that are neither written nor asked for
  harness_time first;
  harness_time *times; // of the `repeat` timed calls
} harness_outcome;

// Whether the report has a line for the target: results, and arguments that the entry writes or
// that the command line asks for.
bool harness_is_reported(const harness_options *options, int32_t target);

// Chooses the device, places the inputs and calls the entry. Returns the exit code, having said on
// stderr what went wrong. The outcome is freed by the caller either way.
int harness_run(harness_plan *plan, harness_outcome *out_outcome);
void harness_outcome_free(harness_outcome *outcome, const aotc_entry *entry);

#endif
