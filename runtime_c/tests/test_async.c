// The async dialect's runtime, tested with hand-written coroutines: each step is a function.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async_task.h"
#include "check.h"
#include "mlir_async_runtime.h"
#include "mlir_cuda_runtime.h"

#define MANY 2000

// -------------------------------------------------------------------------------------------------
// Tasks

static void tasks_run_and_are_awaited(void) {
  mlir_async_object *tokens[MANY];
  for (int i = 0; i < MANY; ++i) {
    tokens[i] = start(count_one, NULL, 0);
  }
  for (int i = 0; i < MANY; ++i) {
    await_and_drop(tokens[i]);
  }
  CHECK_INT(MANY, atomic_load(&the_count));
  CHECK_NO_FAILURE();
}

static void a_group_waits_for_all(void) {
  mlir_async_object *group = mlirAsyncRuntimeCreateGroup(MANY);
  for (int i = 0; i < MANY; ++i) {
    mlir_async_object *token = start(count_one, NULL, 0);
    CHECK_INT(i, mlirAsyncRuntimeAddTokenToGroup(token, group));
    mlirAsyncRuntimeDropRef(token, 1);
  }
  mlirAsyncRuntimeAwaitAllInGroup(group);
  CHECK_INT(MANY, atomic_load(&the_count));
  CHECK(!mlirAsyncRuntimeIsGroupError(group));
  mlirAsyncRuntimeDropRef(group, 1);

  mlir_async_object *empty = mlirAsyncRuntimeCreateGroup(0);
  mlirAsyncRuntimeAwaitAllInGroup(empty);
  mlirAsyncRuntimeDropRef(empty, 1);
}

// -------------------------------------------------------------------------------------------------
// Values, and tasks that are resumed when they are available

static void add_and_end(frame *f) {
  int64_t before = *(int64_t *)mlirAsyncRuntimeGetValueStorage(f->awaits);
  mlirAsyncRuntimeDropRef(f->awaits, 1);
  mlir_async_object *value = f->own;
  *(int64_t *)mlirAsyncRuntimeGetValueStorage(value) = before + f->input;
  free(f);
  mlirAsyncRuntimeEmplaceValue(value);
}

static void wait_to_add(frame *f) {
  f->next = add_and_end;
  mlirAsyncRuntimeAwaitValueAndExecute(f->awaits, f, resume);
}

// 0 + 1 + 2 + ..., where each task adds a number and waits for the previous task.
static void values_pass_from_task_to_task(void) {
  mlir_async_object *value = mlirAsyncRuntimeCreateValue(sizeof(int64_t));
  mlir_async_object *first = value;
  for (int i = 1; i <= MANY; ++i) {
    frame *f = make_frame(wait_to_add, value, i);
    value = f->own = mlirAsyncRuntimeCreateValue(sizeof(int64_t));
    mlirAsyncRuntimeExecute(f, resume);
  }
  CHECK_INT(0, (uintptr_t)mlirAsyncRuntimeGetValueStorage(value) % 64);
  mlirAsyncRuntimeEmplaceValue(first);
  mlirAsyncRuntimeAwaitValue(value);
  CHECK_INT(MANY * (MANY + 1) / 2, *(int64_t *)mlirAsyncRuntimeGetValueStorage(value));
  mlirAsyncRuntimeDropRef(value, 1);
}

static void go_on_behind_group(frame *f) {
  CHECK_INT(3, atomic_load(&the_count));
  mlirAsyncRuntimeDropRef(f->awaits, 1);
  end_with_token(f);
}

static void wait_for_group(frame *f) {
  f->next = go_on_behind_group;
  mlirAsyncRuntimeAwaitAllInGroupAndExecute(f->awaits, f, resume);
}

static void a_task_waits_for_a_group(void) {
  mlir_async_object *group = mlirAsyncRuntimeCreateGroup(3);
  mlirAsyncRuntimeAddRef(group, 1);
  mlir_async_object *waits = start(wait_for_group, group, 0);
  for (int i = 0; i < 3; ++i) {
    mlir_async_object *token = start(count_one, NULL, 0);
    mlirAsyncRuntimeAddTokenToGroup(token, group);
    mlirAsyncRuntimeDropRef(token, 1);
  }
  await_and_drop(waits);
  mlirAsyncRuntimeDropRef(group, 1);
}

// -------------------------------------------------------------------------------------------------
// Tasks that block

static void block_and_end(frame *f) {
  if (f->input > 0) {
    await_and_drop(start(block_and_end, NULL, f->input - 1));
  }
  end_with_token(f);
}

// More tasks than the thread limit wait, each blocking its thread.
static void blocked_threads_do_not_count(void) {
  await_and_drop(start(block_and_end, NULL, 3 * mlirAsyncRuntimGetNumWorkerThreads()));
}

