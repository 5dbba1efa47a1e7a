// Host, device and managed memory: allocating, freeing, and determining the kind.
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cpu/streams.h"
#include "graphs.h"
#include "mlir_cuda_runtime.h"
#include "state.h"

#define HOST_ALIGNMENT 64
#define HUGE_PAGE_BYTES ((uint64_t)2 << 20)

// Freed memory of the CPU device, temporaries and results, kept for the next call of an entry,
// which needs the same amount: otherwise the system would have to clear each page again. Threads
// take from and put into a place with a single exchange. There are fewer places for large blocks.
#define SMALL_PLACES 64 // a decoder returns two caches of each layer
#define MEDIUM_PLACES 16
#define LARGE_PLACES 4
#define PLACES (SMALL_PLACES + MEDIUM_PLACES + LARGE_PLACES)
#define LEAST_KEPT_BYTES ((uint64_t)128 << 10)
#define MEDIUM_BYTES ((uint64_t)2 << 20)
#define LARGE_BYTES ((uint64_t)8 << 20)
// Larger results are freed when the caller frees them.
#define MOST_KEPT_RESULT_BYTES ((uint64_t)64 << 20)
typedef struct places {
  _Atomic(void *) *first;
  unsigned count;
  atomic_uint next;
} places;

static _Atomic(void *) kept[PLACES];
static places small_places = {.first = kept, .count = SMALL_PLACES};
static places medium_places = {.first = kept + SMALL_PLACES, .count = MEDIUM_PLACES};
static places large_places = {.first = kept + SMALL_PLACES + MEDIUM_PLACES, .count = LARGE_PLACES};

static places *places_of(uint64_t bytes) {
  if (bytes < MEDIUM_BYTES) {
    return &small_places;
  }
  return bytes < LARGE_BYTES ? &medium_places : &large_places;
}

// Puts a block, or NULL, into the place whose turn it is, and frees what was there.
static void replace_next(places *p, void *pointer) {
  unsigned turn = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
  free(atomic_exchange(&p->first[turn % p->count], pointer));
}

// The size of a block for this many bytes. Sizes that differ by less than an eighth are mostly the
// same, as those of a cache that grows with each call.
static uint64_t whole_bytes(uint64_t bytes) {
  uint64_t unit = LEAST_KEPT_BYTES / 8;
  if (bytes < LEAST_KEPT_BYTES || bytes > SIZE_MAX / 2) {
    return bytes;
  }
  while (bytes / unit >= 16) {
    unit *= 2;
  }
  return (bytes + unit - 1) / unit * unit;
}

// Takes a kept block of at least this many bytes, but not of many more. If there is none, returns
// NULL and frees one, so that calls of many sizes do not accumulate memory.
static void *take_kept(uint64_t bytes) {
  if (bytes < LEAST_KEPT_BYTES) {
    return NULL;
  }
  for (_Atomic(void *) *place = places_of(bytes)->first; place != kept + PLACES; ++place) {
    if (atomic_load_explicit(place, memory_order_relaxed) == NULL) {
      continue;
    }
    void *pointer = atomic_exchange(place, NULL);
    size_t there = pointer == NULL ? 0 : malloc_usable_size(pointer);
    // Memory in huge pages is rounded up, and may have unused pages behind it.
    uint64_t unused = whole_bytes(bytes) < HUGE_PAGE_BYTES ? 0 : HUGE_PAGE_BYTES;
    if (there >= bytes && there / 2 <= bytes + unused) {
      return pointer;
    }
    free(atomic_exchange(place, pointer));
  }
  replace_next(places_of(bytes), NULL);
  return NULL;
}

// Keeps the memory in an empty place, or in place of another block.
static void keep(void *pointer) {
  size_t bytes = malloc_usable_size(pointer);
  if (bytes < LEAST_KEPT_BYTES || (uintptr_t)pointer % HOST_ALIGNMENT != 0) {
    free(pointer);
    return;
  }
  places *p = places_of(bytes);
  for (unsigned i = 0; i < p->count; ++i) {
    void *empty = NULL;
    if (atomic_compare_exchange_strong(&p->first[i], &empty, pointer)) {
      return;
    }
  }
  replace_next(p, pointer);
}

__attribute__((destructor)) void aotc_rt_host_unload(void) {
  for (int i = 0; i < PLACES; ++i) {
    free(atomic_exchange(&kept[i], NULL));
  }
}

// Allocates large memory in huge pages, if the system has them: the rows of a matrix are often more
// than a small page apart, so that a kernel would read more pages than the processor can look up.
static bool allocate_host(uint64_t bytes, void **out_pointer) {
  if (bytes >= HUGE_PAGE_BYTES && bytes <= SIZE_MAX - HUGE_PAGE_BYTES) {
    size_t whole = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (posix_memalign(out_pointer, HUGE_PAGE_BYTES, whole) == 0) {
      // A failure has no consequence.
      madvise(*out_pointer, whole, MADV_HUGEPAGE);
      return true;
    }
  }
  return posix_memalign(out_pointer, HOST_ALIGNMENT, aotc_rt_at_least_one(bytes)) == 0;
}

