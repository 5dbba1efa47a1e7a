// Tasks, the threads that run them, and the failures passed between them.
#ifndef AOTC_PROGRAM_ASYNC_TASKS_H
#define AOTC_PROGRAM_ASYNC_TASKS_H

#include <stdbool.h>

#include "mlir_async_runtime.h"

// A failure passed from thread to thread; NULL means no failure.
typedef struct aotc_program_failure aotc_program_failure;

// A coroutine that is ready to be resumed, or waits for an object.
typedef struct aotc_program_task {
  struct aotc_program_task *next;
  void *coroutine;
  mlir_async_resume resume;
  aotc_program_failure *failure; // owned
  int32_t device;                // of the thread that made it
} aotc_program_task;

// One lock protects the whole async runtime: tasks, tokens, values and groups.
void aotc_program_tasks_lock(void);
void aotc_program_tasks_unlock(void);

// Blocks until the next aotc_program_tasks_tell_locked; may also return earlier. Releases the lock
// while it blocks.
void aotc_program_tasks_wait_locked(void);
void aotc_program_tasks_tell_locked(void);

// Takes this thread's failure, or NULL. Does not need the lock.
aotc_program_failure *aotc_program_failure_take(void);
// Increments the reference count. The lock is held.
aotc_program_failure *aotc_program_failure_share_locked(aotc_program_failure *failure);
void aotc_program_failure_drop_locked(aotc_program_failure *failure);
// Records the failure of the thread's task, to be reported when the program ends, unless an earlier
// one is recorded. The lock is held.
void aotc_program_failure_note_locked(aotc_program_failure *failure);
// Clears the failure, which the program has handled. The lock is held.
void aotc_program_failure_forget_locked(const aotc_program_failure *failure);
// Makes it this thread's failure as well, and releases the reference.
void aotc_program_failure_adopt(aotc_program_failure *failure);
// The same, for the failure of an object that the thread waited for.
void aotc_program_failure_adopt_awaited(aotc_program_failure *failure);
// Whether the thread has adopted this failure by waiting and has not asked since.
bool aotc_program_failure_was_awaited(const aotc_program_failure *failure);

// Returns NULL when memory runs out.
aotc_program_task *aotc_program_task_make(void *coroutine, mlir_async_resume resume);

// Queues a task and takes ownership of it.
void aotc_program_task_push_locked(aotc_program_task *task);

// The maximum number of tasks that run at the same time.
int32_t aotc_program_task_limit(void);

#endif // AOTC_PROGRAM_ASYNC_TASKS_H
