// two_loaded FILE ENTRY LAST_ERROR FILE ENTRY LAST_ERROR: two libraries with vector_add, opened
// with RTLD_LOCAL, and the names of two of their functions, which may be the same.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// So many that the CPU's threads are started, which must be gone before the library is.
#define COUNT 65536

typedef int32_t (*call_function)(const float *, int64_t, const float *, int64_t, float *, int64_t);
typedef const char *(*text_function)(void);

typedef struct library {
  void *handle;
  call_function call;
  text_function last_error;
} library;

static int load(library *out, const char *path, const char *call, const char *last_error) {
  out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (out->handle == NULL) {
    printf("%s\n", dlerror());
    return 0;
  }
  *(void **)&out->call = dlsym(out->handle, call);
  *(void **)&out->last_error = dlsym(out->handle, last_error);
  return out->call != NULL && out->last_error != NULL;
}

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("line %d: %s\n", __LINE__, #condition);                                               \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

int main(int argc, char **argv) {
  static float x[COUNT], z[COUNT];
  library one, two;
  CHECK(argc == 7);
  for (int i = 0; i < COUNT; ++i) {
    x[i] = (float)i;
  }
  CHECK(load(&one, argv[1], argv[2], argv[3]) && load(&two, argv[4], argv[5], argv[6]));
  CHECK(one.handle != two.handle && one.call != two.call);
  CHECK(one.call(x, COUNT, x, COUNT, z, COUNT) == 0 && z[COUNT - 1] == 2 * (COUNT - 1));
  CHECK(two.call(x, COUNT, x, COUNT, z, COUNT) == 0 && z[2] == 4);
  CHECK(one.call(x, -4, x, COUNT, z, 4) == 1);
  CHECK(strstr(one.last_error(), "-4") != NULL && strcmp(two.last_error(), "") == 0);
  // The other goes on when one is gone.
  CHECK(two.call(x, COUNT, x, COUNT, z, -7) == 1);
  CHECK(dlclose(two.handle) == 0);
  CHECK(strstr(one.last_error(), "-4") != NULL);
  CHECK(one.call(x, COUNT, x, COUNT, z, COUNT) == 0 && z[1] == 2);
  CHECK(dlclose(one.handle) == 0);
  printf("both are right\n");
  return 0;
}
