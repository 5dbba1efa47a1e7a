// A program that uses everything, as lowered code does: without looking at results on the way. It
// is run once for each driver call, which is made to fail.
#ifndef AOTC_SCENARIO_H
#define AOTC_SCENARIO_H

#include <stdbool.h>

#include "fake_driver.h"

// The controls of the fake driver; opens it.
fake_driver *scenario_driver(void);

// Launches a kernel of one i32 parameter as lowered code does: 4 blocks of 128 threads, on a stream
// of its own, and waits for it.
void scenario_launch(void *module, const char *name);

// Calls every mgpu* function; with `is_new_driver` also what drivers for CUDA 11.4 lack. Nothing
// may have failed on this thread before; afterwards its status says whether something did.
void scenario_run_program(bool is_new_driver);

// Calls the aotc_* functions as a program's main does, up to the first that fails.
void scenario_run_harness(void);

// What weights with a budget alone use: test_cuda_weights_budget.c.
#define SCENARIO_PAGE_CALLS                                                                        \
  " cuMemGetAllocationGranularity cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease "  \
  "cuMemMap cuMemSetAccess cuMemUnmap"

// What calls of entries alone use: test_cuda_entry_graphs.c fails it.
#define SCENARIO_GRAPH_CALLS                                                                       \
  " cuFuncGetParamInfo cuStreamBeginCapture_v2 cuStreamGetCaptureInfo_v3 cuStreamEndCapture "      \
  "cuGraphInstantiateWithFlags cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch "                   \
  "cuGraphExecDestroy cuGraphDestroy"

// Runs both with no failure and checks that they work and call every symbol except `but` (separated
// by spaces); then runs each again and again in fresh processes, failing another driver call with
// `result` each time, and checks what comes of it.
void scenario_check_symbols(bool is_new_driver, const char *but);
void scenario_fail_every_call(bool is_new_driver, int result);

#endif // AOTC_SCENARIO_H
