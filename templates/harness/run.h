// Calls an entry: allocates device memory, fills descriptors, measures times, collects the outputs.
#ifndef AOTC_HARNESS_RUN_H
#define AOTC_HARNESS_RUN_H

#include "plan.h"

typedef struct harness_time {
  double device_milliseconds; // between two events on the stream; on the CPU, by a clock
  double wall_milliseconds;   // from before the call until the device is done
} harness_time;

typedef struct harness_outcome {
  aotc_device device;
  harness_array *arrays; // one for each target: the contents after the first call. Data is NULL
                         // for arguments that are neither written nor requested
  harness_time first;
  harness_time *times; // of the `repeat` timed calls
} harness_outcome;

// Whether the report has a line for the target: it does for results, and for arguments that the
// entry writes or the command line requests.
bool harness_is_reported(const harness_options *options, int32_t target);

// Selects the device, copies the inputs and calls the entry. Prints errors on stderr and returns
// the exit code. The caller frees the outcome in either case.
int harness_run(harness_plan *plan, harness_outcome *out_outcome);
void harness_outcome_free(harness_outcome *outcome, const aotc_entry *entry);

#endif
