// What the CPU device can launch: kernels of registered modules that have a CPU form, in sizes that
// CUDA also accepts.
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define ONE ((cpu_sizes){1, 1, 1})
#define THREADS ((cpu_sizes){3, 2, 1})

static void note_level(void *const *parameters, const aotc_cpu_block *block) {
  **(int64_t *const *)parameters[0] = block->level;
}

static const aotc_cpu_kernel kernels[] = {
    {.name = "note_level", .run = note_level},
    {.name = "note_block", .run = cpu_module_note_block},
    {.name = "hard", .why_not = "it uses gpu.barrier"},
};
#define COUNT (sizeof(kernels) / sizeof(kernels[0]))

static void *load(const char *threads) {
  return cpu_module_load(kernels, COUNT, threads);
}

static void refused(void *module, intptr_t gx, intptr_t gy, intptr_t gz, intptr_t bx, intptr_t by,
                    intptr_t bz, int32_t shared_bytes, const char *why) {
  atomic_int seen[1] = {0};
  void *argument = seen;
  void *parameters[] = {&argument};
  mgpuLaunchKernel(mgpuModuleGetFunction(module, "note_block"), gx, gy, gz, bx, by, bz,
                   shared_bytes, NULL, parameters, NULL, 1);
  CHECK_INT(0, seen[0]);
  CHECK_CONTAINS(aotc_error_message(), "mgpuLaunchKernel: ");
  CHECK_CONTAINS(aotc_error_message(), "kernel 'note_block' of module 'kernels', built for sm_90");
  CHECK_FAILED(AOTC_LAUNCH_FAILED, why);
}

static void sizes_that_cuda_refuses_are_refused(void) {
  void *module = load("2");
  refused(module, 0, 1, 1, 1, 1, 1, 0, "grid 0 x 1 x 1");
  refused(module, 1, -1, 1, 1, 1, 1, 0, "grid 1 x -1 x 1");
  refused(module, 1, 1, 0, 1, 1, 1, 0, "the grid must be from");
  refused(module, 2147483648, 1, 1, 1, 1, 1, 0, "grid 2147483648 x 1 x 1");
  refused(module, 1, 65536, 1, 1, 1, 1, 0, "the grid must be from");
  refused(module, 1, 1, 65536, 1, 1, 1, 0, "the grid must be from");
  refused(module, 4294967297, 1, 1, 1, 1, 1, 0, "grid 4294967297 x 1 x 1");
  refused(module, 1, 1, 1, 0, 1, 1, 0, "a block must be from");
  refused(module, 1, 1, 1, 1025, 1, 1, 0, "block 1025 x 1 x 1");
  refused(module, 1, 1, 1, 1, 1025, 1, 0, "a block must be from");
  refused(module, 1, 1, 1, 1, 1, 65, 0, "a block must be from");
  refused(module, 1, 1, 1, 32, 33, 1, 0, "a block must be from");
  refused(module, 1, 1, 1, 1, 1, 1, -1, "must not be negative");
}

static void kernel_without_cpu_form_is_named(void) {
  cpu_module_launch(load("2"), "hard", ONE, THREADS, 0, NULL);
  CHECK_TEXT("mgpuLaunchKernel: kernel 'hard' of module 'kernels' cannot run on the CPU: it uses "
             "gpu.barrier; the CPU was requested",
             aotc_error_message());
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "");
}

static void kernel_that_is_not_listed_is_named(void) {
  cpu_module_launch(load("2"), "unheard_of", ONE, THREADS, 0, NULL);
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "kernel 'unheard_of' of module 'kernels' cannot run on the CPU: "
                                   "the module does not list it");
}

static void unregistered_module_has_no_cpu_kernels(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  cpu_module_launch(cpu_module_load_image(), "note_block", ONE, THREADS, 0, NULL);
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "the module was not registered");
}

static void registration_may_come_after_loading(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  void *module = cpu_module_load_image();
  cpu_module_register(kernels, COUNT);
  cpu_module_check_coverage(module, 3, 3, 3);
  CHECK_NO_FAILURE();
}

static void registration_ends_with_the_module(void) {
  void *module = load("2");
  cpu_module_check_coverage(module, 2, 2, 2);
  mgpuModuleUnload(module);
  cpu_module_launch(cpu_module_load_image(), "note_block", ONE, THREADS, 0, NULL);
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "the module was not registered");
}

static void unknown_description_is_refused(void) {
  static char image[1];
  static const aotc_module_info newer = {
      .version = AOTC_MODULE_INFO_VERSION + 1,
      .kernel_count = COUNT,
      .image = image,
      .image_bytes = sizeof(image),
      .name = "kernels",
      .built_for = "sm_90",
      .kernels = kernels,
  };
  aotc_module_register(&newer);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "description has version 6, this runtime knows version 5");
}

