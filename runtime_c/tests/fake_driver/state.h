// Shared by the fake driver's files: its state, its objects, the start of calls, deferred work.
#ifndef AOTC_FAKE_DRIVER_STATE_H
#define AOTC_FAKE_DRIVER_STATE_H

#include "../fake_driver.h"

#include <pthread.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))
#define STACK_DEPTH 16
#define MAX_OBJECTS 1024

// The library only exports the driver's symbols and the controls.
#pragma GCC visibility push(hidden)

typedef enum object_kind {
  OBJECT_NONE = 0,
  OBJECT_CONTEXT,
  OBJECT_STREAM,
  OBJECT_EVENT,
  OBJECT_LIBRARY,
  OBJECT_MODULE,
  OBJECT_FUNCTION,
  OBJECT_MEMORY, // cuMemAlloc, cuMemAllocManaged
  OBJECT_POOL,
  OBJECT_POOLED_MEMORY, // cuMemAllocFromPoolAsync
  OBJECT_REGISTRATION,
  OBJECT_GRAPH,
  OBJECT_EXECUTABLE_GRAPH,
} object_kind;

typedef struct object {
  object_kind kind;
  int ordinal; // contexts: the device
  bool is_managed;
  unsigned long long id;
  char *start; // memory
  size_t bytes;
  const char *image; // libraries, modules
  const struct object *context;
  const struct object *owner; // functions: the module
  bool is_graphs;             // pooled memory: allocated during a capture
  bool is_synchronized;       // pooled memory: the context was synchronized afterwards
  int max_dynamic_shared;
  char name[64]; // functions
} object;

typedef struct late_work {
  CUdeviceptr to, from; // for a copy; a free only uses `to`
  size_t bytes;
  int launch;
  enum { LATE_COPY, LATE_LAUNCH, LATE_FREE } kind;
} late_work;

typedef struct late_driver {
  bool is_on;
  int (*launched)(const char *kernel, void **parameters);
  void (*run)(int launch);
  late_work work[MAX_OBJECTS];
  int count;
} late_driver;

extern fake_driver the_driver;
extern pthread_mutex_t the_lock;
extern object the_objects[MAX_OBJECTS];
extern unsigned long long the_next_id;
extern _Thread_local object *the_stack[STACK_DEPTH];
extern _Thread_local int the_depth;
extern late_driver the_late;
extern _Thread_local CUstreamCaptureMode the_capture_mode;

// For counters changed by several threads concurrently.
#define COUNT(member, by) __atomic_add_fetch(&the_driver.member, (by), __ATOMIC_RELAXED)

// Records the first use that would be undefined with a real driver.
void violate(const char *what);
// Logs a call; returns the result that the call must return instead of succeeding.
CUresult enter(const char *symbol);

#define ENTER(symbol)                                                                              \
  do {                                                                                             \
    CUresult entered = enter(symbol);                                                              \
    if (entered != CUDA_SUCCESS) {                                                                 \
      return entered;                                                                              \
    }                                                                                              \
  } while (0)

#define ENTER_WITH_CONTEXT(symbol)                                                                 \
  do {                                                                                             \
    ENTER(symbol);                                                                                 \
    if (the_depth == 0 || the_stack[the_depth - 1] == NULL) {                                      \
      violate(symbol " without a context");                                                        \
      return CUDA_ERROR_INVALID_CONTEXT;                                                           \
    }                                                                                              \
  } while (0)

// A launch in a graph: kernels have one parameter, of at most 8 bytes.
#define MAX_NODES 64
typedef struct fake_node {
  fake_launch launch;
  uint64_t parameter;
} fake_node;
uint64_t parameter_of(void *const *parameters); // 0 if there is none
// Records `node` if launches on the stream are being captured; returns whether they are.
bool record_node(CUstream stream, const fake_node *node);
// Performs a launch.
void do_launch(const fake_launch *launch, void **parameters);

object *make_object(object_kind kind);
bool is_object(const void *handle, object_kind kind);
bool is_stream(CUstream stream);
object *find_memory(CUdeviceptr address);
void forget_memory(object *memory);

// Defers work until it is waited for, and performs deferred work.
void do_later(late_work work);
void do_late_work(void);

#pragma GCC visibility pop

#endif // AOTC_FAKE_DRIVER_STATE_H
