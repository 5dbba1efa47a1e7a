// Entries for tests of calls: they do their kernels' work on the host.
#include "entries.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

_Thread_local entries_seen the_seen;

static char image[] = FAKE_IMAGE("90", "add");
static void *the_module;

static void no_block(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
}

static const aotc_cpu_kernel kernels[] = {{.name = "add", .run = no_block}};
static const aotc_module_info info = {
    AOTC_MODULE_INFO_VERSION, 1, image, sizeof(image), "kernels", "sm_90", kernels, 0, 0, NULL,
};

void entries_load(const char *device) {
  if (device != NULL) {
    setenv("AOTC_DEVICE", device, 1);
  }
  aotc_module_register(&info);
  the_module = mgpuModuleLoad(image, sizeof(image));
}

void *entries_module(void) {
  return the_module;
}

static void look(void **values) {
  aotc_device device;
  bool is_cuda = aotc_status_get() == AOTC_OK && aotc_device_is_resolved() &&
                 aotc_device_resolve(&device) == AOTC_OK && device.kind == AOTC_DEVICE_CUDA;
  ++the_seen.calls;
  for (int i = 0; i < 3; ++i) {
    const vector *v = values[i];
    the_seen.pointers[i] = v->aligned;
    the_seen.kinds[i] = is_cuda ? fake_kind_of((float *)v->aligned + v->offset) : FAKE_UNKNOWN;
  }
}

// The launch, and the computation it stands for.
static void call_add(void **values) {
  int value = 7;
  void *parameters[] = {&value};
  look(values);
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(mgpuModuleGetFunction(the_module, "add"), 1, 1, 1, 32, 1, 1, 0, stream,
                   parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
  if (aotc_status_get() != AOTC_OK) {
    return;
  }
  const vector *a = values[0], *b = values[1], *c = values[2];
  for (int64_t i = 0; i + 1 < c->size; ++i) {
    ((float *)c->aligned)[c->offset + i * c->stride] =
        ((float *)a->aligned)[a->offset + i * a->stride] +
        ((float *)b->aligned)[b->offset + i * b->stride];
  }
}

static void call_managed(void **values) {
  *(float *)((const vector *)values[0])->aligned += 1;
  call_add(values);
}

static const int64_t four[] = {4};
static const int64_t dynamic[] = {AOTC_DYNAMIC};
#define ARGUMENT(name_, read, written, memory_)                                                    \
  {.name = (name_),                                                                                \
   .type = "memref<4xf32>",                                                                        \
   .dtype = AOTC_DTYPE_F32,                                                                        \
   .rank = 1,                                                                                      \
   .shape = four,                                                                                  \
   .is_read = (read),                                                                              \
   .is_written = (written),                                                                        \
   .memory = (memory_),                                                                            \
   .aliases = -1}
#define STRIDED(name_, read, written)                                                              \
  {.name = (name_),                                                                                \
   .type = "memref<?xf32, strided<[?], offset: ?>>",                                               \
   .dtype = AOTC_DTYPE_F32,                                                                        \
   .rank = 1,                                                                                      \
   .shape = dynamic,                                                                               \
   .strides = dynamic,                                                                             \
   .offset = AOTC_DYNAMIC,                                                                         \
   .is_read = (read),                                                                              \
   .is_written = (written),                                                                        \
   .memory = AOTC_MEMORY_DEVICE,                                                                   \
   .aliases = -1}

static const aotc_value add_arguments[] = {
    ARGUMENT("A", true, false, AOTC_MEMORY_DEVICE),
    ARGUMENT("B", true, false, AOTC_MEMORY_DEVICE),
    ARGUMENT("C", false, true, AOTC_MEMORY_DEVICE),
};
static const aotc_value strided_arguments[] = {
    STRIDED("A", true, false),
    STRIDED("B", true, false),
    STRIDED("C", false, true),
};
static const aotc_value managed_arguments[] = {
    ARGUMENT("A", true, true, AOTC_MEMORY_MANAGED),
    ARGUMENT("B", true, false, AOTC_MEMORY_DEVICE),
    ARGUMENT("C", false, true, AOTC_MEMORY_DEVICE),
};
static const aotc_value host_arguments[] = {
    ARGUMENT("A", true, true, AOTC_MEMORY_HOST),
    ARGUMENT("B", true, false, AOTC_MEMORY_DEVICE),
    ARGUMENT("C", false, true, AOTC_MEMORY_DEVICE),
};

const aotc_entry entry_add = {
    .name = "add", .argument_count = 3, .arguments = add_arguments, .call = call_add};
const aotc_entry entry_strided = {
    .name = "strided", .argument_count = 3, .arguments = strided_arguments, .call = call_add};
const aotc_entry entry_managed = {.name = "managed",
                                  .argument_count = 3,
                                  .arguments = managed_arguments,
                                  .call = call_managed,
                                  .touches_memory_on_host = true,
                                  .why_not_async =
                                      "host code of 'managed' reads what a kernel wrote"};
const aotc_entry entry_host = {.name = "host",
                               .argument_count = 3,
                               .arguments = host_arguments,
                               .call = call_managed,
                               .touches_memory_on_host = true};

vector vector_at(void *pointer) {
  vector made;
  aotc_entry_describe(&add_arguments[0], pointer, NULL, &made);
  return made;
}

aotc_status entries_call(const aotc_entry *entry, vector a, vector b, vector c) {
  void *values[] = {&a, &b, &c};
  return aotc_entry_call(entry, values);
}

int entries_count_calls(const fake_driver *driver, int since, const char *symbol) {
  int count = 0;
  for (int i = since; i < driver->call_count; ++i) {
    count += strcmp(driver->log[i], symbol) == 0 ? 1 : 0;
  }
  return count;
}

float *entries_make(aotc_memory_kind kind, float first) {
  void *memory = NULL;
  CHECK_INT(AOTC_OK, aotc_memory_allocate(kind, 4 * sizeof(float), &memory));
  float *values = memory;
  for (int i = 0; i < 4; ++i) {
    values[i] = first * (float)(i + 1);
  }
  return values;
}

void entries_check_sum(const float *c, float first, float last) {
  for (int i = 0; i < 3; ++i) {
    CHECK(c[i] == first * (float)(i + 1));
  }
  CHECK(c[3] == last);
}