void *aotc_rt_host_allocate(uint64_t bytes) {
  uint64_t whole = whole_bytes(bytes);
  void *pointer = take_kept(bytes);
  if (pointer != NULL || allocate_host(whole, &pointer)) {
    return pointer;
  }
  // Kept memory may be what is needed.
  aotc_rt_host_unload();
  if (!allocate_host(whole, &pointer)) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)bytes);
    return NULL;
  }
  return pointer;
}

// Allocates memory on a device.
static void *allocate(aotc_rt_scope *scope, aotc_memory_kind kind, uint64_t bytes,
                      aotc_rt_stream stream) {
  void *pointer = NULL;
  AOTC_RT_TRY(scope->driver,
              memory_allocate(scope->context, kind, aotc_rt_at_least_one(bytes), stream, &pointer),
              "%llu bytes", (unsigned long long)bytes);
  return pointer;
}

// Device memory in stream order; in an entry it may be the caller's.
static void *allocate_on_device(aotc_rt_scope *scope, uint64_t bytes, aotc_rt_stream stream,
                                bool is_result) {
  aotc_rt_thread *thread = scope->thread;
  if (thread->entry_context == NULL) {
    return allocate(scope, AOTC_MEMORY_DEVICE, bytes, stream);
  }
  uint64_t needed = aotc_rt_at_least_one(bytes);
  void *pointer = is_result ? NULL : aotc_rt_workspace_take(thread, needed);
  if (pointer != NULL) {
    return pointer;
  }
  return thread->allocator.allocate != NULL ? aotc_rt_caller_allocate(scope, needed, stream)
                                            : allocate(scope, AOTC_MEMORY_DEVICE, bytes, stream);
}

void aotc_result_prepare(void) {
  aotc_rt_this_thread.is_result_next = true;
}

void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t is_host_shared) {
  aotc_rt_scope scope;
  bool is_result = aotc_rt_this_thread.is_result_next;
  aotc_rt_this_thread.is_result_next = false;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemAlloc")) {
    return is_host_shared != 0 ? aotc_rt_stand_in_allocate(bytes) : NULL;
  }
  void *pointer = NULL;
  aotc_rt_stream order = aotc_rt_stream_of(scope.thread, stream);
  aotc_rt_submit_frees(scope.thread);
  if (scope.driver == NULL) {
    pointer = aotc_rt_host_allocate(bytes);
  } else if (!aotc_rt_make_current(&scope)) {
    pointer = NULL;
  } else if (is_host_shared == 0) {
    pointer = allocate_on_device(&scope, bytes, order, false);
  } else if (is_result && scope.thread->has_device_results) {
    pointer = allocate_on_device(&scope, bytes, order, true);
  } else {
    pointer = allocate(&scope, AOTC_MEMORY_MANAGED, bytes,
                       order != NULL ? order : AOTC_RT_STREAM_DEFAULT);
  }
  if (!aotc_rt_end(&scope)) {
    pointer = NULL;
  }
  return pointer == NULL && is_host_shared != 0 ? aotc_rt_stand_in_allocate(bytes) : pointer;
}

static void keep_later(const void *pointer) {
  keep(*(void *const *)pointer);
}

// Frees memory of any kind; `stream` is NULL if the order is the device's.
static bool release(aotc_rt_scope *scope, void *pointer, aotc_rt_stream stream) {
  if (scope->driver == NULL) {
    if (stream == NULL) {
      aotc_rt_cpu_streams_wait();
    }
    aotc_rt_cpu_stream_do(stream, keep_later, &pointer, sizeof(pointer));
    return true;
  }
  if (!aotc_rt_make_current(scope)) {
    return false;
  }
  if (aotc_rt_caller_free(pointer, stream)) {
    return true;
  }
  bool is_ordered = false;
  bool is_known = AOTC_RT_TRY_IN(
      scope, memory_is_ordered(scope->context, pointer, stream, &is_ordered), "memory to free");
  if (is_ordered && stream != NULL) {
    return AOTC_RT_TRY_IN(scope, memory_free(pointer, stream), "memory of a stream");
  }
  bool is_idle = true;
  if (is_ordered || !is_known) {
    // Freeing waits for the device's work, except for this kind of memory. A failure here is a
    // kernel's, which then is no longer running.
    is_idle = AOTC_RT_TRY_IN(scope, context_synchronize(), "before memory is freed");
  }
  return AOTC_RT_TRY_IN(scope, memory_free(pointer, NULL), "memory of the device") && is_known &&
         is_idle;
}

bool aotc_rt_release_in_order(aotc_rt_scope *scope, void *pointer, aotc_rt_stream stream) {
  return release(scope, pointer, stream);
}

