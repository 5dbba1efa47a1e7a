// Coroutines made by hand, for tests of the async runtime: what each does next is a function.
#ifndef AOTC_ASYNC_TASK_H
#define AOTC_ASYNC_TASK_H

#include <stdatomic.h>
#include <stdint.h>

#include "mlir_async_runtime.h"

// What a coroutine would keep in its frame.
typedef struct frame {
  void (*next)(struct frame *frame);
  mlir_async_object *own;    // the token or value that it makes available
  mlir_async_object *awaits; // what it waits for in between
  int64_t input;
} frame;

// Goes on with a frame.
void resume(void *coroutine);

frame *make_frame(void (*next)(frame *), mlir_async_object *awaits, int64_t input);

// Ends a task: frees its frame, and makes its token available.
void end_with_token(frame *f);

// How often count_one ran; fail_and_end says "kernel 'k': as it was told".
extern atomic_int the_count;
void count_one(frame *f);
void fail_and_end(frame *f);

// The token of a task that begins with `next`.
mlir_async_object *start(void (*next)(frame *), mlir_async_object *awaits, int64_t input);

// The token is no error.
void await_and_drop(mlir_async_object *token);

#endif // AOTC_ASYNC_TASK_H
