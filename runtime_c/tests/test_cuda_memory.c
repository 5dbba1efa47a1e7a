// Memory, registrations and tensor maps on a fake driver that has everything.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static char image_90[] = FAKE_IMAGE("90", "add");

// Memory

static bool was_called(const fake_driver *driver, int since, const char *symbol) {
  for (int i = since; i < driver->call_count; ++i) {
    if (strcmp(driver->log[i], symbol) == 0) {
      return true;
    }
  }
  return false;
}

static void memory_kinds_use_their_calls(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *stream = mgpuStreamCreate();
  int since = driver->call_count;
  void *plain = mgpuMemAlloc(100, NULL, 0);
  CHECK(was_called(driver, since, "cuMemAlloc_v2"));
  CHECK_INT(100, driver->last_allocation_bytes);
  since = driver->call_count;
  void *ordered = mgpuMemAlloc(200, stream, 0);
  CHECK(was_called(driver, since, "cuMemAllocFromPoolAsync"));
  CHECK_INT(200, driver->last_allocation_bytes);
  CHECK(driver->kept_bytes == UINT64_MAX); // synchronizing does not release the memory
  since = driver->call_count;
  void *shared = mgpuMemAlloc(0, stream, 1);
  CHECK(was_called(driver, since, "cuMemAllocManaged"));
  CHECK_INT(1, driver->last_allocation_bytes);
  CHECK(!was_called(driver, since, "cuMemPrefetchAsync"));
  // Pages that kernels would fault on are prefetched.
  void *pages = mgpuMemAlloc(1 << 16, stream, 1);
  CHECK(was_called(driver, since, "cuMemPrefetchAsync"));
  mgpuMemFree(pages, NULL);
  driver->is_capturing = true;
  mgpuMemFree(mgpuMemAlloc(1 << 16, stream, 1), NULL); // not in a capture, which would be lost
  driver->is_capturing = false;

  since = driver->call_count;
  mgpuMemFree(plain, stream); // not stream-ordered: freed when the device is done
  CHECK(was_called(driver, since, "cuMemFree_v2"));
  CHECK(!was_called(driver, since, "cuMemFreeAsync"));
  since = driver->call_count;
  mgpuMemFree(ordered, stream);
  CHECK(was_called(driver, since, "cuMemFreeAsync"));
  mgpuMemFree(shared, NULL);
  ordered = mgpuMemAlloc(200, stream, 0);
  mgpuMemFree(ordered, NULL); // the fake driver checks that its context was synchronized
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

static void memory_of_a_graph_is_freed_in_it(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  driver->is_capturing = true; // the first use is in a capture, and creates the context's pool
  void *stream = mgpuStreamCreate();
  // The driver does not know the memory yet.
  void *captured = mgpuMemAlloc(200, stream, 0);
  int since = driver->call_count;
  mgpuMemFree(captured, stream);
  CHECK(was_called(driver, since, "cuMemFreeAsync"));
  CHECK_NO_FAILURE();
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  // Outside of a capture that is an error.
  void *unknown = mgpuMemAlloc(200, stream, 0);
  driver->is_capturing = false;
  mgpuMemFree(unknown, stream);
  CHECK_FAILED(AOTC_DRIVER_FAILED, "cuPointerGetAttribute failed with CUDA_ERROR_INVALID_VALUE");
}

// Prefetching is optional.
static void shared_memory_that_cannot_be_brought(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  driver->fail_symbol = "cuMemPrefetchAsync";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_INVALID_DEVICE;
  void *shared = mgpuMemAlloc(1 << 20, NULL, 1);
  CHECK(shared != NULL);
  CHECK_NO_FAILURE();
  mgpuMemFree(shared, NULL);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

// Host code continues with stand-ins for managed memory that could not be allocated.
static void failed_host_shared_memory_is_the_hosts(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  driver->fail_symbol = "cuMemAllocManaged";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
  char *failing = mgpuMemAlloc(100, NULL, 1);
  CHECK_INT(AOTC_OUT_OF_MEMORY, aotc_status_get());
  char *later = mgpuMemAlloc(0, NULL, 1);
  CHECK(failing != NULL && later != NULL && failing != later);
  for (int i = 0; failing != NULL && i < 100; ++i) {
    CHECK_INT(0, failing[i]);
    failing[i] = 1;
  }
  CHECK(mgpuMemAlloc(100, NULL, 0) == NULL); // device memory is not used by host code
  mgpuMemFree(failing, NULL);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "mgpuMemAlloc: cuMemAllocManaged failed with");
  mgpuMemFree(later, NULL); // still known after the failure is cleared
  CHECK_NO_FAILURE();
  CHECK(!was_called(driver, 0, "cuMemFree_v2"));
  CHECK_TEXT("", driver->violation);
}

static void device_without_memory_pools(void) {
  fake_driver *driver = scenario_driver();
  driver->has_memory_pools = false;
  setenv("AOTC_DEVICE", "cuda", 1);
  void *stream = mgpuStreamCreate();
  mgpuMemFree(mgpuMemAlloc(16, stream, 0), stream);
  CHECK(was_called(driver, 0, "cuMemAlloc_v2"));
  CHECK(was_called(driver, 0, "cuMemFree_v2"));
  CHECK_NO_FAILURE();
}

static void fills_and_copies_count_elements(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  mgpuModuleLoad(image_90, sizeof(image_90));
  uint16_t halves[4] = {0};
  uint32_t words[4] = {0};
  mgpuMemset16(halves, 0xabcd, 3, NULL);
  CHECK_INT(0xabcd, halves[2]);
  CHECK_INT(0, halves[3]);
  mgpuMemset32(words, 0x12345678, 3, NULL);
  CHECK_INT(0x12345678, words[2]);
  CHECK_INT(0, words[3]);
  mgpuMemcpy(words, halves, 2, NULL);
  CHECK_INT(0x1234abcd, words[0]);
  mgpuMemset16(NULL, 1, 0, NULL);
  mgpuMemset32(NULL, 1, 0, NULL);
  mgpuMemcpy(NULL, NULL, 0, NULL);
  CHECK_NO_FAILURE();
  mgpuMemcpy(NULL, words, 4, NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuMemcpy: 4 bytes to NULL");
  mgpuMemset32(NULL, 1, 4, NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuMemset32");
}

// Lowered IR passes the 16 bits in a register with an undefined upper half. The call with a
// different type is the purpose of the test.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
static void fill_ignores_the_upper_half_of_its_register(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  uint16_t halves[2] = {0};
  void (*raw)(void *, uint32_t, size_t, void *) = NULL;
  void (*typed)(void *, uint16_t, size_t, void *) = mgpuMemset16;
  memcpy(&raw, &typed, sizeof(raw));
  raw(halves, 0xffff1234u, 1, NULL);
  CHECK_INT(0x1234, halves[0]);
  CHECK_INT(0, halves[1]);
  CHECK_NO_FAILURE();
  CHECK_TEXT("", scenario_driver()->violation);
}

typedef struct memref2 {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} memref2;

// Checks the range that a memref over `buffer` registers, as first byte and size; -1 for none.
static void check_registered(int64_t first, int64_t bytes, char *buffer, memref2 memref,
                             int64_t element_bytes) {
  fake_driver *driver = scenario_driver();
  driver->last_register_bytes = 0;
  mgpuMemHostRegisterMemRef(2, &memref, element_bytes);
  CHECK_INT(bytes, driver->last_register_bytes);
  CHECK_INT(bytes > 0 ? 1 : 0, driver->live_registrations);
  if (bytes > 0) {
    CHECK_INT(first, (int64_t)(driver->last_register_start - (uintptr_t)buffer));
  }
  mgpuMemHostUnregisterMemRef(2, &memref, element_bytes);
  CHECK_INT(0, driver->live_registrations);
  CHECK_NO_FAILURE();
  CHECK_TEXT("", driver->violation);
}

static void strided_memrefs_register_what_they_reach(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static char b[4096];
  // dense, 4 x 8 floats
  check_registered(0, 128, b, (memref2){b, b, 0, {4, 8}, {8, 1}}, 4);
  // an offset
  check_registered(64, 128, b, (memref2){b, b, 16, {4, 8}, {8, 1}}, 4);
  // rows with gaps: 3 rows of stride 100, the last one 8 long
  check_registered(0, 4 * 208, b, (memref2){b, b, 0, {3, 8}, {100, 1}}, 4);
  // transposed
  check_registered(0, 128, b, (memref2){b, b, 0, {8, 4}, {1, 8}}, 4);
  // a reversed row: from element 7 down to 0
  check_registered(0, 32, b, (memref2){b, b, 7, {1, 8}, {8, -1}}, 4);
  // rows reversed, columns in order: 4 rows from element 24
  check_registered(0, 128, b, (memref2){b, b, 24, {4, 8}, {-8, 1}}, 4);
  // one row with stride 0
  check_registered(0, 32, b, (memref2){b, b, 0, {1000, 8}, {0, 1}}, 4);
  // one element, whatever the strides
  check_registered(8, 8, b, (memref2){b, b, 1, {1, 1}, {INT64_MAX, INT64_MIN}}, 8);
  // no elements
  check_registered(0, 0, b, (memref2){b, b, 0, {0, 8}, {8, 1}}, 4);
  check_registered(0, 0, b, (memref2){b, b, 0, {4, 0}, {8, 1}}, 4);
  // an empty one may have no memory
  check_registered(0, 0, b, (memref2){NULL, NULL, 0, {0, 0}, {1, 1}}, 4);
}

static void rank_0_registers_one_element(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static double value;
  struct {
    void *allocated, *aligned;
    int64_t offset;
  } memref = {&value, &value, 0};
  mgpuMemHostRegisterMemRef(0, &memref, 8);
  CHECK_INT(8, scenario_driver()->last_register_bytes);
  CHECK_INT(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP,
            scenario_driver()->last_register_flags);
  mgpuMemHostUnregisterMemRef(0, &memref, 8);
  CHECK_INT(0, scenario_driver()->live_registrations);
}

static void senseless_memrefs_are_refused(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static char b[64];
  memref2 negative = {b, b, 0, {-1, 8}, {8, 1}};
  mgpuMemHostRegisterMemRef(2, &negative, 4);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuMemHostRegisterMemRef: the memref's sizes and strides");
  memref2 huge = {b, b, 0, {INT64_MAX, 8}, {INT64_MAX, 1}};
  mgpuMemHostRegisterMemRef(2, &huge, 4);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "make no sense");
  mgpuMemHostRegister(b, UINT64_MAX);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "do not fit into the address space");
  mgpuMemHostRegister(NULL, 8);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "8 bytes at NULL");
}

