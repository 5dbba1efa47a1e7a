// The runtime on a fake driver with only the functions of CUDA 11.4.
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static char image[] = FAKE_IMAGE("90", "add");

static void every_symbol_is_called(void) {
  scenario_check_symbols(
      false, "cuCtxGetId cuLibraryLoadData cuLibraryGetModule cuLibraryUnload "
             "cuLaunchKernelEx cuMemPoolCreate cuMemPoolDestroy "
             "cuMemPoolSetAttribute cuMemAllocFromPoolAsync cuMemFreeAsync cuMemPrefetchAsync "
             "cuTensorMapEncodeTiled cuTensorMapEncodeIm2col cuCtxSynchronize cuGetErrorName "
             "cuPointerGetAttribute cuStreamGetCtx cuStreamIsCapturing "
             "cuStreamDestroy_v2 "
             "cuGetErrorString" SCENARIO_GRAPH_CALLS SCENARIO_PAGE_CALLS);
}

static void every_call_fails_unknown(void) {
  scenario_fail_every_call(false, CUDA_ERROR_UNKNOWN);
}

static void *get_function(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  return mgpuModuleGetFunction(mgpuModuleLoad(image, sizeof(image)), "add");
}

static void clusters_are_unsupported(void) {
  int value = 0;
  void *parameters[] = {&value};
  void *function = get_function();
  mgpuLaunchClusterKernel(function, 2, 1, 1, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
  CHECK_CONTAINS(aotc_error_message(), "kernel 'add'");
  CHECK_CONTAINS(aotc_error_message(), "cluster 2 x 1 x 1");
  CHECK_FAILED(AOTC_UNSUPPORTED, "clusters need a driver for CUDA 11.8 or newer");
  CHECK_INT(0, scenario_driver()->launch_count);
  mgpuLaunchClusterKernel(function, 1, 1, 1, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
  CHECK_NO_FAILURE();
  CHECK_INT(1, scenario_driver()->launch_count);
}

static void tensor_maps_are_unsupported(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {elements, elements, 0, {64}, {1}};
  int64_t box = 8;
  CHECK(mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0,
                                       &box) == NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED,
               "mgpuTensorMapEncodeTiledMemref: TMA descriptors need a driver for "
               "CUDA 12.0 or newer");
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[3], strides[3];
  } image_of_pixels = {elements, elements, 0, {1, 4, 16}, {64, 16, 1}};
  const int64_t im2col_box[] = {4, 16};
  const int64_t zero = 0;
  const int64_t one = 1;
  CHECK(aotc_tensor_map_encode_im2col(3, &image_of_pixels, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0,
                                      0, im2col_box, &zero, &zero, &one) == NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, "(it has no cuTensorMapEncodeIm2col)");
}

static void stream_memory_is_plain(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  void *stream = mgpuStreamCreate();
  void *memory = mgpuMemAlloc(16, stream, 0);
  mgpuMemset32(memory, 3, 4, stream);
  mgpuMemFree(memory, stream);
  CHECK_NO_FAILURE();
  CHECK_INT(0, scenario_driver()->live_memory);
}

static void modules_are_loaded_for_each_context(void) {
  int value = 0;
  void *parameters[] = {&value};
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  void *function = get_function();
  for (int32_t ordinal = 0; ordinal < 2; ++ordinal) {
    mgpuSetDefaultDevice(ordinal);
    mgpuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL, 1);
  }
  CHECK_NO_FAILURE();
  CHECK_INT(2, driver->launch_count);
  CHECK_INT(2, driver->live_modules);
  CHECK_TEXT("", driver->violation);
}

static void modules_are_unloaded_where_another_does_not_fit(void) {
  static char both[] = FAKE_IMAGE("75,90", "add");
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  driver->capability[0] = 75;
  setenv("AOTC_DEVICE", "cuda", 1);
  // The module registered last is loaded first: `both` fits the first GPU, `image` does not.
  mgpuModuleLoad(image, sizeof(image));
  mgpuModuleLoad(both, sizeof(both));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
  CHECK_INT(2, driver->live_modules);
  CHECK_INT(1, driver->primary_references);
  CHECK_TEXT("", driver->violation);
}

static void entries_and_unload(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  for (int round = 0; round < 2; ++round) {
    float a[] = {1, 2, 3, 4}, c[] = {0, 0, 0, 7};
    CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(a), vector_at(c)));
    CHECK(c[2] == 6 && c[3] == 7);
    CHECK_INT(1, driver->live_modules);
    CHECK_INT(2, driver->live_memory);
    CHECK_INT(AOTC_OK, aotc_unload());
    CHECK_INT(0, driver->live_modules);
    CHECK_INT(0, driver->live_memory);
    CHECK_INT(0, driver->primary_references);
  }
  CHECK_TEXT("", driver->violation);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(every_symbol_is_called),
      CHECK_TEST(every_call_fails_unknown),
      CHECK_TEST(clusters_are_unsupported),
      CHECK_TEST(tensor_maps_are_unsupported),
      CHECK_TEST(stream_memory_is_plain),
      CHECK_TEST(modules_are_loaded_for_each_context),
      CHECK_TEST(entries_and_unload),
      CHECK_TEST(modules_are_unloaded_where_another_does_not_fit),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
