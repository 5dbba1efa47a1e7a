// Tokens, values and groups of MLIR's async dialect, and the coroutines and threads that wait for
// them.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "async_tasks.h"
#include "utility.h"

#define VALUE_ALIGNMENT 64

typedef enum state { UNAVAILABLE, AVAILABLE, FAILED } state;

// An entry in an object's list of waiters: a group that contains the object, or a task.
typedef struct waiter {
  struct waiter *next;
  mlir_async_object *group; // a reference; NULL for a task
  aotc_program_task *task;
} waiter;

// A token, a value or a group. Every field except a value's bytes is protected by the lock of
// async_tasks.h.
struct mlir_async_object {
  int64_t references;
  state state;
  waiter *waiters;
  aotc_program_failure *failure; // set by the task that made the object available; owned
  int64_t pending, members;      // of a group: tokens still pending, tokens added
  bool has_error;                // of a group: whether one of its tokens is in the error state
  char *storage;                 // of a value
};

// -------------------------------------------------------------------------------------------------
// References

static mlir_async_object *make(const char *kind, int64_t references) {
  mlir_async_object *object = calloc(1, sizeof(*object));
  if (object == NULL) {
    aotc_error_adopt(AOTC_OUT_OF_MEMORY, kind);
    return NULL;
  }
  object->references = references;
  return object;
}

UTILITY mlir_async_object *mlirAsyncRuntimeCreateToken(void) {
  return make("no host memory for an async token", 2);
}

UTILITY mlir_async_object *mlirAsyncRuntimeCreateValue(int64_t bytes) {
  static const char message[] = "no host memory for an async value";
  mlir_async_object *value = make(message, 2);
  size_t whole = ((size_t)bytes + VALUE_ALIGNMENT) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
  if (value == NULL) {
    return NULL;
  }
  value->storage = aligned_alloc(VALUE_ALIGNMENT, whole);
  if (value->storage == NULL) {
    aotc_error_adopt(AOTC_OUT_OF_MEMORY, message);
    free(value);
    return NULL;
  }
  for (size_t i = 0; i < whole; ++i) {
    value->storage[i] = 0;
  }
  return value;
}

UTILITY mlir_async_object *mlirAsyncRuntimeCreateGroup(int64_t size) {
  mlir_async_object *group = make("no host memory for an async group", 1);
  if (group != NULL) {
    group->pending = size;
    group->state = size > 0 ? UNAVAILABLE : AVAILABLE;
  }
  return group;
}

UTILITY void mlirAsyncRuntimeAddRef(mlir_async_object *object, int64_t count) {
  if (object == NULL) {
    return;
  }
  aotc_program_tasks_lock();
  object->references += count;
  aotc_program_tasks_unlock();
}

static void drop_locked(mlir_async_object *object, int64_t count) {
  object->references -= count;
  if (object->references <= 0) {
    aotc_program_failure_drop_locked(object->failure);
    free(object->storage);
    free(object);
  }
}

UTILITY void mlirAsyncRuntimeDropRef(mlir_async_object *object, int64_t count) {
  if (object == NULL) {
    return;
  }
  aotc_program_tasks_lock();
  drop_locked(object, count);
  aotc_program_tasks_unlock();
}

// -------------------------------------------------------------------------------------------------
// Becoming available

// Passes the object's failure to the task, unless the task already has one.
static void give_failure_locked(aotc_program_task *task, const mlir_async_object *object) {
  if (task->failure == NULL) {
    task->failure = aotc_program_failure_share_locked(object->failure);
  }
}

static void complete_locked(mlir_async_object *object, state reached);

// Records in the group that one of its members has become available.
static void count_locked(mlir_async_object *group, const mlir_async_object *member) {
  group->has_error |= member->state == FAILED;
  if (group->failure == NULL) {
    group->failure = aotc_program_failure_share_locked(member->failure);
  }
  if (--group->pending == 0) {
    complete_locked(group, AVAILABLE);
  }
}

// Makes the object available and notifies everything that waits for it.
static void complete_locked(mlir_async_object *object, state reached) {
  object->state = reached;
  waiter *next = object->waiters;
  object->waiters = NULL;
  while (next != NULL) {
    waiter *w = next;
    next = w->next;
    if (w->group != NULL) {
      count_locked(w->group, object);
      drop_locked(w->group, 1);
    } else {
      give_failure_locked(w->task, object);
      aotc_program_task_push_locked(w->task);
    }
    free(w);
  }
  aotc_program_tasks_tell_locked();
}

static void complete(mlir_async_object *object, state reached) {
  if (object == NULL) {
    return;
  }
  aotc_program_failure *failure = aotc_program_failure_take();
  aotc_program_tasks_lock();
  object->failure = failure;
  aotc_program_failure_note_locked(failure);
  complete_locked(object, reached);
  drop_locked(object, 1);
  aotc_program_tasks_unlock();
}

UTILITY void mlirAsyncRuntimeEmplaceToken(mlir_async_object *token) {
  complete(token, AVAILABLE);
}

UTILITY void mlirAsyncRuntimeEmplaceValue(mlir_async_object *value) {
  complete(value, AVAILABLE);
}

UTILITY void mlirAsyncRuntimeSetTokenError(mlir_async_object *token) {
  complete(token, FAILED);
}

UTILITY void mlirAsyncRuntimeSetValueError(mlir_async_object *value) {
  complete(value, FAILED);
}

