// Calls of entries on a fake driver, with launches as graphs.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

#define MOST 48

// What the entry launches, and what was run.
static int the_count = 6;
static int the_first;              // parameter of the first two launches, plus their index
static _Thread_local int the_base; // parameter of the other launches, likewise
static int the_grid = 1;           // of the last launch
static bool the_memory_is_freed, the_stream_is_filled, the_call_fails;
static int the_runs[2 * MOST];
static int the_run_count;

static void launch(int parameter, int grid, void *stream) {
  void *parameters[] = {&parameter};
  mgpuLaunchKernel(mgpuModuleGetFunction(entries_module(), "add"), grid, 1, 1, 32, 1, 1, 0, stream,
                   parameters, NULL, 1);
}

static int parameter(int i) {
  return (i < 2 ? the_first : the_base) + i;
}

static void call_many(void **values) {
  (void)values;
  void *stream = mgpuStreamCreate();
  void *memory = the_memory_is_freed ? mgpuMemAlloc(64, stream, 0) : NULL;
  for (int i = 0; i < the_count; ++i) {
    if (the_stream_is_filled && i == the_count - 1) {
      mgpuMemset32(memory, 0, 4, stream);
    }
    launch(parameter(i), i + 1 < the_count ? 1 : the_grid, stream);
  }
  if (the_call_fails) {
    aotc_assertion_failed("a is b");
  }
  mgpuMemFree(memory, stream);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static const aotc_entry entry_many = {.name = "many", .call = call_many};

static int launched(const char *kernel, void **parameters) {
  (void)kernel;
  return *(int *)parameters[0];
}

static void run(int parameter) {
  if (the_run_count < 2 * MOST) {
    the_runs[the_run_count++] = parameter;
  }
}

// Calls the entry, and checks that its kernels ran in order, with these parameters.
static void call(void *stream, int first) {
  the_first = first;
  the_run_count = 0;
  CHECK_INT(AOTC_OK, stream != NULL ? aotc_entry_enqueue(&entry_many, NULL, stream)
                                    : aotc_entry_call(&entry_many, NULL));
  if (stream != NULL) {
    CHECK_INT(AOTC_OK, aotc_stream_wait(stream));
  }
  CHECK_INT(the_count, the_run_count);
  for (int i = 0; i < the_count && i < the_run_count; ++i) {
    CHECK_INT(parameter(i), the_runs[i]);
  }
}

static fake_driver *start_without_results(void) {
  fake_driver *driver = scenario_driver();
  driver->has_parameters = true;
  entries_load("cuda");
  return driver;
}

static fake_driver *start(void) {
  fake_driver *driver = start_without_results();
  fake_work_late(launched, run);
  return driver;
}

// The number of driver calls that launch or update a graph.
static int submissions(const fake_driver *driver, int since) {
  return entries_count_calls(driver, since, "cuLaunchKernel") +
         entries_count_calls(driver, since, "cuGraphLaunch");
}

static int updates(const fake_driver *driver, int since) {
  return entries_count_calls(driver, since, "cuGraphExecKernelNodeSetParams_v2");
}

static void second_call_is_one_submission(void) {
  fake_driver *driver = start();
  void *stream = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  void *const streams[] = {NULL, stream};
  for (int i = 0; i < 2; ++i) {
    call(streams[i], 10); // by the second stream it is known that the entry has many launches
    call(streams[i], 10); // creates the graph
    int since = driver->call_count;
    call(streams[i], 10);
    CHECK_INT(1, submissions(driver, since));
    CHECK_INT(0, updates(driver, since));
    call(streams[i], 20); // other pointers
    CHECK_INT(2, submissions(driver, since));
    CHECK_INT(2, updates(driver, since));
    the_grid = 7; // another size
    call(streams[i], 20);
    CHECK_INT(3, updates(driver, since));
    CHECK_INT(7, (int)driver->last_launch.grid[0]);
    the_grid = 1;
    the_base = 100; // all but two differ, so launching them one by one is cheaper
    since = driver->call_count;
    call(streams[i], 20);
    CHECK_INT(the_count, entries_count_calls(driver, since, "cuLaunchKernel"));
    CHECK_INT(0, updates(driver, since));
    the_base = 0;
  }
  CHECK_INT(4, driver->live_graphs);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_graphs);
  CHECK_TEXT("", driver->violation);
}