void mgpuMemFree(void *pointer, void *stream) {
  aotc_rt_scope scope;
  if (pointer != NULL && !aotc_rt_stand_in_release(pointer) &&
      !aotc_rt_workspace_has(&aotc_rt_this_thread, pointer) &&
      aotc_rt_begin_release(&scope, "mgpuMemFree")) {
    aotc_rt_stream order = aotc_rt_stream_of(scope.thread, stream);
    if (!aotc_rt_recording_free(scope.thread, pointer, order)) {
      release(&scope, pointer, order);
    }
    aotc_rt_end(&scope);
  }
}

aotc_status aotc_memory_allocate(aotc_memory_kind kind, uint64_t bytes, void **out_pointer) {
  if (out_pointer == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "aotc_memory_allocate: there is no place for the pointer");
  }
  *out_pointer = NULL;
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_memory_allocate")) {
    return aotc_rt_this_thread.latest;
  }
  if (kind == AOTC_MEMORY_HOST || scope.driver == NULL) {
    *out_pointer = aotc_rt_host_allocate(bytes);
  } else if (!aotc_rt_make_current(&scope)) {
    *out_pointer = NULL;
  } else {
    *out_pointer = allocate(&scope, kind, bytes, NULL);
  }
  if (!aotc_rt_end(&scope)) {
    *out_pointer = NULL;
  }
  return *out_pointer != NULL ? AOTC_OK : scope.thread->latest;
}

aotc_status aotc_memory_free(aotc_memory_kind kind, void *pointer) {
  if (pointer == NULL) {
    return AOTC_OK;
  }
  if (kind == AOTC_MEMORY_HOST) {
    free(pointer);
    return AOTC_OK;
  }
  if (aotc_rt_stand_in_release(pointer)) {
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  scope.thread = &aotc_rt_this_thread;
  scope.thread->latest = AOTC_OK; // failures after the driver's shutdown are not recorded
  if (!aotc_rt_begin_release(&scope, "aotc_memory_free")) {
    return scope.thread->latest;
  }
  aotc_rt_submit(scope.thread);
  bool is_freed = release(&scope, pointer, NULL);
  is_freed = aotc_rt_end(&scope) && is_freed;
  return is_freed ? AOTC_OK : scope.thread->latest;
}

bool aotc_rt_pointer_locate(aotc_rt_scope *scope, const void *pointer, aotc_rt_place *out_place) {
  return AOTC_RT_TRY_IN(scope, memory_locate(pointer, out_place), "memory at %p", pointer);
}

// Uses the context that the memory belongs to, if known: the caller may have made another current.
static void follow_memory(aotc_rt_scope *scope, const aotc_rt_place *place) {
  if (place->ordinal >= 0 && place->ordinal != scope->context->description.ordinal) {
    aotc_rt_context *context = aotc_rt_context_find_primary(place->ordinal);
    if (context != NULL &&
        AOTC_RT_TRY_IN(scope, context_push(context->handle), "making %s:%d current",
                       scope->driver->name, place->ordinal)) {
      scope->context = context;
    }
  }
}

static bool release_wherever_it_is(aotc_rt_scope *scope, void *allocated, aotc_rt_stream stream) {
  aotc_rt_place place;
  if (scope->driver == NULL) {
    if (malloc_usable_size(allocated) > MOST_KEPT_RESULT_BYTES) {
      free(allocated);
    } else {
      keep(allocated);
    }
    return true;
  }
  if (!aotc_rt_make_current(scope)) {
    return false;
  }
  if (aotc_rt_caller_free(allocated, stream)) {
    return true;
  }
  // The driver cannot locate memory allocated during a capture.
  bool is_capturing = false;
  if (stream != NULL && !AOTC_RT_TRY_IN(scope, stream_is_capturing(stream, &is_capturing),
                                        "before memory is freed")) {
    return false;
  }
  if (is_capturing) {
    return release(scope, allocated, stream);
  }
  if (!aotc_rt_pointer_locate(scope, allocated, &place)) {
    return false;
  }
  if (!place.is_device && !place.is_managed) {
    free(allocated);
    return true;
  }
  const aotc_rt_context *before = scope->context;
  follow_memory(scope, &place);
  bool is_freed = release(scope, allocated, stream);
  return (scope->context == before ||
          AOTC_RT_TRY_IN(scope, context_pop(), "after memory is freed")) &&
         is_freed;
}

aotc_status aotc_rt_memory_free_anywhere(void *allocated, aotc_rt_stream stream) {
  aotc_rt_phase phase = atomic_load_explicit(&aotc_rt_state_of_process.phase, memory_order_acquire);
  if (allocated == NULL || aotc_rt_stand_in_release(allocated)) {
    return AOTC_OK;
  }
  if (phase == AOTC_RT_UNRESOLVED) {
    free(allocated); // allocated by an entry that needed no device
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  scope.thread = &aotc_rt_this_thread;
  scope.thread->latest = AOTC_OK; // failures after the driver's shutdown are not recorded
  if (!aotc_rt_begin_release(&scope, "aotc_entry_free")) {
    return scope.thread->latest;
  }
  bool is_freed = release_wherever_it_is(&scope, allocated, stream);
  is_freed = aotc_rt_end(&scope) && is_freed;
  return is_freed ? AOTC_OK : scope.thread->latest;
}
