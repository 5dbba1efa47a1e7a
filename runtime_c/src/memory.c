// Allocation, copies, fills, and host memory that a GPU reaches.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

#define HOST_ALIGNMENT 64

// Memory of no bytes gets one: the driver refuses none, and memrefs without elements need a pointer
// too.
static size_t at_least_one(uint64_t bytes) {
  return bytes > 0 ? (size_t)bytes : 1;
}

static CUdeviceptr address_of(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}

static void *pointer_to(CUdeviceptr address) {
  return (void *)(uintptr_t)address;
}

void *aotc_rt_host_allocate(uint64_t bytes) {
  void *pointer = NULL;
  if (posix_memalign(&pointer, HOST_ALIGNMENT, at_least_one(bytes)) != 0) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)bytes);
    return NULL;
  }
  return pointer;
}

// -------------------------------------------------------------------------------------------------
// Allocation

static bool has_stream_ordered_memory(const aotc_rt_scope *scope) {
  return scope->context->has_memory_pools && scope->driver->mem_alloc_async != NULL &&
         scope->driver->mem_free_async != NULL;
}

static void *allocate_device(aotc_rt_scope *scope, uint64_t bytes) {
  CUdeviceptr address = 0;
  return AOTC_RT_TRY(scope->driver, mem_alloc, (&address, at_least_one(bytes)), "%llu bytes",
                     (unsigned long long)bytes)
             ? pointer_to(address)
             : NULL;
}

static void *allocate_managed(aotc_rt_scope *scope, uint64_t bytes) {
  CUdeviceptr address = 0;
  return AOTC_RT_TRY(scope->driver, mem_alloc_managed,
                     (&address, at_least_one(bytes), CU_MEM_ATTACH_GLOBAL), "%llu bytes",
                     (unsigned long long)bytes)
             ? pointer_to(address)
             : NULL;
}

static void *allocate_in_stream(aotc_rt_scope *scope, uint64_t bytes, CUstream stream) {
  CUdeviceptr address = 0;
  return AOTC_RT_TRY(scope->driver, mem_alloc_async, (&address, at_least_one(bytes), stream),
                     "%llu bytes", (unsigned long long)bytes)
             ? pointer_to(address)
             : NULL;
}

// -------------------------------------------------------------------------------------------------
// Stand-ins
//
// Host code uses host-shared memory without asking whether there is any. Where there is none, it
// gets zeros of the host's to work on: the failure is recorded, nothing is launched, and the code
// runs to its end.

typedef struct aotc_rt_stand_in {
  struct aotc_rt_stand_in *next;
  void *pointer;
} stand_in;

static void *allocate_stand_in(uint64_t bytes) {
  stand_in *made = malloc(sizeof(*made));
  void *pointer = made != NULL ? calloc(1, at_least_one(bytes)) : NULL;
  if (pointer == NULL) {
    free(made);
    return NULL;
  }
  made->pointer = pointer;
  aotc_rt_lock();
  made->next = aotc_rt_state_of_process.stand_ins;
  aotc_rt_state_of_process.stand_ins = made;
  atomic_fetch_add(&aotc_rt_state_of_process.stand_in_count, 1);
  aotc_rt_unlock();
  return pointer;
}

// False when `pointer` is no stand-in.
static bool release_stand_in(void *pointer) {
  if (atomic_load(&aotc_rt_state_of_process.stand_in_count) == 0) {
    return false;
  }
  aotc_rt_lock();
  stand_in **place = &aotc_rt_state_of_process.stand_ins;
  while (*place != NULL && (*place)->pointer != pointer) {
    place = &(*place)->next;
  }
  stand_in *found = *place;
  if (found != NULL) {
    *place = found->next;
    atomic_fetch_sub(&aotc_rt_state_of_process.stand_in_count, 1);
  }
  aotc_rt_unlock();
  if (found == NULL) {
    return false;
  }
  free(found->pointer);
  free(found);
  return true;
}

void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t is_host_shared) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemAlloc")) {
    return is_host_shared != 0 ? allocate_stand_in(bytes) : NULL;
  }
  void *pointer = NULL;
  CUstream order = aotc_rt_stream_of(scope.thread, stream);
  if (scope.driver == NULL) {
    pointer = aotc_rt_host_allocate(bytes);
  } else if (!aotc_rt_make_current(&scope)) {
    pointer = NULL;
  } else if (is_host_shared != 0) {
    pointer = allocate_managed(&scope, bytes);
  } else if (order != NULL && has_stream_ordered_memory(&scope)) {
    pointer = allocate_in_stream(&scope, bytes, order);
  } else {
    pointer = allocate_device(&scope, bytes);
  }
  if (!aotc_rt_end(&scope)) {
    pointer = NULL;
  }
  return pointer == NULL && is_host_shared != 0 ? allocate_stand_in(bytes) : pointer;
}

