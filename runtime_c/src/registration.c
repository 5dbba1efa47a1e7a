// Host memory that a GPU can access: registered here, or accessible already.
#include <stdlib.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

// The registration that covers the range, or the bytes from `start` on if bytes is 0; the smallest
// one that starts there, if there is one.
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

// Whether the GPU can access this address already.
static bool is_reachable(const aotc_rt_driver *driver, uintptr_t address, bool *out_is_reachable) {
  aotc_rt_place place;
  bool is_located =
      AOTC_RT_TRY(driver, memory_locate((void *)address, &place), "memory at %p", (void *)address);
  *out_is_reachable = is_located && place.is_known;
  return is_located;
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
  if (is_ours && !AOTC_RT_TRY(driver, memory_register((void *)start, (size_t)bytes),
                              "%llu bytes at %p", (unsigned long long)bytes, (void *)start)) {
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
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "memory at %p is not registered", (void *)start);
    return;
  }
  aotc_rt_registration *registration = *link;
  if (--registration->count > 0) {
    return;
  }
  if (registration->is_ours) {
    AOTC_RT_TRY_IN(scope, memory_unregister((void *)registration->start), "%llu bytes at %p",
                   (unsigned long long)registration->bytes, (void *)registration->start);
  }
  *link = registration->next;
  free(registration);
}

void aotc_rt_registrations_unload_locked(aotc_rt_state *state, const aotc_rt_driver *driver) {
  while (state->registrations != NULL) {
    aotc_rt_registration *registration = state->registrations;
    state->registrations = registration->next;
    if (registration->is_ours && driver != NULL) {
      AOTC_RT_TRY_RELEASE(driver, memory_unregister((void *)registration->start),
                          "%llu bytes at %p", (unsigned long long)registration->bytes,
                          (void *)registration->start);
    }
    free(registration);
  }
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
                 (unsigned long long)bytes, (void *)start);
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
