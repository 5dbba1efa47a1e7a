#include "async_task.h"

#include <stdlib.h>

#include "check.h"

void resume(void *coroutine) {
  frame *f = coroutine;
  f->next(f);
}

frame *make_frame(void (*next)(frame *), mlir_async_object *awaits, int64_t input) {
  frame *f = malloc(sizeof(*f));
  *f = (frame){.next = next, .awaits = awaits, .input = input};
  return f;
}

atomic_int the_count;

void end_with_token(frame *f) {
  mlir_async_object *token = f->own;
  free(f);
  mlirAsyncRuntimeEmplaceToken(token);
}

void count_one(frame *f) {
  atomic_fetch_add(&the_count, 1);
  end_with_token(f);
}

mlir_async_object *start(void (*next)(frame *), mlir_async_object *awaits, int64_t input) {
  frame *f = make_frame(next, awaits, input);
  mlir_async_object *token = mlirAsyncRuntimeCreateToken();
  f->own = token;
  mlirAsyncRuntimeExecute(f, resume);
  return token;
}

void await_and_drop(mlir_async_object *token) {
  mlirAsyncRuntimeAwaitToken(token);
  CHECK(!mlirAsyncRuntimeIsTokenError(token));
  mlirAsyncRuntimeDropRef(token, 1);
}

void fail_and_end(frame *f) {
  CHECK_NO_FAILURE();
  aotc_error_adopt(AOTC_LAUNCH_FAILED, "kernel 'k': as it was told");
  end_with_token(f);
}