// Whether the driver frees this memory in stream order; false when it does not say.
static bool ask_stream_ordered(aotc_rt_scope *scope, CUdeviceptr address,
                               bool *out_is_stream_ordered) {
  CUmemoryPool pool = NULL;
  bool is_known =
      !has_stream_ordered_memory(scope) ||
      AOTC_RT_TRY_IN(scope, pointer_get_attribute,
                     (&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), "memory to free");
  *out_is_stream_ordered = pool != NULL;
  return is_known;
}

// Frees memory of any kind; `stream` is NULL when the order is the device's.
static bool release(aotc_rt_scope *scope, void *pointer, CUstream stream) {
  if (scope->driver == NULL) {
    free(pointer);
    return true;
  }
  if (!aotc_rt_make_current(scope)) {
    return false;
  }
  CUdeviceptr address = address_of(pointer);
  bool is_stream_ordered = false;
  bool is_known = ask_stream_ordered(scope, address, &is_stream_ordered);
  if (is_stream_ordered && stream != NULL) {
    return AOTC_RT_TRY_IN(scope, mem_free_async, (address, stream), "memory of a stream");
  }
  bool is_idle = true;
  if (is_stream_ordered || !is_known) {
    // cuMemFree waits for the device's work, except for memory of this kind. A failure here is that
    // of a kernel, which does not run any more.
    is_idle = AOTC_RT_TRY_IN(scope, ctx_synchronize, (), "before memory is freed");
  }
  return AOTC_RT_TRY_IN(scope, mem_free, (address), "memory of the device") && is_known && is_idle;
}