static void reachable_memory_is_left_alone(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *managed = mgpuMemAlloc(64, NULL, 1);
  mgpuMemHostRegister(managed, 64);
  mgpuMemHostUnregister(managed);
  CHECK_INT(0, driver->live_registrations);
  CHECK(!was_called(driver, 0, "cuMemHostRegister_v2"));
  CHECK(!was_called(driver, 0, "cuMemHostUnregister"));
  CHECK_NO_FAILURE();
}

static void registrations_nest(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static char b[256];
  mgpuMemHostRegister(b, 256);
  mgpuMemHostRegister(b, 256);
  mgpuMemHostRegister(b + 64, 64); // part of it
  CHECK_INT(1, driver->live_registrations);
  mgpuMemHostUnregister(b);
  mgpuMemHostUnregister(b);
  CHECK_INT(1, driver->live_registrations); // the part is in use
  mgpuMemHostUnregister(b + 64);
  CHECK_INT(0, driver->live_registrations);
  mgpuMemHostRegister(b, 0);
  CHECK_NO_FAILURE();
  mgpuMemHostUnregister(b);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "is not registered");
}

// -------------------------------------------------------------------------------------------------
// Tensor maps

static void memref_becomes_a_tensor_map(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static uint16_t elements[4096];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[3], strides[3];
  } memref = {elements, elements, 32, {5, 16, 24}, {1024, 32, 1}};
  int64_t box[] = {1, 8, 12};
  CUtensorMap *map =
      mgpuTensorMapEncodeTiledMemref(3, &memref, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 0, 2, 3, 1, box);
  CHECK_NO_FAILURE();
  CHECK(map != NULL && map->opaque[0] == (uintptr_t)&elements[32]); // the fake's device memory
  CHECK(driver->tensor_map_address == &elements[32]);
  CHECK_INT(3, driver->tensor_map_rank);
  CHECK_INT(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, driver->tensor_map_data_type);
  CHECK_INT(0, driver->tensor_map_interleave);
  CHECK_INT(2, driver->tensor_map_swizzle);
  CHECK_INT(3, driver->tensor_map_l2_promotion);
  CHECK_INT(1, driver->tensor_map_oob_fill);
  static const int sizes[] = {24, 16, 5};
  static const int strides[] = {64, 2048, 0};
  static const int boxes[] = {12, 8, 1};
  for (int i = 0; i < 3; ++i) {
    CHECK_INT(sizes[i], driver->tensor_map_sizes[i]);
    CHECK_INT(strides[i], driver->tensor_map_strides[i]);
    CHECK_INT(boxes[i], driver->tensor_map_box_sizes[i]);
    CHECK_INT(1, driver->tensor_map_element_strides[i]);
  }
}

