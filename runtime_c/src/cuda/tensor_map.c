// TMA descriptors: encoded by the driver, stored in device memory.
#include <stdlib.h>
#include <string.h>

#include "../weight_pages.h"
#include "aotc_runtime.h"
#include "libcuda.h"
#include "mlir_cuda_runtime.h"

#define MAX_RANK AOTC_RT_CUDA_MAX_RANK
#define SLAB_BYTES ((size_t)64 * 1024)

typedef aotc_rt_cuda_encoding encoding;

// Bytes per element; 0 for types smaller than a byte, which no memref has, and for unknown types.
static uint64_t element_bytes(int64_t data_type) {
  switch (data_type) {
  case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    return 1;
  case CU_TENSOR_MAP_DATA_TYPE_UINT16:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
  case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    return 2;
  case CU_TENSOR_MAP_DATA_TYPE_UINT32:
  case CU_TENSOR_MAP_DATA_TYPE_INT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
  case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
    return 4;
  case CU_TENSOR_MAP_DATA_TYPE_UINT64:
  case CU_TENSOR_MAP_DATA_TYPE_INT64:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    return 8;
  default:
    return 0;
  }
}

// Whether the box's innermost row, of `bytes`, is wider than the swizzle span.
static bool is_too_wide(int64_t swizzle, uint64_t bytes) {
  static const uint64_t widest[] = {
      [CU_TENSOR_MAP_SWIZZLE_NONE] = UINT64_MAX,
      [CU_TENSOR_MAP_SWIZZLE_32B] = 32,
      [CU_TENSOR_MAP_SWIZZLE_64B] = 64,
      [CU_TENSOR_MAP_SWIZZLE_128B] = 128,
  };
  bool is_known = swizzle >= 0 && swizzle <= CU_TENSOR_MAP_SWIZZLE_128B;
  return is_known && bytes > widest[swizzle];
}

// The driver only reports «invalid value». This names the requirement of cuTensorMapEncodeTiled
// that is violated; "" if none is found.
static const char *likely_cause(const encoding *e) {
  if ((uintptr_t)e->address % 16 != 0) {
    return "; the address must be a multiple of 16";
  }
  for (int64_t i = 0; i + 1 < e->rank; ++i) {
    if (e->strides[i] % 16 != 0) {
      return "; every stride but the innermost must be a multiple of 16 bytes";
    }
  }
  for (int64_t i = 0; i < e->rank; ++i) {
    if (e->box_sizes[i] > 256) {
      return "; a box has 256 elements at most in each dimension";
    }
  }
  uint64_t row_bytes = e->box_sizes[0] * element_bytes(e->data_type);
  if (e->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && row_bytes % 16 != 0) {
    return "; the box's innermost size must be a multiple of 16 bytes";
  }
  return is_too_wide(e->swizzle, row_bytes)
             ? "; the box's innermost size is more bytes than the swizzle has"
             : "";
}

// The scope's driver may be another table that wraps CUDA's, like that of a trace.
static bool is_of_cuda(const aotc_rt_scope *scope) {
  return scope->driver != NULL && scope->driver->context_open == aotc_rt_cuda_context_open;
}

// The same for cuTensorMapEncodeIm2col.
static const char *likely_cause_im2col(const encoding *e) {
  // By rank: the bits of the corners and offsets share 32 bits of an instruction.
  static const int32_t lowest[] = {[3] = -32768, [4] = -128, [5] = -16};
  for (int64_t i = 0; i + 2 < e->rank; ++i) {
    int32_t low = lowest[e->rank];
    int32_t high = -(low + 1);
    if (e->lower_corner[i] < low || e->lower_corner[i] > high || e->upper_corner[i] < low ||
        e->upper_corner[i] > high) {
      return "; a corner is farther from the image than im2col's can be";
    }
  }
  for (int64_t i = 1; i < e->rank; ++i) {
    if (e->element_strides[i] > 8) {
      return "; a step between pixels is 8 at most";
    }
  }
  return likely_cause(e);
}