static void clusters_of_one_block_run(void) {
  void *module = load("2");
  atomic_int seen[4] = {0};
  void *argument = seen;
  void *parameters[] = {&argument};
  void *function = mgpuModuleGetFunction(module, "note_block");
  mgpuLaunchClusterKernel(function, 1, 1, 1, 4, 1, 1, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_NO_FAILURE();
  CHECK_INT(30201, seen[3]);
  mgpuLaunchKernelCooperative(function, 1, 1, 1, 0, 0, 0, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_NO_FAILURE();
  CHECK_INT(60402, seen[0]);
  mgpuLaunchClusterKernel(function, 2, 1, 1, 4, 1, 1, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_CONTAINS(aotc_error_message(), "cluster 2 x 1 x 1");
  CHECK_FAILED(AOTC_UNSUPPORTED, "mgpuLaunchClusterKernel: the CPU device has no thread block "
                                 "clusters: kernel 'note_block'");
  mgpuLaunchClusterKernel(function, 3, 1, 1, 4, 1, 1, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "the grid must be whole clusters");
  mgpuLaunchKernelCooperative(function, 4, 1, 1, 0, 0, 0, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, "the CPU device cannot run a cooperative grid");
  CHECK_INT(30201, seen[3]);
}

static int64_t level_with(const char *asked) {
  int64_t level = -1;
  setenv("AOTC_CPU_LEVEL", asked, 1);
  cpu_module_launch(load("1"), "note_level", ONE, THREADS, 0, &level);
  CHECK_NO_FAILURE();
  return level;
}

static void level_is_the_processors(void) {
  int64_t level = level_with("4");
#ifdef __x86_64__
  CHECK(level == 1 || level == 3 || level == 4);
#else
  CHECK_INT(0, level);
#endif
}

static void level_can_be_made_lower(void) {
#ifdef __x86_64__
  CHECK_INT(1, level_with("1"));
#else
  CHECK_INT(0, level_with("1"));
#endif
}

// An entry reuses the temporary memory of the previous call, unless the sizes differ much.
static void freed_memory_is_used_again(void) {
  load("2");
  void *first = mgpuMemAlloc(1 << 20, NULL, 0);
  mgpuMemFree(first, NULL);
  void *second = mgpuMemAlloc((1 << 20) - 4096, NULL, 0);
  CHECK(first == second);
  void *third = mgpuMemAlloc(1 << 20, NULL, 0);
  CHECK(third != second);
  mgpuMemFree(second, NULL);
  mgpuMemFree(third, NULL);
  void *small = mgpuMemAlloc(1 << 18, NULL, 0);
  CHECK(small != second && small != third);
  mgpuMemFree(small, NULL);
  aotc_unload();
  CHECK_NO_FAILURE();
}

// Memory of at least a huge page begins at one, and is used again although it is rounded up.
static void large_memory_is_in_huge_pages(void) {
  static const uint64_t sizes[] = {2 << 20, (2 << 20) + 64, (3 << 20) - 64, 9 << 20};
  load("2");
  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
    char *first = mgpuMemAlloc(sizes[i], NULL, 0);
    CHECK_INT(0, (uintptr_t)first % (2 << 20));
    first[sizes[i] - 1] = 1;
    mgpuMemFree(first, NULL);
    char *second = mgpuMemAlloc(sizes[i], NULL, 0);
    CHECK(first == second);
    mgpuMemFree(second, NULL);
  }
  aotc_unload();
  CHECK_NO_FAILURE();
}

// Memory that is rounded up to a huge page is used again, wherever the system places it: there may
// be almost another huge page behind it.
static void memory_just_below_a_huge_page_is_used_again(void) {
  enum { BYTES = 2025740, PLACES = 16, APART = 32 * 4096 };
  void *between[PLACES];
  CHECK_INT(1, mallopt(M_MMAP_THRESHOLD, 1 << 20));
  for (int i = 0; i < PLACES; ++i) {
    between[i] = mmap(NULL, APART, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(between[i] != MAP_FAILED);
    load("2");
    char *first = mgpuMemAlloc(BYTES, NULL, 0);
    first[BYTES - 1] = 1;
    mgpuMemFree(first, NULL);
    char *second = mgpuMemAlloc(BYTES, NULL, 0);
    // The system clears memory.
    CHECK_INT(1, second[BYTES - 1]);
    mgpuMemFree(second, NULL);
    aotc_unload();
  }
  for (int i = 0; i < PLACES; ++i) {
    munmap(between[i], APART);
  }
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(sizes_that_cuda_refuses_are_refused),
      CHECK_TEST(kernel_without_cpu_form_is_named),
      CHECK_TEST(kernel_that_is_not_listed_is_named),
      CHECK_TEST(unregistered_module_has_no_cpu_kernels),
      CHECK_TEST(registration_may_come_after_loading),
      CHECK_TEST(registration_ends_with_the_module),
      CHECK_TEST(unknown_description_is_refused),
      CHECK_TEST(clusters_of_one_block_run),
      CHECK_TEST(level_is_the_processors),
      CHECK_TEST(level_can_be_made_lower),
      CHECK_TEST(freed_memory_is_used_again),
      CHECK_TEST(large_memory_is_in_huge_pages),
      CHECK_TEST(memory_just_below_a_huge_page_is_used_again),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