void mgpuMemFree(void *pointer, void *stream) {
  aotc_rt_scope scope;
  if (pointer != NULL && !release_stand_in(pointer) &&
      aotc_rt_begin_release(&scope, "mgpuMemFree")) {
    release(&scope, pointer, aotc_rt_stream_of(scope.thread, stream));
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
  } else if (kind == AOTC_MEMORY_MANAGED) {
    *out_pointer = allocate_managed(&scope, bytes);
  } else {
    *out_pointer = allocate_device(&scope, bytes);
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
  if (release_stand_in(pointer)) {
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  scope.thread = &aotc_rt_this_thread;
  scope.thread->latest = AOTC_OK; // what a shut down driver says is not recorded
  if (!aotc_rt_begin_release(&scope, "aotc_memory_free")) {
    return scope.thread->latest;
  }
  bool is_freed = release(&scope, pointer, NULL);
  is_freed = aotc_rt_end(&scope) && is_freed;
  return is_freed ? AOTC_OK : scope.thread->latest;
}

// The context that memory is of, if it is known: thanks to the caller, another may be current.
static void follow_memory(aotc_rt_scope *scope, const aotc_rt_place *place) {
  if (place->ordinal >= 0 && place->ordinal != scope->context->description.ordinal) {
    aotc_rt_context *context = aotc_rt_context_find_primary(place->ordinal);
    if (context != NULL && AOTC_RT_TRY_IN(scope, ctx_push_current, (context->handle),
                                          "making cuda:%d current", place->ordinal)) {
      scope->context = context;
    }
  }
}

static bool release_wherever_it_is(aotc_rt_scope *scope, void *allocated) {
  aotc_rt_place place;
  if (scope->driver == NULL) {
    free(allocated);
    return true;
  }
  if (!aotc_rt_make_current(scope) || !aotc_rt_pointer_locate(scope, allocated, &place)) {
    return false;
  }
  if (!place.is_device && !place.is_managed) {
    free(allocated);
    return true;
  }
  const aotc_rt_context *before = scope->context;
  follow_memory(scope, &place);
  bool is_freed = release(scope, allocated, NULL);
  CUcontext popped = NULL;
  return (scope->context == before ||
          AOTC_RT_TRY_IN(scope, ctx_pop_current, (&popped), "after memory is freed")) &&
         is_freed;
}

aotc_status aotc_rt_memory_free_anywhere(void *allocated) {
  aotc_rt_phase phase = atomic_load_explicit(&aotc_rt_state_of_process.phase, memory_order_acquire);
  if (allocated == NULL || release_stand_in(allocated)) {
    return AOTC_OK;
  }
  if (phase == AOTC_RT_UNRESOLVED) {
    free(allocated); // by an entry that needed no device
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  scope.thread = &aotc_rt_this_thread;
  scope.thread->latest = AOTC_OK; // what a shut down driver says is not recorded
  if (!aotc_rt_begin_release(&scope, "aotc_entry_free")) {
    return scope.thread->latest;
  }
  bool is_freed = release_wherever_it_is(&scope, allocated);
  is_freed = aotc_rt_end(&scope) && is_freed;
  return is_freed ? AOTC_OK : scope.thread->latest;
}

// -------------------------------------------------------------------------------------------------
// Copies and fills

// Whether both ends of a copy are there; a copy of no bytes needs none.
static bool check_pointers(const void *to, const void *from, uint64_t bytes) {
  if (to != NULL && from != NULL) {
    return true;
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%llu bytes %s NULL", (unsigned long long)bytes,
               to == NULL ? "to" : "from");
  return false;
}

// Work on CUDA's default stream is waited for: the pool's streams do not wait for it.
static void finish(aotc_rt_scope *scope, CUstream stream) {
  if (stream == NULL) {
    AOTC_RT_TRY(scope->driver, stream_synchronize, (stream), "of the default stream");
  }
}

void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemcpy")) {
    return;
  }
  CUstream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (bytes == 0 || !check_pointers(to, from, bytes)) {
    // nothing to do, or nothing that can be done
  } else if (scope.driver == NULL) {
    memmove(to, from, bytes);
  } else if (aotc_rt_make_current(&scope) &&
             AOTC_RT_TRY(scope.driver, memcpy_async,
                         (address_of(to), address_of(from), bytes, order),
                         "%zu bytes from %p to %p", bytes, from, to)) {
    finish(&scope, order);
  }
  aotc_rt_end(&scope);
}

void mgpuMemset32(void *to, uint32_t value, size_t count, void *stream) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemset32")) {
    return;
  }
  CUstream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (count == 0 || !check_pointers(to, &value, count)) {
    // nothing to do, or nothing that can be done
  } else if (scope.driver == NULL) {
    uint32_t *elements = to;
    for (size_t i = 0; i < count; ++i) {
      elements[i] = value;
    }
  } else if (aotc_rt_make_current(&scope) &&
             AOTC_RT_TRY(scope.driver, memset_d32_async, (address_of(to), value, count, order),
                         "%zu elements of 4 bytes at %p", count, to)) {
    finish(&scope, order);
  }
  aotc_rt_end(&scope);
}

void mgpuMemset16(void *to, uint16_t value, size_t count, void *stream) {
  // Lowered IR declares this parameter i16 without saying how it is extended, so the upper half of
  // its register may hold anything, while the compiler takes it for zeros. This makes it look.
  uint32_t raw = value;
  __asm__("" : "+r"(raw));
  uint16_t element = (uint16_t)(raw & 0xffffu);

  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemset16")) {
    return;
  }
  CUstream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (count == 0 || !check_pointers(to, &element, count)) {
    // nothing to do, or nothing that can be done
  } else if (scope.driver == NULL) {
    uint16_t *elements = to;
    for (size_t i = 0; i < count; ++i) {
      elements[i] = element;
    }
  } else if (aotc_rt_make_current(&scope) &&
             AOTC_RT_TRY(scope.driver, memset_d16_async, (address_of(to), element, count, order),
                         "%zu elements of 2 bytes at %p", count, to)) {
    finish(&scope, order);
  }
  aotc_rt_end(&scope);
}

// Copies in the order of the thread's adopted stream, or of a stream of the pool, and waits.
static bool copy_on_cuda(aotc_rt_scope *scope, void *to, const void *from, uint64_t bytes) {
  bool is_adopted = scope->thread->has_adopted_stream;
  CUstream stream =
      is_adopted ? aotc_rt_stream_of(scope->thread, NULL) : aotc_rt_stream_take(scope);
  if (stream == NULL) {
    return false;
  }
  bool is_copied = aotc_rt_make_current(scope) &&
                   AOTC_RT_TRY(scope->driver, memcpy_async,
                               (address_of(to), address_of(from), (size_t)bytes, stream),
                               "%llu bytes from %p to %p", (unsigned long long)bytes, from, to) &&
                   AOTC_RT_TRY(scope->driver, stream_synchronize, (stream), "waiting for a copy");
  if (!is_adopted) {
    aotc_rt_stream_give_back(stream);
  }
  return is_copied;
}