// As with an allocator that alternates between addresses in a loop.
static void pointers_by_turns_have_a_graph_each(void) {
  fake_driver *driver = start();
  for (int round = 0; round < 4; ++round) {
    int since = driver->call_count;
    for (int turn = 0; turn < 3; ++turn) {
      the_base = 100 * turn;
      call(NULL, the_base);
    }
    if (round > 2) {
      CHECK_INT(3, submissions(driver, since));
      CHECK_INT(0, updates(driver, since));
    }
  }
  CHECK_INT(2 * 3, driver->live_graphs);
  // New launches that do not recur get no graph, and unused graphs are evicted.
  for (int turn = 3; turn < 20; ++turn) {
    the_base = 100 * turn;
    call(NULL, the_base);
  }
  CHECK(driver->live_graphs <= 2 * 3);
  int since = driver->call_count;
  for (int i = 0; i < 3; ++i) {
    call(NULL, the_base);
  }
  CHECK_INT(3, entries_count_calls(driver, since, "cuGraphLaunch"));
  the_base = 0;
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_graphs);
  CHECK_TEXT("", driver->violation);
}

// Most of the pointers differ from those in all existing graphs.
static void *call_by_turns(void *unused) {
  unsigned seed = (unsigned)(uintptr_t)&unused;
  for (int i = 0; i < 300; ++i) {
    the_base = 100 * (rand_r(&seed) % 6);
    CHECK_INT(AOTC_OK, aotc_entry_call(&entry_many, NULL));
  }
  return NULL;
}

static void threads_share_graphs(void) {
  fake_driver *driver = start_without_results();
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    CHECK_INT(0, pthread_create(&threads[i], NULL, call_by_turns, NULL));
  }
  for (int i = 0; i < 4; ++i) {
    CHECK_INT(0, pthread_join(threads[i], NULL));
  }
  CHECK(driver->graph_launch_count > 0);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_graphs);
  CHECK_TEXT("", driver->violation);
}

static void other_kernels_are_another_graph(void) {
  fake_driver *driver = start();
  for (int round = 0; round < 3; ++round) {
    for (the_count = 4; the_count < 8; ++the_count) {
      call(NULL, 1);
    }
  }
  CHECK_INT(2 * 4, driver->live_graphs);
  CHECK_INT(3 * 4 - 1, driver->graph_launch_count);
}

static void graphs_are_bounded(void) {
  fake_driver *driver = start();
  void *streams[80];
  the_count = 4;
  for (int i = 0; i < 80; ++i) {
    CHECK_INT(AOTC_OK, aotc_stream_open(&streams[i]));
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 80; ++i) {
      call(streams[i], i);
    }
  }
  CHECK(driver->live_graphs <= 2 * 64);
  CHECK_TEXT("", driver->violation);
}

static void small_entries_are_launched_at_once(void) {
  fake_driver *driver = start();
  the_count = 3;
  for (int i = 0; i < 3; ++i) {
    call(NULL, i);
  }
  CHECK_INT(0, driver->live_graphs);
  CHECK_INT(0, entries_count_calls(driver, 0, "cuFuncGetParamInfo"));
}

