// Copies and fills.
#include <string.h>

#include "cpu/streams.h"
#include "graphs.h"
#include "mlir_cuda_runtime.h"
#include "state.h"
#include "trace.h"
#include "weight_pages.h"

// Whether both pointers of a copy are valid; a copy of zero bytes needs none.
static bool check_pointers(const void *to, const void *from, uint64_t bytes) {
  if (to != NULL && from != NULL) {
    return true;
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%llu bytes %s NULL", (unsigned long long)bytes,
               to == NULL ? "to" : "from");
  return false;
}

// The same for the destination of a fill.
static bool check_fill(const void *to, size_t count, size_t element_bytes) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes, &bytes)) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no memory has %zu elements of %zu bytes", count,
                 element_bytes);
    return false;
  }
  return check_pointers(to, &bytes, bytes);
}

// Waits for work on the default stream, because the pool's streams are not ordered after it.
static void finish(aotc_rt_scope *scope, aotc_rt_stream stream) {
  if (stream == NULL) {
    AOTC_RT_TRY(scope->driver, stream_synchronize(stream), "of the default stream");
  }
}

// A copy or a fill on the CPU, done at once or later on a stream.
typedef struct copy {
  void *to;
  const void *from;
  size_t bytes;
} copy;

typedef struct fill {
  void *to;
  uint32_t value;
  size_t count;
} fill;

static void run_copy(const void *payload) {
  const copy *c = payload;
  int64_t begin = aotc_rt_trace_begin();
  memmove(c->to, c->from, c->bytes);
  if (begin != 0) {
    aotc_rt_trace_copy(begin, "copy", c->bytes, "host to host");
  }
}

static void run_fill32(const void *payload) {
  const fill *f = payload;
  int64_t begin = aotc_rt_trace_begin();
  uint32_t *elements = f->to;
  for (size_t i = 0; i < f->count; ++i) {
    elements[i] = f->value;
  }
  if (begin != 0) {
    aotc_rt_trace_copy(begin, "fill", f->count * sizeof(*elements), "fill");
  }
}

static void run_fill16(const void *payload) {
  const fill *f = payload;
  int64_t begin = aotc_rt_trace_begin();
  uint16_t *elements = f->to;
  for (size_t i = 0; i < f->count; ++i) {
    elements[i] = (uint16_t)f->value;
  }
  if (begin != 0) {
    aotc_rt_trace_copy(begin, "fill", f->count * sizeof(*elements), "fill");
  }
}

static bool enqueue_copy(aotc_rt_scope *scope, void *to, const void *from, size_t bytes,
                         aotc_rt_stream stream) {
  return aotc_rt_has_paged_weights(scope->context)
             ? aotc_rt_weight_pages_copy(scope, to, from, bytes, stream)
             : AOTC_RT_TRY(scope->driver, memory_copy(to, from, bytes, stream),
                           "%zu bytes from %p to %p", bytes, from, to);
}

void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemcpy")) {
    return;
  }
  aotc_rt_stream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (bytes == 0 || !check_pointers(to, from, bytes)) {
    // nothing to do, or nothing that can be done
  } else if (scope.driver == NULL) {
    const copy c = {.to = to, .from = from, .bytes = bytes};
    aotc_rt_cpu_stream_do(order, run_copy, &c, sizeof(c));
  } else if (aotc_rt_make_current(&scope) && enqueue_copy(&scope, to, from, bytes, order)) {
    finish(&scope, order);
  }
  aotc_rt_end(&scope);
}

void mgpuMemset32(void *to, uint32_t value, size_t count, void *stream) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemset32")) {
    return;
  }
  aotc_rt_stream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (count == 0 || !check_fill(to, count, 4)) {
    // nothing to do, or nothing that can be done
  } else if (scope.driver == NULL) {
    const fill f = {.to = to, .value = value, .count = count};
    aotc_rt_cpu_stream_do(order, run_fill32, &f, sizeof(f));
  } else if (aotc_rt_make_current(&scope) &&
             AOTC_RT_TRY(scope.driver, memory_fill(to, value, 4, count, order),
                         "%zu elements of 4 bytes at %p", count, to)) {
    finish(&scope, order);
  }
  aotc_rt_end(&scope);
}

void mgpuMemset16(void *to, uint16_t value, size_t count, void *stream) {
  // Lowered IR declares this parameter as i16 without an extension attribute, so the upper half of
  // its register is undefined, while the compiler assumes it is zero. This forces a truncation.
  uint32_t raw = value;
  __asm__("" : "+r"(raw));
  uint16_t element = (uint16_t)(raw & 0xffffu);

  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemset16")) {
    return;
  }
  aotc_rt_stream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (count == 0 || !check_fill(to, count, 2)) {
    // nothing to do, or nothing that can be done
  } else if (scope.driver == NULL) {
    const fill f = {.to = to, .value = element, .count = count};
    aotc_rt_cpu_stream_do(order, run_fill16, &f, sizeof(f));
  } else if (aotc_rt_make_current(&scope) &&
             AOTC_RT_TRY(scope.driver, memory_fill(to, element, 2, count, order),
                         "%zu elements of 2 bytes at %p", count, to)) {
    finish(&scope, order);
  }
  aotc_rt_end(&scope);
}

// Copies on the thread's adopted stream, or on a stream of the pool, and waits.
static bool copy_on_gpu(aotc_rt_scope *scope, void *to, const void *from, uint64_t bytes) {
  aotc_rt_submit(scope->thread);
  bool is_adopted = scope->thread->has_adopted_stream;
  aotc_rt_stream stream =
      is_adopted ? aotc_rt_stream_of(scope->thread, NULL) : aotc_rt_stream_take(scope);
  if (stream == NULL) {
    return false;
  }
  bool is_copied = aotc_rt_make_current(scope) &&
                   enqueue_copy(scope, to, from, (size_t)bytes, stream) &&
                   AOTC_RT_TRY(scope->driver, stream_synchronize(stream), "waiting for a copy");
  if (!is_adopted) {
    aotc_rt_stream_give_back(stream);
  }
  return is_copied;
}

aotc_status aotc_memory_copy(void *to, const void *from, uint64_t bytes) {
  if (bytes == 0) {
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_memory_copy")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_copied = check_pointers(to, from, bytes);
  if (is_copied && scope.driver == NULL) {
    run_copy(&(copy){.to = to, .from = from, .bytes = (size_t)bytes});
  } else if (is_copied) {
    is_copied = copy_on_gpu(&scope, to, from, bytes);
  }
  is_copied = aotc_rt_end(&scope) && is_copied;
  return is_copied ? AOTC_OK : scope.thread->latest;
}