static bool encode_im2col(const encoding *e, CUtensorMap *out_map) {
  if (aotc_rt_libcuda.tensor_map_encode_im2col == NULL) {
    aotc_rt_fail(AOTC_UNSUPPORTED,
                 "TMA descriptors need a driver for CUDA 12.0 or newer (it has no "
                 "cuTensorMapEncodeIm2col)");
    return false;
  }
  return CUDA_TRY(tensor_map_encode_im2col,
                  (out_map, (CUtensorMapDataType)e->data_type, (uint32_t)e->rank, e->address,
                   e->sizes, e->strides, e->lower_corner, e->upper_corner, e->box_sizes[0],
                   e->box_sizes[1], e->element_strides, (CUtensorMapInterleave)e->interleave,
                   (CUtensorMapSwizzle)e->swizzle, (CUtensorMapL2promotion)e->l2_promotion,
                   (CUtensorMapFloatOOBfill)e->oob_fill),
                  "data type %d, rank %u, address %p, %u channels of %u pixels, swizzle %d%s",
                  (int)e->data_type, (unsigned)e->rank, e->address, e->box_sizes[0],
                  e->box_sizes[1], (int)e->swizzle, likely_cause_im2col(e));
}

static bool encode(const aotc_rt_scope *scope, const encoding *e, CUtensorMap *out_map) {
  if (!is_of_cuda(scope)) {
    aotc_rt_fail(AOTC_UNSUPPORTED, "the CPU device has no TMA descriptors; they need a GPU from "
                                   "sm_90 on");
    return false;
  }
  if (e->is_im2col) {
    return encode_im2col(e, out_map);
  }
  if (aotc_rt_libcuda.tensor_map_encode_tiled == NULL) {
    aotc_rt_fail(AOTC_UNSUPPORTED,
                 "TMA descriptors need a driver for CUDA 12.0 or newer (it has no "
                 "cuTensorMapEncodeTiled)");
    return false;
  }
  return CUDA_TRY(
      tensor_map_encode_tiled,
      (out_map, (CUtensorMapDataType)e->data_type, (uint32_t)e->rank, e->address, e->sizes,
       e->strides, e->box_sizes, e->element_strides, (CUtensorMapInterleave)e->interleave,
       (CUtensorMapSwizzle)e->swizzle, (CUtensorMapL2promotion)e->l2_promotion,
       (CUtensorMapFloatOOBfill)e->oob_fill),
      "data type %d, rank %u, address %p, innermost size %llu, innermost box size %u, swizzle %d%s",
      (int)e->data_type, (unsigned)e->rank, e->address, (unsigned long long)e->sizes[0],
      e->box_sizes[0], (int)e->swizzle, likely_cause(e));
}

// An encoding with the fields that are copied from the arguments unchanged, in every entry point.
static encoding encoding_with(int64_t data_type, int64_t interleave, int64_t swizzle,
                              int64_t l2_promotion, int64_t oob_fill) {
  return (encoding){
      .data_type = data_type,
      .interleave = interleave,
      .swizzle = swizzle,
      .l2_promotion = l2_promotion,
      .oob_fill = oob_fill,
  };
}

