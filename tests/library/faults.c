// Every driver call of a generated library's calls made to fail, by the fake driver, once each.
//
//   faults plain|async RESULT    prints how many calls were failed; exit code 1 with a reason
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_driver.h"
#include "vector_add.h"

enum { N = 1000, ILLEGAL_ADDRESS = 700, OUT_OF_MEMORY = 2 };

static fake_driver *driver;
static int (*allocate)(uint64_t *address, size_t bytes);
static int (*release)(uint64_t address);
static int (*start)(unsigned int flags);
static int (*get_device)(int *device, int ordinal);
static int (*retain)(void **context, int device);
static int (*make_current)(void *context);
static int hook_calls;

static void find(void *library, const char *name, void *function) {
  *(void **)function = dlsym(library, name);
  if (*(void **)function == NULL) {
    fprintf(stderr, "faults: no %s\n", name);
    exit(2);
  }
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "faults: %s\n", dlerror());
    exit(2);
  }
  fake_driver *(*get)(void);
  find(library, "fake_driver_get", (void *)&get);
  find(library, "cuMemAlloc_v2", (void *)&allocate);
  find(library, "cuMemFree_v2", (void *)&release);
  find(library, "cuInit", (void *)&start);
  find(library, "cuDeviceGet", (void *)&get_device);
  find(library, "cuDevicePrimaryCtxRetain", (void *)&retain);
  find(library, "cuCtxPushCurrent_v2", (void *)&make_current);
  driver = get();
}

static void hook(int32_t status, const char *message, void *data) {
  (void)data;
  hook_calls += status != 0 && message[0] != '\0';
}

static float x[N], y[N], z[N];

// One call. For the asynchronous form, memory and context are the caller's own.
static int32_t call(int is_async) {
  if (!is_async) {
    return vector_add(x, N, y, N, z, N);
  }
  static uint64_t buffers[3];
  if (buffers[0] == 0) {
    void *context = NULL;
    int device = 0;
    if (start(0) != 0 || get_device(&device, 0) != 0 || retain(&context, device) != 0 ||
        make_current(context) != 0) {
      _exit(2);
    }
    for (int i = 0; i < 3; ++i) {
      if (allocate(&buffers[i], N * sizeof(float)) != 0) {
        _exit(2);
      }
    }
  }
  return vector_add_async((float *)(uintptr_t)buffers[0], N, (float *)(uintptr_t)buffers[1], N,
                          (float *)(uintptr_t)buffers[2], N, NULL);
}

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "call %d, %s, result %d: not so: %s; status %d, '%s'\n", fail_at,            \
              driver->failed_symbol != NULL ? driver->failed_symbol : "-", result, #condition,     \
              (int)status, vector_add_last_error());                                               \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

// A context need not tell its id, and memory is asked for once more when unused buffers are freed.
static int is_survived(const char *symbol, int result) {
  return strcmp(symbol, "cuCtxGetId") == 0 ||
         (strcmp(symbol, "cuMemAlloc_v2") == 0 && result == OUT_OF_MEMORY);
}

// In a process of its own: the first calls of a library are part of it.
static void attempt(int is_async, int result, int fail_at) {
  int32_t status = 0;
  vector_add_set_error_hook(hook, NULL);
  if (is_async) {
    EXPECT(call(1) == 0); // makes the caller's context and memory
    EXPECT(vector_add_unload() == 0);
  }
  int before = driver->live_memory;
  driver->fail_result = result;
  driver->fail_at = fail_at; // counts down
  status = call(is_async);
  const char *failed = driver->failed_symbol;
  if (failed == NULL) {
    EXPECT(status == 0);
    _exit(77); // there are not so many calls
  }
  driver->fail_at = 0;
  if (status == 0) {
    EXPECT(is_survived(failed, result));
  } else {
    char name[64];
    snprintf(name, sizeof(name), "%s", failed);
    char *version = strstr(name, "_v2");
    if (version != NULL) {
      *version = '\0';
    }
    EXPECT(strstr(vector_add_last_error(), name) != NULL);
    EXPECT(vector_add_status() == status);
    EXPECT(hook_calls == 1);
    EXPECT(result != OUT_OF_MEMORY || status == AOTC_OUT_OF_MEMORY ||
           strstr("cuInit cuDeviceGet cuDriverGetVersion", name) != NULL);
    EXPECT(result != ILLEGAL_ADDRESS || status == AOTC_LAUNCH_FAILED);
    int launches = driver->launch_count;
    EXPECT(launches <= 1 + is_async);
  }

  // The next call forgets it, and works; nothing is lost.
  status = call(is_async);
  EXPECT(status == 0);
  EXPECT(vector_add_last_error()[0] == '\0');
  status = vector_add_unload();
  EXPECT(status == 0);
  EXPECT(driver->live_memory == before);
  EXPECT(driver->live_modules == 0);
  EXPECT(driver->live_events == 0);
  EXPECT(driver->violation[0] == '\0');
  _exit(0);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    return 2;
  }
  int is_async = strcmp(argv[1], "async") == 0;
  int result = atoi(argv[2]);
  open_driver();
  int failed = 0;
  for (int fail_at = 1;; ++fail_at) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      attempt(is_async, result, fail_at);
    }
    int state = 0;
    if (child < 0 || waitpid(child, &state, 0) != child || !WIFEXITED(state)) {
      fprintf(stderr, "call %d, result %d: the process crashed\n", fail_at, result);
      return 1;
    }
    if (WEXITSTATUS(state) == 77) {
      break;
    }
    if (WEXITSTATUS(state) != 0) {
      return WEXITSTATUS(state);
    }
    ++failed;
  }
  printf("%d\n", failed);
  return 0;
}