// The stream's other work stays in order, and memory is freed after the kernels.
static void order_is_kept(void) {
  fake_driver *driver = start();
  the_memory_is_freed = the_stream_is_filled = true;
  for (int i = 0; i < 3; ++i) {
    int since = driver->call_count;
    call(NULL, i);
    const char *expected[] = {"cuMemAllocFromPoolAsync",
                              i == 0 ? "cuLaunchKernel" : "cuGraphLaunch", "cuMemsetD32Async",
                              "cuLaunchKernel", "cuMemFreeAsync"};
    size_t found = 0;
    for (int k = since; k < driver->call_count && found < 5; ++k) {
      found += strcmp(driver->log[k], expected[found]) == 0 ? 1 : 0;
    }
    CHECK_INT(5, (int)found);
  }
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

static void captured_streams_are_left_alone(void) {
  fake_driver *driver = start();
  void *stream = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  call(NULL, 1);
  driver->is_capturing = true;
  int since = driver->call_count;
  CHECK_INT(AOTC_OK, aotc_entry_enqueue(&entry_many, NULL, stream));
  CHECK_INT(the_count, entries_count_calls(driver, since, "cuLaunchKernel"));
  CHECK_INT(0, driver->graph_launch_count);
  CHECK_TEXT("", driver->violation);
}

static void failed_call_launches_nothing(void) {
  fake_driver *driver = start();
  the_memory_is_freed = true;
  call(NULL, 1);
  call(NULL, 1);
  the_call_fails = true;
  int since = driver->call_count;
  CHECK_INT(AOTC_ASSERTION_FAILED, aotc_entry_call(&entry_many, NULL));
  CHECK_INT(0, submissions(driver, since));
  CHECK_INT(0, driver->live_memory);
  the_call_fails = false;
  call(NULL, 2);
}

static void graphs_may_be_turned_off(void) {
  setenv("AOTC_GRAPHS", "0", 1);
  fake_driver *driver = start();
  for (int i = 0; i < 3; ++i) {
    call(NULL, i);
  }
  CHECK_INT(3 * the_count, entries_count_calls(driver, 0, "cuLaunchKernel"));
  CHECK_INT(0, driver->live_graphs);
}

static void other_settings_are_refused(void) {
  setenv("AOTC_GRAPHS", "some", 1);
  start();
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry_many, NULL));
  CHECK_CONTAINS(aotc_error_message(), "AOTC_GRAPHS is 'some'; expected 0 or 1");
}

static void unloaded_kernels_are_in_no_graph(void) {
  fake_driver *driver = start();
  call(NULL, 1);
  call(NULL, 1);
  CHECK_INT(2, driver->live_graphs);
  mgpuModuleUnload(entries_module());
  CHECK_INT(0, driver->live_graphs);
  CHECK_TEXT("", driver->violation);
}

// If the driver fails to use a graph, the launches are made without it.
static void every_call_for_graphs_fails(void) {
  static const char *const symbols[] = {
      "cuFuncGetParamInfo", "cuStreamBeginCapture_v2",     "cuStreamGetCaptureInfo_v3",
      "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2",
      "cuGraphLaunch",      "cuStreamIsCapturing",
  };
  fake_driver *driver = start();
  call(NULL, 1);
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
    check_note(symbols[i]);
    driver->fail_symbol = symbols[i];
    driver->fail_result = CUDA_ERROR_UNKNOWN;
    driver->failed_symbol = NULL;
    driver->fail_at = 1;
    call(NULL, 2);
    call(NULL, 3); // the graph may only have been created here, to be updated
    call(NULL, 4);
    CHECK(driver->failed_symbol != NULL);
    CHECK_INT(AOTC_OK, aotc_status_get());
    CHECK_INT(AOTC_OK, aotc_unload());
    CHECK_INT(0, driver->live_graphs);
  }
  check_note(NULL);
  CHECK_TEXT("", driver->violation);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(second_call_is_one_submission),
      CHECK_TEST(pointers_by_turns_have_a_graph_each),
      CHECK_TEST(threads_share_graphs),
      CHECK_TEST(other_kernels_are_another_graph),
      CHECK_TEST(graphs_are_bounded),
      CHECK_TEST(small_entries_are_launched_at_once),
      CHECK_TEST(order_is_kept),
      CHECK_TEST(captured_streams_are_left_alone),
      CHECK_TEST(failed_call_launches_nothing),
      CHECK_TEST(graphs_may_be_turned_off),
      CHECK_TEST(other_settings_are_refused),
      CHECK_TEST(unloaded_kernels_are_in_no_graph),
      CHECK_TEST(every_call_for_graphs_fails),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
