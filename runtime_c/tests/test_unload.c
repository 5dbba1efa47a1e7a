// The runtime as a shared library that is closed while its worker threads exist. Takes its path.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_runtime.h"
#include "check.h"

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
    AOTC_MODULE_INFO_VERSION, 1, image, sizeof(image), "kernels", "sm_90", kernels,
};

// The functions of one opening of the library.
typedef struct runtime {
  void *library;
  void (*module_register)(const aotc_module_info *);
  void *(*module_load)(void *, size_t);
  void *(*module_get_function)(void *, const char *);
  void (*launch)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, int32_t,
                 void *, void **, void **, size_t);
  aotc_status (*status_get)(void);
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

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(workers_end_with_the_library),
      CHECK_TEST(forks_work_after_the_library_is_gone),
  };
  if (argc < 2) {
    fprintf(stderr, "usage: test_unload LIBRARY [TEST...]\n");
    return 2;
  }
  the_library = argv[1];
  return check_main(argc - 1, argv + 1, tests, sizeof(tests) / sizeof(tests[0]));
}