void mgpuTensorMapEncodeTiled(void *out_tensor_map, int32_t data_type, uint32_t rank, void *address,
                              const uint64_t *sizes, const uint64_t *strides,
                              const uint32_t *box_sizes, const uint32_t *element_strides,
                              int32_t interleave, int32_t swizzle, int32_t l2_promotion,
                              int32_t oob_fill) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuTensorMapEncodeTiled")) {
    return;
  }
  if (rank < 1 || rank > MAX_RANK || out_tensor_map == NULL || sizes == NULL ||
      (strides == NULL && rank > 1) || box_sizes == NULL || element_strides == NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "rank %u; it must be 1 to 5, and every array must be there",
                 rank);
  } else if (scope.context != NULL && aotc_rt_weight_pages_have(scope.context, address)) {
    aotc_rt_fail(AOTC_UNSUPPORTED, "a TMA descriptor in host memory, of a weight under a budget");
  } else if (aotc_rt_make_current(&scope)) {
    encoding e = encoding_with(data_type, interleave, swizzle, l2_promotion, oob_fill);
    e.rank = rank;
    e.address = address;
    memcpy(e.sizes, sizes, rank * sizeof(*sizes));
    if (rank > 1) {
      memcpy(e.strides, strides, (rank - 1) * sizeof(*strides));
    }
    memcpy(e.box_sizes, box_sizes, rank * sizeof(*box_sizes));
    memcpy(e.element_strides, element_strides, rank * sizeof(*element_strides));
    // The caller's map may not have the 64-byte alignment that the driver needs.
    CUtensorMap map;
    if (encode(&scope, &e, &map)) {
      memcpy(out_tensor_map, &map, sizeof(map));
    }
  }
  aotc_rt_end(&scope);
}

// Converts a memref's sizes and strides, outermost first and in elements, to CUDA's, with a stride
// of 1 between the elements of the box.
static bool encoding_of(uint32_t rank, const aotc_rt_memref *memref, encoding *e) {
  uint64_t bytes = element_bytes(e->data_type);
  if (bytes == 0) {
    aotc_rt_fail(AOTC_UNSUPPORTED, "elements of tensor map data type %lld are no memref's",
                 (long long)e->data_type);
    return false;
  }
  const int64_t *sizes = memref->sizes_and_strides;
  const int64_t *strides = sizes + rank;
  if (strides[rank - 1] != 1) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "the memref's innermost stride is %lld, it must be 1",
                 (long long)strides[rank - 1]);
    return false;
  }
  for (uint32_t i = 0; i < rank; ++i) {
    uint32_t outer = rank - 1 - i;
    if (sizes[outer] < 1 || strides[outer] < 0) {
      aotc_rt_fail(AOTC_INVALID_ARGUMENT, "dimension %u of the memref has size %lld, stride %lld",
                   outer, (long long)sizes[outer], (long long)strides[outer]);
      return false;
    }
    e->sizes[i] = (uint64_t)sizes[outer];
    e->element_strides[i] = 1;
    if (i > 0 && __builtin_mul_overflow((uint64_t)strides[outer], bytes, &e->strides[i - 1])) {
      aotc_rt_fail(AOTC_INVALID_ARGUMENT, "dimension %u of the memref has stride %lld", outer,
                   (long long)strides[outer]);
      return false;
    }
  }
  int64_t offset = 0;
  if (__builtin_mul_overflow(memref->offset, (int64_t)bytes, &offset)) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "the memref's offset is %lld", (long long)memref->offset);
    return false;
  }
  e->rank = rank;
  e->address = (char *)memref->aligned + offset;
  return true;
}

// Converts a box of `count` sizes, outermost first, to CUDA's order.
static bool box_of(uint32_t count, const int64_t *box_sizes, encoding *e) {
  for (uint32_t i = 0; i < count; ++i) {
    int64_t size = box_sizes[count - 1 - i];
    if (size < 1 || size > UINT32_MAX) {
      aotc_rt_fail(AOTC_INVALID_ARGUMENT, "dimension %u of the box has size %lld", count - 1 - i,
                   (long long)size);
      return false;
    }
    e->box_sizes[i] = (uint32_t)size;
  }
  return true;
}

// -------------------------------------------------------------------------------------------------
// Where they stay

static size_t bucket_of(const encoding *e) {
  uint64_t words[sizeof(*e) / sizeof(uint64_t)];
  memcpy(words, e, sizeof(words));
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    hash = (hash ^ words[i]) * 1099511628211u; // FNV-1a on words
    hash ^= hash >> 29;                        // mixes in the upper half of each word
  }
  return (size_t)(hash ^ (hash >> 32)) % AOTC_RT_CUDA_TENSOR_MAP_BUCKETS;
}