// A thread that has waited and now asks has handled the error, so the failure recorded by waiting
// is cleared. (A task asks without waiting, and its failure is passed on.)
static bool is_error(mlir_async_object *object) {
  if (object == NULL) {
    return true;
  }
  aotc_program_tasks_lock();
  bool result = object->state == FAILED || object->has_error;
  bool goes_on = result && aotc_program_failure_was_awaited(object->failure);
  if (goes_on) {
    aotc_program_failure_forget_locked(object->failure);
  }
  aotc_program_tasks_unlock();
  if (goes_on) {
    aotc_error_set_aside();
  }
  return result;
}

UTILITY bool mlirAsyncRuntimeIsTokenError(mlir_async_object *token) {
  return is_error(token);
}

UTILITY bool mlirAsyncRuntimeIsValueError(mlir_async_object *value) {
  return is_error(value);
}

UTILITY bool mlirAsyncRuntimeIsGroupError(mlir_async_object *group) {
  return is_error(group);
}

UTILITY void *mlirAsyncRuntimeGetValueStorage(mlir_async_object *value) {
  // Written to by a task when the allocation of a value failed; never read.
  static _Alignas(VALUE_ALIGNMENT) char spare[4096];
  return value != NULL ? value->storage : spare;
}

UTILITY int64_t mlirAsyncRuntimeAddTokenToGroup(mlir_async_object *token,
                                                mlir_async_object *group) {
  if (group == NULL) {
    return 0;
  }
  waiter *w = malloc(sizeof(*w));
  aotc_program_tasks_lock();
  while (w == NULL && token != NULL && token->state == UNAVAILABLE) {
    aotc_program_tasks_wait_locked(); // there was no memory to register a waiter
  }
  int64_t rank = group->members++;
  if (token == NULL) {
    count_locked(group, &(mlir_async_object){.state = FAILED});
  } else if (token->state != UNAVAILABLE) {
    count_locked(group, token);
  } else {
    ++group->references;
    *w = (waiter){.next = token->waiters, .group = group};
    token->waiters = w;
    w = NULL;
  }
  aotc_program_tasks_unlock();
  free(w);
  return rank;
}

// -------------------------------------------------------------------------------------------------
// Waiting

static void await(mlir_async_object *object) {
  if (object == NULL) {
    return;
  }
  aotc_program_tasks_lock();
  while (object->state == UNAVAILABLE) {
    aotc_program_tasks_wait_locked();
  }
  aotc_program_failure *failure = aotc_program_failure_share_locked(object->failure);
  aotc_program_tasks_unlock();
  aotc_program_failure_adopt_awaited(failure);
}

UTILITY void mlirAsyncRuntimeAwaitToken(mlir_async_object *token) {
  await(token);
}

UTILITY void mlirAsyncRuntimeAwaitValue(mlir_async_object *value) {
  await(value);
}

UTILITY void mlirAsyncRuntimeAwaitAllInGroup(mlir_async_object *group) {
  await(group);
}

static void execute(void *coroutine, mlir_async_resume resume) {
  aotc_program_task *task = aotc_program_task_make(coroutine, resume);
  if (task == NULL) {
    resume(coroutine);
    return;
  }
  task->failure = aotc_program_failure_take();
  aotc_program_tasks_lock();
  aotc_program_task_push_locked(task);
  aotc_program_tasks_unlock();
}

UTILITY void mlirAsyncRuntimeExecute(void *coroutine, mlir_async_resume resume) {
  execute(coroutine, resume);
}

// The task gets the object's failure, and this thread does not: it would record the failure a
// second time, perhaps after somebody has asked for it and gone on.
static void await_and_execute(mlir_async_object *object, void *coroutine,
                              mlir_async_resume resume) {
  aotc_program_task *task = object != NULL ? aotc_program_task_make(coroutine, resume) : NULL;
  if (task == NULL) {
    await(object);
    execute(coroutine, resume);
    return;
  }
  waiter *w = malloc(sizeof(*w));
  task->failure = aotc_program_failure_take();
  aotc_program_tasks_lock();
  while (w == NULL && object->state == UNAVAILABLE) {
    aotc_program_tasks_wait_locked(); // there was no memory to register a waiter
  }
  if (object->state == UNAVAILABLE) {
    *w = (waiter){.next = object->waiters, .task = task};
    object->waiters = w;
    w = NULL;
  } else {
    give_failure_locked(task, object);
    aotc_program_task_push_locked(task);
  }
  aotc_program_tasks_unlock();
  free(w);
}

UTILITY void mlirAsyncRuntimeAwaitTokenAndExecute(mlir_async_object *token, void *coroutine,
                                                  mlir_async_resume resume) {
  await_and_execute(token, coroutine, resume);
}

UTILITY void mlirAsyncRuntimeAwaitValueAndExecute(mlir_async_object *value, void *coroutine,
                                                  mlir_async_resume resume) {
  await_and_execute(value, coroutine, resume);
}

UTILITY void mlirAsyncRuntimeAwaitAllInGroupAndExecute(mlir_async_object *group, void *coroutine,
                                                       mlir_async_resume resume) {
  await_and_execute(group, coroutine, resume);
}

UTILITY int64_t mlirAsyncRuntimGetNumWorkerThreads(void) {
  return aotc_program_task_limit();
}

UTILITY void mlirAsyncRuntimePrintCurrentThreadId(void) {
  printf("Current thread id: %" PRIuPTR "\n", (uintptr_t)pthread_self());
  fflush(stdout);
}