static void as_many_threads_as_asked_for(void) {
  setenv("AOTC_CPU_THREADS", "1", 1);
  CHECK_INT(1, mlirAsyncRuntimGetNumWorkerThreads());
  blocked_threads_do_not_count();
}

static void a_wrong_number_of_threads_is_a_failure(void) {
  setenv("AOTC_CPU_THREADS", "4x", 1);
  CHECK(mlirAsyncRuntimGetNumWorkerThreads() > 0);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "AOTC_CPU_THREADS is '4x'; expected a number from 1");
}

static void *emplace_later(void *token) {
  usleep(1000);
  mlirAsyncRuntimeEmplaceToken(token);
  return NULL;
}

static void a_thread_of_the_programs_own_is_awaited(void) {
  mlir_async_object *token = mlirAsyncRuntimeCreateToken();
  pthread_t thread;
  CHECK_INT(0, pthread_create(&thread, NULL, emplace_later, token));
  await_and_drop(token);
  pthread_join(thread, NULL);
}

// -------------------------------------------------------------------------------------------------
// Failures

static void see_failure_and_end(frame *f) {
  CHECK_CONTAINS(aotc_error_message(), "as it was told");
  mlirAsyncRuntimeDropRef(f->awaits, 1);
  end_with_token(f);
}

static void wait_for_failure(frame *f) {
  f->next = see_failure_and_end;
  mlirAsyncRuntimeAwaitTokenAndExecute(f->awaits, f, resume);
}

static void a_failure_goes_with_the_data(void) {
  mlir_async_object *failed = start(fail_and_end, NULL, 0);
  mlir_async_object *behind = start(wait_for_failure, failed, 0);
  mlir_async_object *other = start(count_one, NULL, 0);
  await_and_drop(other);
  CHECK_NO_FAILURE();
  await_and_drop(behind);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "kernel 'k': as it was told");
  // The failure is not passed on to the thread's next tasks.
  await_and_drop(start(count_one, NULL, 0));
  CHECK_NO_FAILURE();
}

static void fail_and_end_in_error(frame *f) {
  aotc_error_adopt(AOTC_ASSERTION_FAILED, "assertion failed: of a task");
  mlirAsyncRuntimeSetTokenError(f->own);
  free(f);
}

static void who_asks_for_an_error_goes_on(void) {
  mlir_async_object *tokens[] = {start(fail_and_end_in_error, NULL, 0),
                                 start(fail_and_end_in_error, NULL, 0)};
  mlirAsyncRuntimeAwaitToken(tokens[0]);
  mlirAsyncRuntimeAwaitToken(tokens[1]);
  CHECK(aotc_is_stopped());
  CHECK(mlirAsyncRuntimeIsTokenError(tokens[0]));
  CHECK(mlirAsyncRuntimeIsTokenError(tokens[1]));
  CHECK_NO_FAILURE();
  CHECK(!aotc_is_stopped());
  mlirAsyncRuntimeDropRef(tokens[0], 1);
  mlirAsyncRuntimeDropRef(tokens[1], 1);
  aotc_async_finish();
  CHECK_NO_FAILURE();
}

static void end_in_error(frame *f) {
  mlirAsyncRuntimeSetTokenError(f->own);
  free(f);
}

// The thread goes on after another one has resumed and ended the coroutine.
static void wait_and_linger(frame *f) {
  f->next = end_in_error;
  mlirAsyncRuntimeAwaitTokenAndExecute(f->awaits, f, resume);
  while (atomic_load(&the_count) == 0) {
    usleep(100);
  }
}

static void a_failure_that_was_asked_for_is_not_recorded_again(void) {
  mlir_async_object *failed = start(fail_and_end_in_error, NULL, 0);
  mlirAsyncRuntimeAwaitToken(failed);
  CHECK(mlirAsyncRuntimeIsTokenError(failed));
  mlir_async_object *behind = start(wait_and_linger, failed, 0);
  mlirAsyncRuntimeAwaitToken(behind);
  CHECK(mlirAsyncRuntimeIsTokenError(behind));
  atomic_store(&the_count, 1);
  aotc_async_finish();
  CHECK_NO_FAILURE();
  mlirAsyncRuntimeDropRef(failed, 1);
  mlirAsyncRuntimeDropRef(behind, 1);
}

static void an_assertion_that_fails_next_is_about_it(void) {
  mlir_async_object *token = start(fail_and_end_in_error, NULL, 0);
  mlirAsyncRuntimeAwaitToken(token);
  CHECK(mlirAsyncRuntimeIsTokenError(token));
  aotc_assertion_failed("awaited what is in error");
  CHECK_FAILED(AOTC_ASSERTION_FAILED, "of a task");
  mlirAsyncRuntimeDropRef(token, 1);
  aotc_assertion_failed("something else");
  CHECK_FAILED(AOTC_ASSERTION_FAILED, "something else");
}