aotc_status aotc_memory_copy(void *to, const void *from, uint64_t bytes) {
  if (bytes == 0) {
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_memory_copy")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_copied = check_pointers(to, from, bytes);
  if (is_copied && scope.driver == NULL) {
    memmove(to, from, (size_t)bytes);
  } else if (is_copied) {
    is_copied = copy_on_cuda(&scope, to, from, bytes);
  }
  is_copied = aotc_rt_end(&scope) && is_copied;
  return is_copied ? AOTC_OK : scope.thread->latest;
}

// -------------------------------------------------------------------------------------------------
// Host memory that a GPU reaches

// The registration that covers the range, or the bytes from `start` on when bytes is 0; the
// narrowest one that begins there, if there is one.
static aotc_rt_registration **find_registration(uintptr_t start, uint64_t bytes) {
  aotc_rt_registration **found = NULL;
  aotc_rt_registration **link = &aotc_rt_state_of_process.registrations;
  for (; *link != NULL; link = &(*link)->next) {
    const aotc_rt_registration *r = *link;
    if (start >= r->start && start - r->start < r->bytes &&
        bytes <= r->bytes - (start - r->start) && (found == NULL || r->start == start)) {
      found = link;
    }
  }
  return found;
}

// Whether the GPU reaches this address already. The driver calls an address that it does not know
// an invalid value; that is an answer, not a failure.
static bool is_reachable(const aotc_rt_driver *driver, uintptr_t address, bool *out_is_reachable) {
  CUmemorytype type = 0;
  CUresult result = driver->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  *out_is_reachable = result == CUDA_SUCCESS && type != 0;
  return result == CUDA_ERROR_INVALID_VALUE ||
         aotc_rt_check(driver, result, AOTC_RT_CALL_pointer_get_attribute, "memory at %p",
                       pointer_to(address));
}

bool aotc_rt_pointer_locate(aotc_rt_scope *scope, const void *pointer, aotc_rt_place *out_place) {
  CUmemorytype type = 0;
  unsigned int is_managed = 0;
  int ordinal = -1;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
  };
  void *values[] = {&type, &is_managed, &ordinal};
  // Memory that the driver does not know has zeros here, not a failure as above.
  CUresult result =
      scope->driver->pointer_get_attributes(3, attributes, values, address_of(pointer));
  *out_place = (aotc_rt_place){
      .is_known = type != 0,
      .is_device = type == CU_MEMORYTYPE_DEVICE,
      .is_managed = is_managed != 0,
      .ordinal = ordinal,
  };
  return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE ||
         (scope->is_release ? aotc_rt_check_release : aotc_rt_check)(
             scope->driver, result, AOTC_RT_CALL_pointer_get_attributes, "memory at %p", pointer);
}

static void register_locked(const aotc_rt_driver *driver, uintptr_t start, uint64_t bytes) {
  aotc_rt_registration **covering = find_registration(start, bytes);
  if (covering != NULL) {
    ++(*covering)->count;
    return;
  }
  bool has_first = false;
  bool has_last = false;
  if (!is_reachable(driver, start, &has_first) ||
      !is_reachable(driver, start + (bytes - 1), &has_last)) {
    return;
  }
  aotc_rt_registration *registration = malloc(sizeof(*registration));
  if (registration == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a registration");
    return;
  }
  bool is_ours = !(has_first && has_last);
  if (is_ours && !AOTC_RT_TRY(driver, mem_host_register,
                              (pointer_to(start), (size_t)bytes,
                               CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
                              "%llu bytes at %p", (unsigned long long)bytes, pointer_to(start))) {
    free(registration);
    return;
  }
  aotc_rt_state *state = &aotc_rt_state_of_process;
  *registration = (aotc_rt_registration){
      .next = state->registrations,
      .start = start,
      .bytes = bytes,
      .count = 1,
      .is_ours = is_ours,
  };
  state->registrations = registration;
}

static void unregister_locked(aotc_rt_scope *scope, uintptr_t start) {
  aotc_rt_registration **link = find_registration(start, 0);
  if (link == NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "memory at %p is not registered", pointer_to(start));
    return;
  }
  aotc_rt_registration *registration = *link;
  if (--registration->count > 0) {
    return;
  }
  if (registration->is_ours) {
    AOTC_RT_TRY_IN(scope, mem_host_unregister, (pointer_to(registration->start)),
                   "%llu bytes at %p", (unsigned long long)registration->bytes,
                   pointer_to(registration->start));
  }
  *link = registration->next;
  free(registration);
}

