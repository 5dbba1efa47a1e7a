// Memory that callers provide to entries, through an allocator or as a workspace.
#include <stdlib.h>

#include "aotc_entry.h"
#include "state.h"

// The alignment of GPU allocations, which kernels rely on.
#define ALIGNMENT 256

// An allocation made by a caller's allocator; it is freed knowing only the pointer.
typedef struct aotc_rt_caller_memory {
  struct aotc_rt_caller_memory *next;
  void *pointer;
  uint64_t bytes;
  int32_t ordinal;
  aotc_rt_allocator allocator;
} caller_memory;

static caller_memory **bucket_of(const void *pointer) {
  uintptr_t number = (uintptr_t)pointer / ALIGNMENT;
  return &aotc_rt_state_of_process.caller_memory[number % AOTC_RT_CALLER_MEMORY_BUCKETS];
}

// -------------------------------------------------------------------------------------------------
// Allocators

aotc_status aotc_allocator_set(aotc_allocate_function allocate, aotc_free_function release,
                               void *data) {
  if ((allocate == NULL) != (release == NULL)) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "an allocator needs both functions, or none to take it back");
  }
  aotc_rt_this_thread.allocator =
      (aotc_rt_allocator){.allocate = allocate, .release = release, .data = data};
  return AOTC_OK;
}

void *aotc_rt_caller_allocate(const aotc_rt_scope *scope, uint64_t bytes, aotc_rt_stream stream) {
  const aotc_rt_allocator *allocator = &scope->thread->allocator;
  int32_t ordinal = scope->context->description.ordinal;
  caller_memory *made = malloc(sizeof(*made));
  void *pointer =
      made != NULL ? allocator->allocate(bytes, ordinal, stream, allocator->data) : NULL;
  if (pointer == NULL) {
    free(made);
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "the caller's allocator has no %llu bytes",
                 (unsigned long long)bytes);
    return NULL;
  }
  if ((uintptr_t)pointer % ALIGNMENT != 0) {
    allocator->release(pointer, bytes, ordinal, stream, allocator->data);
    free(made);
    aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                 "the caller's allocator returned %p, which is not aligned to %d bytes", pointer,
                 ALIGNMENT);
    return NULL;
  }
  *made = (caller_memory){
      .pointer = pointer, .bytes = bytes, .ordinal = ordinal, .allocator = *allocator};
  aotc_rt_lock();
  caller_memory **bucket = bucket_of(pointer);
  made->next = *bucket;
  *bucket = made;
  atomic_fetch_add(&aotc_rt_state_of_process.caller_memory_count, 1);
  aotc_rt_unlock();
  return pointer;
}

static void release(caller_memory *memory, aotc_rt_stream stream) {
  memory->allocator.release(memory->pointer, memory->bytes, memory->ordinal, stream,
                            memory->allocator.data);
  free(memory);
}

bool aotc_rt_caller_free(const void *pointer, aotc_rt_stream stream) {
  if (atomic_load(&aotc_rt_state_of_process.caller_memory_count) == 0) {
    return false;
  }
  aotc_rt_lock();
  caller_memory **place = bucket_of(pointer);
  while (*place != NULL && (*place)->pointer != pointer) {
    place = &(*place)->next;
  }
  caller_memory *found = *place;
  if (found != NULL) {
    *place = found->next;
    atomic_fetch_sub(&aotc_rt_state_of_process.caller_memory_count, 1);
  }
  aotc_rt_unlock();
  if (found != NULL) {
    release(found, stream);
  }
  return found != NULL;
}

struct aotc_rt_caller_memory *aotc_rt_caller_memory_take_locked(aotc_rt_state *state) {
  caller_memory *all = NULL;
  for (int i = 0; i < AOTC_RT_CALLER_MEMORY_BUCKETS; ++i) {
    while (state->caller_memory[i] != NULL) {
      caller_memory *memory = state->caller_memory[i];
      state->caller_memory[i] = memory->next;
      memory->next = all;
      all = memory;
    }
  }
  atomic_store(&state->caller_memory_count, 0);
  return all;
}

void aotc_rt_caller_memory_unload(struct aotc_rt_caller_memory *all) {
  while (all != NULL) {
    caller_memory *next = all->next;
    release(all, NULL);
    all = next;
  }
}

// -------------------------------------------------------------------------------------------------
// Workspaces

aotc_status aotc_workspace_set(void *memory, uint64_t bytes) {
  if ((uintptr_t)memory % ALIGNMENT != 0) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "the workspace %p is not aligned to %d bytes, as the GPU's memory is",
                        memory, ALIGNMENT);
  }
  aotc_rt_this_thread.workspace =
      (aotc_rt_workspace){.start = (uintptr_t)memory, .bytes = memory != NULL ? bytes : 0};
  return AOTC_OK;
}

void *aotc_rt_workspace_take(aotc_rt_thread *thread, uint64_t bytes) {
  aotc_rt_workspace *workspace = &thread->workspace;
  if (workspace->bytes - workspace->used < bytes || bytes > workspace->bytes) {
    return NULL;
  }
  void *pointer = (void *)(workspace->start + (uintptr_t)workspace->used);
  uint64_t end = (workspace->used + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  workspace->used = end < workspace->bytes ? end : workspace->bytes;
  return pointer;
}

bool aotc_rt_workspace_has(const aotc_rt_thread *thread, const void *pointer) {
  return (uintptr_t)pointer - thread->workspace.start < thread->workspace.bytes;
}
