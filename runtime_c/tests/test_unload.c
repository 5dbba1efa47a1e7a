// The runtime as a shared library that is closed while its workers run. The argument is its path.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "fake_driver.h"

static const char *the_library;
static char image[] = "an image that nobody looks at";
static atomic_int the_blocks;

static void count_block(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
  atomic_fetch_add(&the_blocks, 1);
}

static const aotc_cpu_kernel kernels[] = {{.name = "count", .run = count_block}};
static const aotc_module_info info = {
    AOTC_MODULE_INFO_VERSION, 1, image, sizeof(image), "kernels", "sm_90", kernels, 0, 0, NULL,
};

// The functions of a loaded library.
typedef struct runtime {
  void *library;
  void (*module_register)(const aotc_module_info *);
  void *(*module_load)(void *, size_t);
  void *(*module_get_function)(void *, const char *);
  void (*launch)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, int32_t,
                 void *, void **, void **, size_t);
  aotc_status (*status_get)(void);
  aotc_status (*entry_call)(const aotc_entry *, void **);
  aotc_status (*unload)(void);
} runtime;

static void find(void *library, const char *name, void *out_function) {
  void *address = dlsym(library, name);
  CHECK(address != NULL);
  memcpy(out_function, &address, sizeof(address));
}

static runtime open_runtime(void) {
  runtime r = {.library = dlopen(the_library, RTLD_NOW | RTLD_LOCAL)};
  if (r.library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  find(r.library, "aotc_module_register", &r.module_register);
  find(r.library, "mgpuModuleLoad", &r.module_load);
  find(r.library, "mgpuModuleGetFunction", &r.module_get_function);
  find(r.library, "mgpuLaunchKernel", &r.launch);
  find(r.library, "aotc_status_get", &r.status_get);
  find(r.library, "aotc_entry_call", &r.entry_call);
  find(r.library, "aotc_unload", &r.unload);
  return r;
}

static void open_launch_close(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  setenv("AOTC_CPU_THREADS", "8", 1);
  atomic_store(&the_blocks, 0);
  runtime r = open_runtime();
  r.module_register(&info);
  void *module = r.module_load(image, sizeof(image));
  r.launch(r.module_get_function(module, "count"), 1000, 1, 1, 1, 1, 1, 256, NULL, NULL, NULL, 0);
  CHECK_INT(AOTC_OK, r.status_get());
  CHECK_INT(1000, atomic_load(&the_blocks));
  CHECK_INT(0, dlclose(r.library));
  CHECK(dlopen(the_library, RTLD_NOW | RTLD_NOLOAD) == NULL);
}

static void workers_end_with_the_library(void) {
  for (int i = 0; i < 20; ++i) {
    open_launch_close();
  }
}

static void do_nothing(void *unused) {
  (void)unused;
}

static void forks_work_after_the_library_is_gone(void) {
  open_launch_close();
  CHECK(check_in_child(do_nothing, NULL));
}

static int count_threads(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  for (const struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
    count += e->d_name[0] != '.' ? 1 : 0;
  }
  if (folder != NULL) {
    closedir(folder);
  }
  return count;
}

static void unload_ends_the_workers(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  setenv("AOTC_CPU_THREADS", "8", 1);
  runtime r = open_runtime();
  r.module_register(&info);
  void *module = r.module_load(image, sizeof(image));
  for (int round = 1; round <= 3; ++round) {
    r.launch(r.module_get_function(module, "count"), 1000, 1, 1, 1, 1, 1, 256, NULL, NULL, NULL, 0);
    CHECK_INT(1000 * round, atomic_load(&the_blocks));
    CHECK_INT(8, count_threads());
    CHECK_INT(AOTC_OK, r.unload());
    CHECK_INT(1, count_threads());
  }
  CHECK_INT(0, dlclose(r.library));
}

static char gpu_image[] = FAKE_IMAGE("90", "count");
static const aotc_module_info gpu_info = {
    AOTC_MODULE_INFO_VERSION,
    1,
    gpu_image,
    sizeof(gpu_image),
    "kernels",
    "sm_90",
    kernels,
    0,
    0,
    NULL,
};
static const runtime *the_runtime;
static void *the_module;

static void call_count(void **values) {
  the_runtime->launch(the_runtime->module_get_function(the_module, "count"), 1, 1, 1, 1, 1, 1, 0,
                      NULL, values, NULL, 0);
}

static const int64_t four[] = {4};
static const aotc_value arguments[] = {{.name = "x",
                                        .type = "memref<4xf32>",
                                        .dtype = AOTC_DTYPE_F32,
                                        .rank = 1,
                                        .shape = four,
                                        .is_read = true,
                                        .is_written = true,
                                        .memory = AOTC_MEMORY_DEVICE,
                                        .aliases = -1}};
static const aotc_entry entry = {
    .name = "count", .argument_count = 1, .arguments = arguments, .call = call_count};

static void unload_and_close_leave_nothing_on_the_gpu(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  fake_driver *(*get)(void) = NULL;
  find(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "fake_driver_get", &get);
  const fake_driver *driver = get();
  for (int round = 1; round <= 5; ++round) {
    runtime r = open_runtime();
    the_runtime = &r;
    r.module_register(&gpu_info);
    the_module = r.module_load(gpu_image, sizeof(gpu_image));
    float x[] = {1, 2, 3, 4};
    struct {
      void *allocated, *aligned;
      int64_t offset, size, stride;
    } memref = {x, x, 0, 4, 1};
    CHECK_INT(AOTC_OK, r.entry_call(&entry, (void *[]){&memref}));
    CHECK_INT(round, driver->launch_count);
    CHECK_INT(1, driver->live_memory);
    CHECK_INT(AOTC_OK, r.unload());
    CHECK_INT(0, driver->live_memory + driver->live_modules + driver->primary_references);
    CHECK_INT(0, dlclose(r.library));
  }
  CHECK_TEXT("", driver->violation);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(workers_end_with_the_library),
      CHECK_TEST(unload_ends_the_workers),
      CHECK_TEST(unload_and_close_leave_nothing_on_the_gpu),
      CHECK_TEST(forks_work_after_the_library_is_gone),
  };
  if (argc < 2) {
    fprintf(stderr, "usage: test_unload LIBRARY [TEST...]\n");
    return 2;
  }
  the_library = argv[1];
  return check_main(argc - 1, argv + 1, tests, sizeof(tests) / sizeof(tests[0]));
}
