// cuSPARSE, and the CUDA context it is used in.
#include "cusparse.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "aotc_runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static aotc_program_cusparse cusparse;
static const char *(*error_string)(int);

// The functions of the driver that make a context current.
static struct {
  int (*stream_context)(void *, void **);
  int (*push)(void *);
  int (*pop)(void **);
} driver;
static void *context;

static bool fail(const char *call, const char *why) {
  char message[1024];
  snprintf(message, sizeof(message), "%s: %s", call, why);
  aotc_error_adopt(AOTC_UNSUPPORTED, message);
  return false;
}

static void *open_library(void) {
  static const char *const names[] = {"libcusparse.so.12", "libcusparse.so.11", "libcusparse.so"};
  const char *named = getenv("AOTC_CUSPARSE");
  if (named != NULL && named[0] != '\0') {
    return dlopen(named, RTLD_NOW);
  }
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    void *library = dlopen(names[i], RTLD_NOW);
    if (library != NULL) {
      return library;
    }
  }
  return NULL;
}

static bool load(const char *call) {
  if (error_string != NULL) {
    return true;
  }
  void *library = open_library();
  if (library == NULL) {
    char why[768];
    snprintf(why, sizeof(why),
             "sparse matrices on a GPU need cuSPARSE: %.400s; install it, or name the file by "
             "AOTC_CUSPARSE, or take the CPU device (AOTC_DEVICE=cpu)",
             dlerror());
    return fail(call, why);
  }
#define LOAD(name, parameters)                                                                     \
  *(void **)&cusparse.name = dlsym(library, "cusparse" #name);                                     \
  if (cusparse.name == NULL) {                                                                     \
    return fail(call, "this cuSPARSE is too old: it has no cusparse" #name);                       \
  }
  CUSPARSE_FUNCTIONS(LOAD)
  void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (libcuda != NULL) {
    *(void **)&driver.stream_context = dlsym(libcuda, "cuStreamGetCtx");
    *(void **)&driver.push = dlsym(libcuda, "cuCtxPushCurrent_v2");
    *(void **)&driver.pop = dlsym(libcuda, "cuCtxPopCurrent_v2");
  }
  if (driver.stream_context == NULL || driver.push == NULL || driver.pop == NULL) {
    return fail(call, "the CUDA driver has no contexts");
  }
  *(void **)&error_string = dlsym(library, "cusparseGetErrorString");
  return error_string != NULL || fail(call, "this cuSPARSE has no cusparseGetErrorString");
}

// The context of the device that the thread currently uses.
static bool find_context(void *stream, void **out_context) {
  void *own = NULL;
  if (stream == NULL && aotc_stream_open(&own) != AOTC_OK) {
    return false;
  }
  bool is_found = driver.stream_context(stream == NULL ? own : stream, out_context) == 0;
  if (own != NULL) {
    aotc_stream_close(own);
  }
  return is_found && *out_context != NULL;
}

// A cuSPARSE handle belongs to one context: that of the first call.
static bool enter(const char *call, void *stream) {
  void *wanted = NULL;
  if (!find_context(stream, &wanted)) {
    return aotc_is_stopped() ? false : fail(call, "the stream has no CUDA context");
  }
  if (cusparse.handle != NULL && wanted != context) {
    return fail(call, "cuSPARSE is in use on another GPU: mgpuDestroySparseEnv comes first");
  }
  if (driver.push(wanted) != 0) {
    return fail(call, "CUDA's context cannot be made current");
  }
  context = wanted;
  return true;
}

aotc_program_cusparse *aotc_program_cusparse_begin(const char *call, void *stream) {
  pthread_mutex_lock(&lock);
  if (!load(call) || !enter(call, stream)) {
    pthread_mutex_unlock(&lock);
    return NULL;
  }
  int status = cusparse.handle == NULL ? cusparse.Create(&cusparse.handle) : 0;
  if (status == 0) {
    status = cusparse.SetStream(cusparse.handle, stream);
  }
  if (status != 0) {
    aotc_program_cusparse_end(call, status);
    return NULL;
  }
  return &cusparse;
}

void aotc_program_cusparse_end(const char *call, int status) {
  if (status != 0) {
    char message[256];
    snprintf(message, sizeof(message), "%s: cuSPARSE: %.160s", call, error_string(status));
    aotc_error_adopt(AOTC_DRIVER_FAILED, message);
  }
  void *popped = NULL;
  driver.pop(&popped);
  pthread_mutex_unlock(&lock);
}

void aotc_program_cusparse_close(void) {
  pthread_mutex_lock(&lock);
  if (cusparse.handle != NULL && driver.push(context) == 0) {
    void *popped = NULL;
    cusparse.Destroy(cusparse.handle);
    cusparse.handle = NULL;
    driver.pop(&popped);
  }
  pthread_mutex_unlock(&lock);
}