static void tensor_maps_share_slabs(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {elements, elements, 0, {64}, {1}};
  CUtensorMap *maps[600];
  for (int64_t i = 0; i < 600; ++i) {
    int64_t box = i + 1;
    maps[i] = mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0,
                                             0, &box);
  }
  CHECK_INT(2, driver->live_memory); // 512 maps per slab
  for (int64_t i = 0; i < 600; ++i) {
    CHECK_INT(64000 + i + 1, maps[i]->opaque[1]);
    CHECK_INT(0, (uintptr_t)maps[i] % 128 - (uintptr_t)maps[i < 512 ? 0 : 512] % 128);
    int64_t box = i + 1;
    CHECK(maps[i] == mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0,
                                                    0, 0, 0, &box));
  }
  CHECK_INT(2, driver->live_memory);
  CHECK_INT(600, driver->tensor_map_count); // each was encoded once
  CHECK_NO_FAILURE();
}

static void senseless_tensor_maps_are_refused(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {elements, elements, 0, {32}, {2}};
  int64_t box = 8;
  CHECK(mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0,
                                       &box) == NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "innermost stride is 2, it must be 1");
  mgpuTensorMapEncodeTiledMemref(6, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0, &box);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "rank 6; it must be 1 to 5");
  memref.strides[0] = 1;
  mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 0, 0, 0, 0,
                                 &box);
  CHECK_FAILED(AOTC_UNSUPPORTED, "tensor map data type 13");
  memref.offset = INT64_MAX / 2;
  mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0, &box);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "the memref's offset is 4611686018427387903");
  memref.offset = 0;
  box = 0;
  mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0, &box);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "dimension 0 of the box has size 0");
}

