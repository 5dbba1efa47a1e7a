// What comes after a fork, an unload, a dlclose, and the end of the process.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "driver.h"

enum { N = 1003, FORKS = 20, UNLOADS = 200, FULL_UNLOADS = 10, OPENINGS = 50, CHILD_SECONDS = 5 };

// The driver keeps what it has for itself in steps of this many bytes.
static const size_t STEP = (size_t)4 << 20;

static float in[N], sum[N];

static void fill(void) {
  fill_numbers(in, N, 11);
  for (int i = 0; i < N; ++i) {
    sum[i] = 2 * in[i];
  }
}

static void call_good(const char *what) {
  float out[N] = {0};
  GOOD(add(in, N, in, N, out, N));
  EXPECT(memcmp(out, sum, sizeof(out)) == 0, "%s: the sum is wrong", what);
}

// -------------------------------------------------------------------------------------------------
// Forks

static void wait_for(pid_t child, const char *what) {
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child, "%s: the child is lost", what);
  EXPECT(!WIFSIGNALED(status), "%s: signal %d ended the child%s", what, WTERMSIG(status),
         WTERMSIG(status) == SIGALRM ? ": it hung" : "");
  EXPECT(WEXITSTATUS(status) == 0, "%s: the child ended with %d", what, WEXITSTATUS(status));
}

static void be_refused_as_child(void) {
  alarm(CHILD_SECONDS);
  float out[N] = {0};
  for (int i = 0; i < 3; ++i) {
    REFUSED(AOTC_UNSUPPORTED, "fork", add(in, N, in, N, out, N));
    REFUSED(AOTC_UNSUPPORTED, "fork", add_async(in, N, in, N, out, N, NULL));
    REFUSED(AOTC_UNSUPPORTED, "fork", from_first(in, N, out, N));
    REFUSED(AOTC_UNSUPPORTED, "fork", vectors_set_device(0));
    REFUSED(AOTC_INVALID_ARGUMENT, "'x'", add(NULL, N, in, N, out, N));
    EXPECT(out[0] == 0 && out[N - 1] == 0, "the child's call has written something");
    GOOD(vectors_unload());
  }
  fflush(stdout);
  _exit(0);
}

static void work_as_child(void) {
  alarm(CHILD_SECONDS);
  call_good("the child");
  fflush(stdout);
  _exit(0);
}

static void fork_once(const char *what) {
  fflush(stdout);
  pid_t child = fork();
  EXPECT(child >= 0, "no fork");
  if (child == 0) {
    if (is_on_gpu) {
      be_refused_as_child();
    } else {
      work_as_child();
    }
  }
  wait_for(child, what);
}

static void run_fork(void) {
  fill();
  call_good("before");
  for (int i = 0; i < FORKS; ++i) {
    fork_once("a fork");
    call_good("the parent, after a fork");
  }
}

static atomic_bool is_over;

static void call_until_over(int number) {
  if (number > 0) {
    while (!atomic_load(&is_over)) {
      call_good("a thread of the parent");
    }
    return;
  }
  for (int i = 0; i < FORKS; ++i) {
    fork_once("a fork, while others call");
  }
  atomic_store(&is_over, true);
}

static void run_fork_while_calling(void) {
  fill();
  call_good("before");
  run_threads(4, call_until_over);
}

// A fork before the first use: both processes have a GPU of their own.
static void run_fork_first(void) {
  fill();
  pid_t child = fork();
  EXPECT(child >= 0, "no fork");
  if (child == 0) {
    alarm(10 * CHILD_SECONDS); // it starts CUDA
    call_good("the child");
    _exit(0);
  }
  call_good("the parent");
  wait_for(child, "a fork before the first use");
}

// -------------------------------------------------------------------------------------------------
// Unloads

static void use_and_unload(void) {
  call_good("between unloads");
  if (is_on_gpu && driver_current() != NULL) {
    buffer x = buffer_make(DEVICE, N);
    CUstream stream = driver_make_stream();
    buffer_put(&x, in, N);
    GOOD(add_async(x.data, N, x.data, N, x.data, N, stream));
    // Not waited for: unload does.
    GOOD(vectors_unload());
    MUST(cu.stream_wait(stream));
    buffer_expect(&x, sum, N, "work that unload found under way");
    MUST(cu.stream_destroy(stream));
    buffer_free(&x);
  }
  GOOD(vectors_unload());
  GOOD(vectors_unload());
}

static void run_unload(void) {
  fill();
  if (!is_on_gpu) {
    for (int i = 0; i < UNLOADS; ++i) {
      use_and_unload();
    }
    return;
  }
  driver_use_primary();
  use_and_unload();
  use_and_unload();
  size_t before = driver_free_bytes();
  for (int i = 0; i < UNLOADS; ++i) {
    use_and_unload();
  }
  size_t after = driver_free_bytes();
  EXPECT(after + STEP >= before, "%zu bytes were free, and after %d unloads %zu", before, UNLOADS,
         after);
  // It takes something, and gives it back.
  float *large = need(calloc(1 << 24, sizeof(float)));
  GOOD(add(large, 1 << 24, large, 1 << 24, large, 1 << 24));
  size_t in_use = driver_free_bytes();
  EXPECT(in_use + STEP < after, "a call with 64 MiB took no memory");
  GOOD(vectors_unload());
  after = driver_free_bytes();
  EXPECT(after + STEP >= before, "%zu bytes were free, and after the last unload %zu", before,
         after);
  free(large);
}