static aotc_rt_cuda_tensor_map **bucket_for(const aotc_rt_scope *scope, const encoding *e) {
  return &((aotc_rt_cuda_context *)scope->context)->tensor_maps[bucket_of(e)];
}

// 0 if there is none yet.
static CUdeviceptr find_locked(const aotc_rt_scope *scope, const encoding *e) {
  const aotc_rt_cuda_tensor_map *entry = *bucket_for(scope, e);
  while (entry != NULL && memcmp(&entry->encoding, e, sizeof(*e)) != 0) {
    entry = entry->next;
  }
  return entry != NULL ? entry->address : 0;
}

// Full slabs stay in use.
static bool add_slab_locked(aotc_rt_cuda_context *context) {
  aotc_rt_cuda_slab *slab = malloc(sizeof(*slab));
  if (slab == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for TMA descriptors");
    return false;
  }
  *slab = (aotc_rt_cuda_slab){.next = context->slabs, .bytes_left = SLAB_BYTES};
  if (!CUDA_TRY(mem_alloc, (&slab->address, SLAB_BYTES), "memory for TMA descriptors")) {
    free(slab);
    return false;
  }
  context->slabs = slab;
  return true;
}

void aotc_rt_cuda_context_empty(aotc_rt_context *common, bool is_current) {
  aotc_rt_cuda_context *context = (aotc_rt_cuda_context *)common;
  while (context->slabs != NULL) {
    aotc_rt_cuda_slab *slab = context->slabs;
    context->slabs = slab->next;
    if (is_current) {
      CUDA_TRY_RELEASE(mem_free, (slab->address), "memory of TMA descriptors");
    }
    free(slab);
  }
  for (size_t i = 0; i < AOTC_RT_CUDA_TENSOR_MAP_BUCKETS; ++i) {
    while (context->tensor_maps[i] != NULL) {
      aotc_rt_cuda_tensor_map *entry = context->tensor_maps[i];
      context->tensor_maps[i] = entry->next;
      free(entry);
    }
  }
}

// Copies the map to device memory, on a stream of the pool, because the caller's may be capturing.
static bool upload_locked(aotc_rt_scope *scope, aotc_rt_cuda_tensor_map *entry) {
  aotc_rt_cuda_context *context = (aotc_rt_cuda_context *)scope->context;
  if ((context->slabs == NULL || context->slabs->bytes_left < sizeof(entry->map)) &&
      !add_slab_locked(context)) {
    return false;
  }
  aotc_rt_cuda_slab *slab = context->slabs;
  aotc_rt_stream stream = aotc_rt_stream_take(scope);
  if (stream == NULL) {
    return false;
  }
  CUdeviceptr address = slab->address + (SLAB_BYTES - slab->bytes_left);
  bool is_copied =
      CUDA_TRY(memcpy_async,
               (address, aotc_rt_cuda_address(&entry->map), sizeof(entry->map), (CUstream)stream),
               "a TMA descriptor") &&
      CUDA_TRY(stream_synchronize, ((CUstream)stream), "copying a TMA descriptor");
  aotc_rt_stream_give_back(stream);
  if (is_copied) {
    entry->address = address;
    slab->bytes_left -= sizeof(entry->map);
  }
  return is_copied;
}

