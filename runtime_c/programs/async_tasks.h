// Tasks, the threads that run them, and the failures that travel with them.
#ifndef AOTC_PROGRAM_ASYNC_TASKS_H
#define AOTC_PROGRAM_ASYNC_TASKS_H

#include <stdbool.h>

#include "mlir_async_runtime.h"

// A failure on its way from thread to thread; NULL is none.
typedef struct aotc_program_failure aotc_program_failure;

// A coroutine that is ready to go on, or will be.
typedef struct aotc_program_task {
  struct aotc_program_task *next;
  void *coroutine;
  mlir_async_resume resume;
  aotc_program_failure *failure; // owned
  int32_t device;                // of the thread that made it
} aotc_program_task;

// One lock is held for all of the async runtime: for tasks, and for tokens, values and groups.
void aotc_program_tasks_lock(void);
void aotc_program_tasks_unlock(void);

// Blocks until the next aotc_program_tasks_tell_locked, or not as long; gives the lock away
// meanwhile.
void aotc_program_tasks_wait_locked(void);
void aotc_program_tasks_tell_locked(void);

// This thread's failure, if it has one. Needs no lock.
aotc_program_failure *aotc_program_failure_take(void);
// One more owner; one less. Under the lock.
aotc_program_failure *aotc_program_failure_share_locked(aotc_program_failure *failure);
void aotc_program_failure_drop_locked(aotc_program_failure *failure);
// Remembers the failure of the thread's task for the end of the program, unless an earlier one is.
// Under the lock.
void aotc_program_failure_note_locked(aotc_program_failure *failure);
// The program knows of it, and goes on. Under the lock.
void aotc_program_failure_forget_locked(const aotc_program_failure *failure);
// Makes it this thread's, too, and gives up the ownership.
void aotc_program_failure_adopt(aotc_program_failure *failure);
// The same, of an object that the thread waited for.
void aotc_program_failure_adopt_awaited(aotc_program_failure *failure);
// Whether the thread has it so, and has not asked before.
bool aotc_program_failure_was_awaited(const aotc_program_failure *failure);

// NULL when memory runs out.
aotc_program_task *aotc_program_task_make(void *coroutine, mlir_async_resume resume);

// Queues a task, whose memory goes with it.
void aotc_program_task_push_locked(aotc_program_task *task);

// How many tasks run at the same time.
int32_t aotc_program_task_limit(void);

#endif // AOTC_PROGRAM_ASYNC_TASKS_H
