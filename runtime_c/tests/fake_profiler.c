// A profiler, loaded by NVTX_INJECTION64_PATH, that prints the begin and end of ranges. It checks
// strictly that the tables it is given match the types of NVTX's header.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*function_pointer)(void);

typedef struct callbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, function_pointer ***out_table,
                                   unsigned int *out_size);
} callbacks;

typedef struct version_info {
  size_t struct_size;
  uint32_t version, reserved;
  void (*set_injection_version)(uint32_t version);
} version_info;

static void expect(int condition, const char *what) {
  if (!condition) {
    fprintf(stderr, "profiler: not as expected: %s\n", what);
    abort();
  }
}

static int push(const char *message) {
  fprintf(stderr, "profiler: begins %s\n", message);
  return 0;
}

static int pop(void) {
  fprintf(stderr, "profiler: ends\n");
  return 0;
}

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t table));

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t table)) {
  static const unsigned int sizes[] = {0, 16, 9, 15, 7, 16, 7}; // by module, from 1 on
  fprintf(stderr, "profiler: starts\n");
  const version_info *version = get_export_table(3);
  expect(version != NULL && version->struct_size == sizeof(*version), "the version's table");
  expect(version->version == 3, "the version");
  version->set_injection_version(3);
  expect(get_export_table(99) == NULL, "a table that there is not");
  const callbacks *tables = get_export_table(1);
  expect(tables != NULL && tables->struct_size == sizeof(*tables), "the callbacks' table");
  for (int module = 1; module <= 6; ++module) {
    function_pointer **table = NULL;
    unsigned int size = 0;
    expect(tables->get_module_function_table(module, &table, &size) == 1, "a module");
    expect(size == sizes[module] && table[0] == NULL && table[size] == NULL, "a module's table");
    for (unsigned int i = 1; i < size; ++i) {
      expect(table[i] != NULL, "a module's function");
    }
    if (module == 1) {
      *table[9] = (function_pointer)push;
      *table[11] = (function_pointer)pop;
    }
  }
  expect(tables->get_module_function_table(7, NULL, NULL) == 0, "a module that there is not");
  return 1;
}