// Nobody else holds a context: the primary one ends with each unload, and begins anew.
static void run_unload_all(void) {
  fill();
  CUdevice device = 0;
  MUST(cu.device_get(&device, 0));
  size_t before = 0;
  for (int i = 0; i < FULL_UNLOADS; ++i) {
    use_and_unload();
    EXPECT(driver_current() == NULL, "unload has left a context");
    CUcontext context = driver_use_primary();
    EXPECT(context != NULL, "no primary context");
    size_t bytes = driver_free_bytes();
    MUST(cu.context_use(NULL));
    MUST(cu.primary_release(device));
    before = i == 0 ? bytes : before;
    EXPECT(bytes + STEP >= before, "%zu bytes were free at first, and %zu after %d unloads", before,
           bytes, i + 1);
  }
}

// All that there is, and then main returns.
static void run_end(void) {
  fill();
  call_good("before the end");
  float first[N] = {0};
  GOOD(from_first(in, N, first, N));
  EXPECT(first[0] == -2 * in[0] && first[N - 1] == in[N - 1] + in[0], "from_first is wrong");
  static float a[37 * 53], b[53 * 41], c[37 * 41];
  for (int i = 0; i < 53; ++i) {
    a[i] = 1; // C's first row: the sums of B's columns
    b[41 * i] = (float)i;
  }
  GOOD(product(a, b, c));
  EXPECT(c[0] == 53 * 52 / 2 && c[1] == 0 && c[41] == 0, "product is wrong: %g %g %g", (double)c[0],
         (double)c[1], (double)c[41]);
  float one = 1;
  float two = 0;
  EXPECT(one_add(&one, 1, &one, 1, &two, 1) == AOTC_OK, "one_add: %s", one_last_error());
  EXPECT(two == 2, "1 + 1 is %g", (double)two);
}

// -------------------------------------------------------------------------------------------------
// A shared library, opened and closed

typedef struct shared {
  void *library;
  __typeof__(add) *add;
  __typeof__(vectors_last_error) *last_error;
  __typeof__(vectors_unload) *unload;
} shared;

static void find(void *library, const char *name, void *out_function) {
  void *found = dlsym(library, name);
  EXPECT(found != NULL, "%s: %s", name, dlerror());
  memcpy(out_function, &found, sizeof(found));
}

static shared open_shared(void) {
  EXPECT(the_argument != NULL, "the case needs a word: the path of libvectors.so");
  shared s = {.library = dlopen(the_argument, RTLD_NOW | RTLD_LOCAL)};
  EXPECT(s.library != NULL, "%s", dlerror());
  find(s.library, "add", &s.add);
  find(s.library, "vectors_last_error", &s.last_error);
  find(s.library, "vectors_unload", &s.unload);
  EXPECT(s.add != add, "the shared library's add is the static one");
  return s;
}

static void use_shared(const shared *s) {
  float out[N] = {0};
  int32_t status = s->add(in, N, in, N, out, N);
  EXPECT(status == AOTC_OK, "the shared library's add: status %d: %s", (int)status,
         s->last_error());
  EXPECT(memcmp(out, sum, sizeof(out)) == 0, "the shared library's sum is wrong");
}

static void open_use_close(bool unloads) {
  shared s = open_shared();
  use_shared(&s);
  EXPECT(!unloads || s.unload() == AOTC_OK, "unload: %s", s.last_error());
  EXPECT(dlclose(s.library) == 0, "%s", dlerror());
}

static void run_dlopen(void) {
  fill();
  if (is_on_gpu) {
    driver_use_primary();
  }
  open_use_close(true);
  open_use_close(true);
  size_t before = is_on_gpu ? driver_free_bytes() : 0;
  for (int i = 0; i < OPENINGS; ++i) {
    open_use_close(true);
  }
  size_t after = is_on_gpu ? driver_free_bytes() : 0;
  EXPECT(after + STEP >= before, "%zu bytes were free, and after %d times %zu", before, OPENINGS,
         after);
  // Without unload what it has stays with the process, which goes on all the same.
  for (int i = 0; i < 5; ++i) {
    open_use_close(false);
  }
  pid_t child = fork();
  EXPECT(child >= 0, "no fork");
  if (child == 0) {
    _exit(0); // no handler of a library that is gone was called
  }
  wait_for(child, "a fork after dlclose");
  call_good("the static library, afterwards");
}

const library_case lifetime_cases[] = {
    {"lifetimes-fork", "forks after use", run_fork, true, false},
    {"lifetimes-fork-calling", "forks while other threads call", run_fork_while_calling, true,
     false},
    {"lifetimes-fork-first", "a fork before the first use", run_fork_first, true, true},
    {"lifetimes-unload", "200 unloads", run_unload, true, false},
    {"lifetimes-unload-all", "unloads that end the primary context", run_unload_all, false, false},
    {"lifetimes-end", "the end without unload", run_end, true, false},
    {"lifetimes-dlopen", "a shared library (its path is the word), 50 times", run_dlopen, true,
     false},
    {NULL, NULL, NULL, false, false},
};
