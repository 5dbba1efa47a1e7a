// A program that uses everything, as lowered code does: without checking results in between. It is
// run once for each driver call, which is made to fail.
#ifndef AOTC_SCENARIO_H
#define AOTC_SCENARIO_H

#include <stdbool.h>

#include "fake_driver.h"

// Loads the fake driver and returns its controls.
fake_driver *scenario_driver(void);

// Launches a kernel with one i32 parameter as lowered code does, with 4 blocks of 128 threads, on
// its own stream, and waits for it.
void scenario_launch(void *module, const char *name);

// Calls every mgpu* function; with `is_new_driver` also those that need more than CUDA 11.4. The
// thread must not have a failure; afterwards its status shows whether a call failed.
void scenario_run_program(bool is_new_driver);

// Calls the aotc_* functions like a program's main, until the first failure.
void scenario_run_harness(void);

// The calls only made for weights with a budget: test_cuda_weights_budget.c.
#define SCENARIO_PAGE_CALLS                                                                        \
  " cuMemGetAllocationGranularity cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease "  \
  "cuMemMap cuMemSetAccess cuMemUnmap"

// The calls only made for entry calls: test_cuda_entry_graphs.c makes them fail.
#define SCENARIO_GRAPH_CALLS                                                                       \
  " cuFuncGetParamInfo cuStreamBeginCapture_v2 cuStreamGetCaptureInfo_v3 cuStreamEndCapture "      \
  "cuGraphInstantiateWithFlags cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch "                   \
  "cuGraphExecDestroy cuGraphDestroy"

// Runs both without failures and checks that they succeed and call every symbol except `but`
// (separated by spaces). Then reruns each in fresh processes, once for each driver call, which
// fails with `result`, and checks the outcome.
void scenario_check_symbols(bool is_new_driver, const char *but);
void scenario_fail_every_call(bool is_new_driver, int result);

#endif // AOTC_SCENARIO_H