static void a_failure_goes_through_groups(void) {
  mlir_async_object *group = mlirAsyncRuntimeCreateGroup(2);
  mlir_async_object *tokens[] = {start(fail_and_end, NULL, 0), start(count_one, NULL, 0)};
  for (int i = 0; i < 2; ++i) {
    mlirAsyncRuntimeAddTokenToGroup(tokens[i], group);
    mlirAsyncRuntimeDropRef(tokens[i], 1);
  }
  mlirAsyncRuntimeAwaitAllInGroup(group);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "as it was told");
  mlirAsyncRuntimeDropRef(group, 1);
}

static void expect_failure(frame *f) {
  CHECK_CONTAINS(aotc_error_message(), "before it all");
  end_with_token(f);
}

static void a_task_begins_with_its_makers_failure(void) {
  aotc_error_adopt(AOTC_NO_DEVICE, "before it all");
  await_and_drop(start(expect_failure, NULL, 0));
  CHECK_FAILED(AOTC_NO_DEVICE, "before it all");
}

static void a_failure_that_nobody_awaits_is_told_at_the_end(void) {
  mlirAsyncRuntimeDropRef(start(fail_and_end, NULL, 0), 1);
  mlirAsyncRuntimeDropRef(start(count_one, NULL, 0), 1);
  aotc_async_finish();
  CHECK_INT(1, atomic_load(&the_count));
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "as it was told");
  aotc_async_finish();
  CHECK_NO_FAILURE();
}

static void expect_device(frame *f) {
  CHECK_INT(f->input, aotc_default_device_get());
  end_with_token(f);
}

static void a_task_is_on_its_makers_device(void) {
  mgpuSetDefaultDevice(3);
  await_and_drop(start(expect_device, NULL, 3));
  aotc_default_device_adopt(-1);
  await_and_drop(start(expect_device, NULL, -1));
}

static void errors_are_states(void) {
  mlir_async_object *token = mlirAsyncRuntimeCreateToken();
  mlir_async_object *group = mlirAsyncRuntimeCreateGroup(1);
  mlirAsyncRuntimeAddTokenToGroup(token, group);
  CHECK(!mlirAsyncRuntimeIsGroupError(group));
  mlirAsyncRuntimeSetTokenError(token);
  CHECK(mlirAsyncRuntimeIsTokenError(token));
  CHECK(mlirAsyncRuntimeIsGroupError(group));
  mlirAsyncRuntimeAwaitAllInGroup(group);
  mlirAsyncRuntimeDropRef(group, 1);
  mlirAsyncRuntimeDropRef(token, 1);

  mlir_async_object *value = mlirAsyncRuntimeCreateValue(0);
  mlirAsyncRuntimeSetValueError(value);
  CHECK(mlirAsyncRuntimeIsValueError(value));
  mlirAsyncRuntimeDropRef(value, 1);
  CHECK_NO_FAILURE(); // the program has handled these
}

static void what_could_not_be_made_is_in_error(void) {
  CHECK(mlirAsyncRuntimeIsTokenError(NULL));
  mlirAsyncRuntimeAwaitValue(NULL);
  mlirAsyncRuntimeEmplaceToken(NULL);
  mlirAsyncRuntimeAddRef(NULL, 1);
  mlirAsyncRuntimeDropRef(NULL, 1);
  memset(mlirAsyncRuntimeGetValueStorage(NULL), 1, 64);
  mlir_async_object *group = mlirAsyncRuntimeCreateGroup(1);
  mlirAsyncRuntimeAddTokenToGroup(NULL, group);
  mlirAsyncRuntimeAwaitAllInGroup(group);
  CHECK(mlirAsyncRuntimeIsGroupError(group));
  mlirAsyncRuntimeDropRef(group, 1);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(tasks_run_and_are_awaited),
      CHECK_TEST(a_group_waits_for_all),
      CHECK_TEST(values_pass_from_task_to_task),
      CHECK_TEST(a_task_waits_for_a_group),
      CHECK_TEST(blocked_threads_do_not_count),
      CHECK_TEST(as_many_threads_as_asked_for),
      CHECK_TEST(a_wrong_number_of_threads_is_a_failure),
      CHECK_TEST(a_thread_of_the_programs_own_is_awaited),
      CHECK_TEST(a_failure_goes_with_the_data),
      CHECK_TEST(who_asks_for_an_error_goes_on),
      CHECK_TEST(a_failure_that_was_asked_for_is_not_recorded_again),
      CHECK_TEST(an_assertion_that_fails_next_is_about_it),
      CHECK_TEST(a_failure_goes_through_groups),
      CHECK_TEST(a_task_begins_with_its_makers_failure),
      CHECK_TEST(a_failure_that_nobody_awaits_is_told_at_the_end),
      CHECK_TEST(a_task_is_on_its_makers_device),
      CHECK_TEST(errors_are_states),
      CHECK_TEST(what_could_not_be_made_is_in_error),
  };
  return check_main(argc, argv, tests, (int)(sizeof(tests) / sizeof(*tests)));
}
