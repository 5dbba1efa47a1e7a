// A fake libcuda.so.1: every symbol that the runtime calls, on host memory, with injected failures.
//
// It enforces the real driver's rules that the runtime relies on: calls need a current context,
// memory is freed once and with the matching function, streams and events must exist, a kernel must
// be in the image. With -DFAKE_OLD_DRIVER it only has the functions of a driver for CUDA 11.4.
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fake_driver the_driver = {
    .version = 13000,
    .device_count = 1,
    .capability = {90, 90, 90, 90},
    .ptx_version = 90,
    .has_memory_pools = true,
    .parameter_bytes = sizeof(int),
    .jit_optimization_level = -1,
};
pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
object the_objects[MAX_OBJECTS];
unsigned long long the_next_id = 1;
_Thread_local object *the_stack[STACK_DEPTH];
_Thread_local int the_depth;

EXPORT fake_driver *fake_driver_get(void) {
  return &the_driver;
}

void violate(const char *what) {
  if (the_driver.violation[0] == '\0') {
    snprintf(the_driver.violation, sizeof(the_driver.violation), "%s", what);
  }
}

CUresult enter(const char *symbol) {
  fake_driver *d = &the_driver;
  pthread_mutex_lock(&the_lock);
  if (d->call_count < FAKE_MAX_LOG) {
    d->log[d->call_count] = symbol;
  }
  ++d->call_count;
  CUresult result = d->is_shut_down ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
  bool is_counted = d->fail_symbol == NULL || strcmp(d->fail_symbol, symbol) == 0;
  bool fails_again = is_counted && d->fail_at == 0 && d->fail_count > 0;
  bool fails_now = d->fail_at > 0 && is_counted && --d->fail_at == 0;
  if (fails_now || fails_again) {
    d->fail_count -= d->fail_count > 0 ? 1 : 0;
    d->failed_symbol = symbol;
    d->failed_index = d->call_count - 1;
    result = (CUresult)d->fail_result;
  }
  pthread_mutex_unlock(&the_lock);
  return result;
}

object *make_object(object_kind kind) {
  pthread_mutex_lock(&the_lock);
  object *made = NULL;
  for (int i = 0; i < MAX_OBJECTS && made == NULL; ++i) {
    if (the_objects[i].kind == OBJECT_NONE) {
      made = &the_objects[i];
      *made = (object){.kind = kind, .id = the_next_id++};
      made->context = the_depth > 0 ? the_stack[the_depth - 1] : NULL;
    }
  }
  pthread_mutex_unlock(&the_lock);
  if (made == NULL) {
    fprintf(stderr, "fake driver: too many objects\n");
    abort();
  }
  return made;
}

bool is_object(const void *handle, object_kind kind) {
  const object *o = handle;
  return o >= the_objects && o < the_objects + MAX_OBJECTS && o->kind == kind;
}

bool is_stream(CUstream stream) {
  return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
         is_object(stream, OBJECT_STREAM);
}

object *find_memory(CUdeviceptr address) {
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    object *o = &the_objects[i];
    if ((o->kind == OBJECT_MEMORY || o->kind == OBJECT_POOLED_MEMORY ||
         o->kind == OBJECT_REGISTRATION) &&
        address >= (CUdeviceptr)(uintptr_t)o->start &&
        address - (CUdeviceptr)(uintptr_t)o->start < o->bytes) {
      return o;
    }
  }
  return NULL;
}

// -------------------------------------------------------------------------------------------------
// Deferred work

late_driver the_late;

EXPORT void fake_work_late(int (*launched)(const char *kernel, void **parameters),
                           void (*run)(int launch)) {
  the_late.is_on = true;
  the_late.launched = launched;
  the_late.run = run;
}

EXPORT const char *fake_call(int index) {
  bool is_there = index < the_driver.call_count && index < FAKE_MAX_LOG;
  return is_there ? the_driver.log[index] : NULL;
}

void forget_memory(object *memory) {
  free(memory->start);
  memory->kind = OBJECT_NONE;
  COUNT(live_memory, -1);
}

void do_later(late_work work) {
  if (the_late.count == MAX_OBJECTS) {
    fprintf(stderr, "fake driver: too much work that nobody waits for\n");
    abort();
  }
  the_late.work[the_late.count++] = work;
}

void do_late_work(void) {
  for (int i = 0; i < the_late.count; ++i) {
    const late_work *w = &the_late.work[i];
    if (w->kind == LATE_COPY) {
      memmove((void *)(uintptr_t)w->to, (const void *)(uintptr_t)w->from, w->bytes);
    } else if (w->kind == LATE_LAUNCH) {
      the_late.run(w->launch);
    } else {
      forget_memory(find_memory(w->to));
    }
  }
  the_late.count = 0;
}