static void images_become_a_tensor_map_of_windows(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static _Alignas(16) uint16_t elements[3 * 10 * 12 * 64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[4], strides[4];
  } memref = {elements, elements, 64, {2, 9, 11, 64}, {7680, 768, 64, 1}};
  const int64_t box[] = {128, 64};
  const int64_t lower[] = {0, -1};
  const int64_t upper[] = {-2, -3};
  const int64_t steps[] = {2, 3};
  void *map = aotc_tensor_map_encode_im2col(4, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 2, 0,
                                            box, lower, upper, steps);
  CHECK_NO_FAILURE();
  CHECK(map != NULL && driver->tensor_map_address == &elements[64]);
  CHECK_INT(4, driver->tensor_map_rank);
  CHECK_INT(3, driver->tensor_map_swizzle);
  CHECK_INT(2, driver->tensor_map_l2_promotion);
  static const int sizes[] = {64, 11, 9, 2};
  static const int strides[] = {128, 1536, 15360, 0};
  static const int between[] = {1, 3, 2, 1};
  for (int i = 0; i < 4; ++i) {
    CHECK_INT(sizes[i], driver->tensor_map_sizes[i]);
    CHECK_INT(strides[i], driver->tensor_map_strides[i]);
    CHECK_INT(between[i], driver->tensor_map_element_strides[i]);
  }
  CHECK_INT(64, driver->tensor_map_box_sizes[0]);
  CHECK_INT(128, driver->tensor_map_box_sizes[1]);
  for (int i = 0; i < 2; ++i) {
    CHECK_INT(lower[1 - i], driver->tensor_map_lower_corner[i]);
    CHECK_INT(upper[1 - i], driver->tensor_map_upper_corner[i]);
  }
  // Maps that only differ in a corner are distinct.
  const int64_t other[] = {-2, -2};
  CHECK(map != aotc_tensor_map_encode_im2col(4, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 2,
                                             0, box, lower, other, steps));
  CHECK(map == aotc_tensor_map_encode_im2col(4, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 2,
                                             0, box, lower, upper, steps));
  CHECK_INT(2, driver->tensor_map_count);
  CHECK(aotc_tensor_map_encode_im2col(2, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 2, 0, box,
                                      lower, upper, steps) == NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "rank 2; it must be 3 to 5");
  static const struct {
    int64_t upper, step;
    const char *cause;
  } refused[] = {
      {-129, 1, "64 channels of 128 pixels, swizzle 3; a corner is farther from the image"},
      {-2, 9, "; a step between pixels is 8 at most"},
  };
  for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); ++i) {
    driver->fail_symbol = "cuTensorMapEncodeIm2col";
    driver->fail_at = 1;
    driver->fail_result = CUDA_ERROR_INVALID_VALUE;
    const int64_t far[] = {0, refused[i].upper};
    const int64_t wide[] = {1, refused[i].step};
    CHECK(aotc_tensor_map_encode_im2col(4, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 2, 0,
                                        box, lower, far, wide) == NULL);
    CHECK_FAILED(AOTC_DRIVER_FAILED, refused[i].cause);
  }
}

