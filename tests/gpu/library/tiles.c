// A library whose entry reads its arguments through TMA descriptors, made in each call.
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"
#include "tma_schedule.h"

enum { ROWS = 64, DEPTH = 8, COLUMNS = 128, REPLAYS = 20 };
enum { X = ROWS * DEPTH, Y = DEPTH * COLUMNS, Z = ROWS * COLUMNS };

static float x[X], y[Y], z[Z];

static void check(int32_t status) {
  EXPECT(status == 0, "status %d: %s", status, tma_schedule_last_error());
}

// Device memory as the driver aligns it: TMA wants 16 bytes.
static float *allocate(size_t count) {
  CUdeviceptr memory = 0;
  MUST(cu.allocate(&memory, count * sizeof(float)));
  return (float *)(uintptr_t)memory;
}

static CUdeviceptr address(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}

static void fill(uint32_t seed) {
  fill_numbers(x, X, seed);
  fill_numbers(y, Y, seed + 1);
  memset(z, 0xff, sizeof(z));
}

static void expect_product(const char *what) {
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLUMNS; ++j) {
      float sum = 0;
      for (int k = 0; k < DEPTH; ++k) {
        sum += x[i * DEPTH + k] * y[k * COLUMNS + j];
      }
      float got = z[i * COLUMNS + j];
      EXPECT(got == sum, "%s: %g at (%d, %d), not %g", what, got, i, j, sum);
    }
  }
}

// Host memory, at any address: what the GPU is given is a copy.
static void run_host(void) {
  for (uint32_t call = 0; call < 3; ++call) {
    fill(call);
    check(tma_schedule(x, y, z));
    expect_product("from host memory");
  }
}

static void capture(CUstreamCaptureMode mode, const char *name) {
  CUstream stream = driver_make_stream();
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  float *on_device[] = {allocate(X), allocate(Y), allocate(Z)};
  // The descriptors are made and copied within the capture, but are no part of it.
  MUST(cu.capture_begin(stream, mode));
  check(tma_schedule_async(on_device[0], on_device[1], on_device[2], stream));
  MUST(cu.capture_end(stream, &graph));
  MUST(cu.graph_instantiate(&executable, graph, 0));
  for (uint32_t replay = 0; replay < REPLAYS; ++replay) {
    fill(replay + 100);
    MUST(cu.copy(address(on_device[0]), address(x), sizeof(x)));
    MUST(cu.copy(address(on_device[1]), address(y), sizeof(y)));
    MUST(cu.copy(address(on_device[2]), address(z), sizeof(z)));
    MUST(cu.graph_launch(executable, stream));
    MUST(cu.stream_wait(stream));
    MUST(cu.copy(address(z), address(on_device[2]), sizeof(z)));
    expect_product(name);
  }
  MUST(cu.graph_exec_destroy(executable));
  MUST(cu.graph_destroy(graph));
  for (int i = 0; i < 3; ++i) {
    MUST(cu.free(address(on_device[i])));
  }
  MUST(cu.stream_destroy(stream));
}

static void run_capture(void) {
  driver_use_primary();
  capture(CU_STREAM_CAPTURE_MODE_GLOBAL, "global");
  capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread-local");
  capture(CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed");
}

// The driver refuses such a descriptor: its call and the reason are in the message.
static void run_misaligned(void) {
  driver_use_primary();
  float *memory = allocate(X + 1), *right = allocate(Y), *result = allocate(Z);
  int32_t status = tma_schedule(memory + 1, right, result);
  const char *message = tma_schedule_last_error();
  EXPECT(status != 0, "an address that is no multiple of 16 bytes is taken");
  EXPECT(strstr(message, "cuTensorMapEncodeTiled") != NULL &&
             strstr(message, "the address must be a multiple of 16") != NULL,
         "the message is: %s", message);
  // And the library goes on.
  run_host();
  MUST(cu.free(address(memory)));
  MUST(cu.free(address(right)));
  MUST(cu.free(address(result)));
}

const library_case tile_cases[] = {
    {"tiles", "host memory through TMA descriptors", run_host, false, false},
    {"tiles-capture", "descriptors within a capture, as the first use", run_capture, false, false},
    {"tiles-misaligned", "memory that TMA cannot read", run_misaligned, false, false},
    {NULL, NULL, NULL, false, false},
};
