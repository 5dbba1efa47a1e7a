// Hand-written coroutines for tests of the async runtime: each step is a function.
#ifndef AOTC_ASYNC_TASK_H
#define AOTC_ASYNC_TASK_H

#include <stdatomic.h>
#include <stdint.h>

#include "mlir_async_runtime.h"

// The state that a coroutine would keep in its frame.
typedef struct frame {
  void (*next)(struct frame *frame);
  mlir_async_object *own;    // the token or value that the coroutine makes available
  mlir_async_object *awaits; // the object it waits for
  int64_t input;
} frame;

// Resumes a coroutine.
void resume(void *coroutine);

frame *make_frame(void (*next)(frame *), mlir_async_object *awaits, int64_t input);

// Ends a task: frees its frame, and makes its token available.
void end_with_token(frame *f);

// The number of calls of count_one; fail_and_end fails with "kernel 'k': as it was told".
extern atomic_int the_count;
void count_one(frame *f);
void fail_and_end(frame *f);

// Starts a task with first step `next`, and returns its token.
mlir_async_object *start(void (*next)(frame *), mlir_async_object *awaits, int64_t input);

// Waits for the token, which must not be in error, and drops it.
void await_and_drop(mlir_async_object *token);

#endif // AOTC_ASYNC_TASK_H