static void what_the_driver_refuses_is_explained(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static _Alignas(16) uint16_t elements[4096];
  static const struct {
    int64_t offset, stride, rows, columns, swizzle;
    const char *cause;
  } refused[] = {
      {1, 64, 8, 64, 0, "swizzle 0; the address must be a multiple of 16"},
      {0, 63, 8, 56, 0, "; every stride but the innermost must be a multiple of 16 bytes"},
      {0, 64, 257, 64, 0, "; a box has 256 elements at most in each dimension"},
      {0, 64, 8, 60, 0, "; the box's innermost size must be a multiple of 16 bytes"},
      {0, 64, 8, 64, 2, "swizzle 2; the box's innermost size is more bytes than the swizzle has"},
      {0, 64, 8, 64, 3, "innermost box size 64, swizzle 3"},
  };
  for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); ++i) {
    struct {
      void *allocated, *aligned;
      int64_t offset, sizes[2], strides[2];
    } memref = {elements, elements, refused[i].offset, {300, 63}, {refused[i].stride, 1}};
    int64_t box[] = {refused[i].rows, refused[i].columns};
    driver->fail_symbol = "cuTensorMapEncodeTiled";
    driver->fail_at = 1;
    driver->fail_result = CUDA_ERROR_INVALID_VALUE;
    CHECK(mgpuTensorMapEncodeTiledMemref(2, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0,
                                         refused[i].swizzle, 0, 0, box) == NULL);
    CHECK_FAILED(AOTC_DRIVER_FAILED, refused[i].cause);
  }
}

static void plain_tensor_map_reaches_the_driver(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  const uint64_t sizes[] = {8, 8};
  const uint64_t strides[] = {32};
  const uint32_t box[] = {4, 2};
  const uint32_t element_strides[] = {1, 2};
  // Not aligned as the driver requires.
  static char space[sizeof(CUtensorMap) + 8];
  mgpuTensorMapEncodeTiled(space + 8, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, elements, sizes, strides,
                           box, element_strides, 0, 1, 2, 1);
  CHECK_NO_FAILURE();
  uint64_t address = 0;
  memcpy(&address, space + 8, sizeof(address));
  CHECK(address == (uintptr_t)elements);
  CHECK_INT(32, driver->tensor_map_strides[0]);
  CHECK_INT(2, driver->tensor_map_element_strides[1]);
  CHECK_INT(1, driver->tensor_map_swizzle);
  CHECK_INT(2, driver->tensor_map_l2_promotion);
  CHECK_INT(1, driver->tensor_map_oob_fill);
  CHECK_TEXT("", driver->violation);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(memory_kinds_use_their_calls),
      CHECK_TEST(failed_host_shared_memory_is_the_hosts),
      CHECK_TEST(shared_memory_that_cannot_be_brought),
      CHECK_TEST(memory_of_a_graph_is_freed_in_it),
      CHECK_TEST(device_without_memory_pools),
      CHECK_TEST(fills_and_copies_count_elements),
      CHECK_TEST(fill_ignores_the_upper_half_of_its_register),
      CHECK_TEST(strided_memrefs_register_what_they_reach),
      CHECK_TEST(rank_0_registers_one_element),
      CHECK_TEST(senseless_memrefs_are_refused),
      CHECK_TEST(reachable_memory_is_left_alone),
      CHECK_TEST(registrations_nest),
      CHECK_TEST(memref_becomes_a_tensor_map),
      CHECK_TEST(tensor_maps_share_slabs),
      CHECK_TEST(senseless_tensor_maps_are_refused),
      CHECK_TEST(images_become_a_tensor_map_of_windows),
      CHECK_TEST(what_the_driver_refuses_is_explained),
      CHECK_TEST(plain_tensor_map_reaches_the_driver),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