static CUdeviceptr keep_locked(aotc_rt_scope *scope, const encoding *e, const CUtensorMap *map) {
  aotc_rt_cuda_tensor_map *entry = NULL;
  if (posix_memalign((void **)&entry, _Alignof(aotc_rt_cuda_tensor_map), sizeof(*entry)) != 0) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a TMA descriptor");
    return 0;
  }
  entry->map = *map;
  entry->encoding = *e;
  aotc_rt_capture_mode mode;
  bool is_relaxed = aotc_rt_capture_relax(scope->driver, &mode);
  bool is_kept = is_relaxed && upload_locked(scope, entry);
  bool is_restored = !is_relaxed || aotc_rt_capture_restore(scope->driver, mode);
  if (!is_kept) {
    free(entry);
    return 0;
  }
  aotc_rt_cuda_tensor_map **bucket = bucket_for(scope, e);
  entry->next = *bucket;
  *bucket = entry;
  return is_restored ? entry->address : 0;
}

// Cached: calls usually need the same maps again, and the driver takes microseconds to encode one.
static CUdeviceptr address_of(aotc_rt_scope *scope, const encoding *e) {
  CUtensorMap map;
  bool is_cuda = is_of_cuda(scope);
  aotc_rt_lock();
  CUdeviceptr found = is_cuda ? find_locked(scope, e) : 0;
  aotc_rt_unlock();
  if (found != 0 || !aotc_rt_make_current(scope) || !encode(scope, e, &map)) {
    return found;
  }
  aotc_rt_lock();
  found = find_locked(scope, e); // added by another thread
  found = found != 0 ? found : keep_locked(scope, e, &map);
  aotc_rt_unlock();
  return found;
}

// The map's address, also recorded for paged weights under a memory budget; 0 after a failure.
static CUdeviceptr described_address_of(aotc_rt_scope *scope, const encoding *e) {
  CUdeviceptr address = address_of(scope, e);
  bool is_described = address != 0 && aotc_rt_weight_pages_describe(
                                          scope, aotc_rt_cuda_pointer(address), e->address);
  return is_described ? address : 0;
}

void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor, int64_t data_type,
                                     int64_t interleave, int64_t swizzle, int64_t l2_promotion,
                                     int64_t oob_fill, int64_t *box_sizes) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuTensorMapEncodeTiledMemref")) {
    return NULL;
  }
  CUdeviceptr address = 0;
  encoding e = encoding_with(data_type, interleave, swizzle, l2_promotion, oob_fill);
  if (rank < 1 || rank > MAX_RANK || descriptor == NULL || box_sizes == NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "rank %lld; it must be 1 to 5", (long long)rank);
  } else if (encoding_of((uint32_t)rank, descriptor, &e) && box_of((uint32_t)rank, box_sizes, &e)) {
    address = described_address_of(&scope, &e);
  }
  return aotc_rt_end(&scope) ? aotc_rt_cuda_pointer(address) : NULL;
}

void *aotc_tensor_map_encode_im2col(int64_t rank, void *descriptor, int64_t data_type,
                                    int64_t interleave, int64_t swizzle, int64_t l2_promotion,
                                    int64_t oob_fill, const int64_t *box_sizes,
                                    const int64_t *lower_corner, const int64_t *upper_corner,
                                    const int64_t *steps) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "aotc_tensor_map_encode_im2col")) {
    return NULL;
  }
  CUdeviceptr address = 0;
  encoding e = encoding_with(data_type, interleave, swizzle, l2_promotion, oob_fill);
  e.is_im2col = true;
  if (rank < 3 || rank > MAX_RANK || descriptor == NULL || box_sizes == NULL ||
      lower_corner == NULL || upper_corner == NULL || steps == NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "rank %lld; it must be 3 to 5", (long long)rank);
  } else if (encoding_of((uint32_t)rank, descriptor, &e) && box_of(2, box_sizes, &e)) {
    for (int64_t i = 0; i + 2 < rank; ++i) {
      e.lower_corner[i] = (int32_t)lower_corner[rank - 3 - i];
      e.upper_corner[i] = (int32_t)upper_corner[rank - 3 - i];
      e.element_strides[1 + i] = (uint32_t)steps[rank - 3 - i];
    }
    address = described_address_of(&scope, &e);
  }
  return aotc_rt_end(&scope) ? aotc_rt_cuda_pointer(address) : NULL;
}