void aotc_rt_memory_unload_locked(aotc_rt_state *state, const aotc_rt_driver *driver) {
  while (state->registrations != NULL) {
    aotc_rt_registration *registration = state->registrations;
    state->registrations = registration->next;
    if (registration->is_ours && driver != NULL) {
      aotc_rt_check_release(driver, driver->mem_host_unregister(pointer_to(registration->start)),
                            AOTC_RT_CALL_mem_host_unregister, "%llu bytes at %p",
                            (unsigned long long)registration->bytes,
                            pointer_to(registration->start));
    }
    free(registration);
  }
  while (state->stand_ins != NULL) {
    stand_in *made = state->stand_ins;
    state->stand_ins = made->next;
    free(made->pointer);
    free(made);
  }
  atomic_store(&state->stand_in_count, 0);
}

static void register_range(const char *operation, uintptr_t start, uint64_t bytes) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, operation)) {
    return;
  }
  if (start == 0) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%llu bytes at NULL", (unsigned long long)bytes);
  } else if (bytes - 1 > UINTPTR_MAX - start) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%llu bytes at %p do not fit into the address space",
                 (unsigned long long)bytes, pointer_to(start));
  } else if (scope.driver != NULL && aotc_rt_make_current(&scope)) {
    aotc_rt_lock();
    register_locked(scope.driver, start, bytes);
    aotc_rt_unlock();
  }
  aotc_rt_end(&scope);
}

static void unregister_range(const char *operation, uintptr_t start) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_release(&scope, operation)) {
    return;
  }
  if (scope.driver != NULL && aotc_rt_make_current(&scope)) {
    aotc_rt_lock();
    unregister_locked(&scope, start);
    aotc_rt_unlock();
  }
  aotc_rt_end(&scope);
}

void mgpuMemHostRegister(void *pointer, uint64_t bytes) {
  if (bytes > 0) {
    register_range("mgpuMemHostRegister", (uintptr_t)pointer, bytes);
  }
}

void mgpuMemHostUnregister(void *pointer) {
  if (pointer != NULL) {
    unregister_range("mgpuMemHostUnregister", (uintptr_t)pointer);
  }
}

bool aotc_rt_measure(int64_t rank, const aotc_rt_memref *memref, int64_t element_bytes,
                     uintptr_t *out_start, uint64_t *out_bytes) {
  *out_start = 0;
  *out_bytes = 0;
  if (rank < 0 || memref == NULL || element_bytes < 1) {
    return false;
  }
  const int64_t *sizes = memref->sizes_and_strides;
  const int64_t *strides = sizes + rank;
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0) {
      return false;
    }
  }
  int64_t lowest = memref->offset; // in elements, relative to the aligned pointer
  int64_t highest = memref->offset;
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0) {
      return true;
    }
    int64_t *end = strides[i] < 0 ? &lowest : &highest;
    int64_t reach = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(*end, reach, end)) {
      return false;
    }
  }
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t start = 0;
  if (__builtin_sub_overflow(highest, lowest, &count) || __builtin_add_overflow(count, 1, &count) ||
      __builtin_mul_overflow(count, element_bytes, &bytes) ||
      __builtin_mul_overflow(lowest, element_bytes, &start)) {
    return false;
  }
  *out_start = (uintptr_t)memref->aligned + (uintptr_t)start;
  *out_bytes = (uint64_t)bytes;
  return true;
}

void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor, int64_t element_bytes) {
  const char *operation = "mgpuMemHostRegisterMemRef";
  if (aotc_rt_this_thread.error.status != AOTC_OK) {
    return;
  }
  uintptr_t start = 0;
  uint64_t bytes = 0;
  if (!aotc_rt_measure(rank, descriptor, element_bytes, &start, &bytes)) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%s: the memref's sizes and strides make no sense",
                 operation);
  } else if (bytes > 0) {
    register_range(operation, start, bytes);
  }
}

void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor, int64_t element_bytes) {
  uintptr_t start = 0;
  uint64_t bytes = 0;
  if (!aotc_rt_measure(rank, descriptor, element_bytes, &start, &bytes)) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                 "mgpuMemHostUnregisterMemRef: the memref's sizes and strides make no sense");
  } else if (bytes > 0) {
    unregister_range("mgpuMemHostUnregisterMemRef", start);
  }
}
