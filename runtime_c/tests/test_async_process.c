// The async runtime in a process that forks, and in one that cannot create threads, which
// sanitizers do not support.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "async_task.h"
#include "check.h"

static void run_in_child(void *unused) {
  (void)unused;
  await_and_drop(start(count_one, NULL, 0));
  CHECK_INT(2, atomic_load(&the_count));
}

static void a_forked_child_has_threads_of_its_own(void) {
  await_and_drop(start(count_one, NULL, 0));
  CHECK(check_in_child(run_in_child, NULL));
  await_and_drop(start(count_one, NULL, 0));
}

// Leaves no address space for another stack.
static void no_thread_can_be_made(void) {
  char line[64];
  FILE *file = fopen("/proc/self/statm", "r");
  long pages = file != NULL && fgets(line, sizeof(line), file) != NULL ? strtol(line, NULL, 10) : 0;
  rlim_t bytes = ((rlim_t)pages * 4096) + (1 << 20);
  CHECK(file != NULL && fclose(file) == 0 && pages > 0);
  CHECK_INT(0, setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}));
  mlir_async_object *tokens[3];
  for (int i = 0; i < 3; ++i) {
    tokens[i] = start(count_one, NULL, 0);
  }
  CHECK_INT(0, atomic_load(&the_count)); // they run on the thread that waits
  mlir_async_object *failed = start(fail_and_end, NULL, 0);
  for (int i = 0; i < 3; ++i) {
    await_and_drop(tokens[i]);
  }
  CHECK_INT(3, atomic_load(&the_count));
  CHECK_NO_FAILURE();
  await_and_drop(failed);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "as it was told");
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(a_forked_child_has_threads_of_its_own),
      CHECK_TEST(no_thread_can_be_made),
  };
  return check_main(argc, argv, tests, (int)(sizeof(tests) / sizeof(*tests)));
}
