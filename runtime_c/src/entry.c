// Calls of entries: memory that kernels cannot access is copied before and after.
#include "entry.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/streams.h"
#include "entry_staging.h"
#include "graphs.h"
#include "nvtx.h"
#include "trace.h"
#include "weight_pages.h"

#define SMALL_COUNT 16
#define SMALL_BYTES 1536

// The thread settings that an entry changes, with their previous values.
typedef struct surroundings {
  bool has_adopted_stream, synchronizes_adopted_stream;
  void *adopted_stream;
  const char *entry;
  aotc_rt_context *entry_context;
  bool has_device_results;
} surroundings;

static surroundings surroundings_of(const aotc_rt_thread *thread) {
  return (surroundings){
      .has_adopted_stream = thread->has_adopted_stream,
      .synchronizes_adopted_stream = thread->synchronizes_adopted_stream,
      .adopted_stream = thread->adopted_stream,
      .entry = thread->entry,
      .entry_context = thread->entry_context,
      .has_device_results = thread->has_device_results,
  };
}

static void restore(aotc_rt_thread *thread, const surroundings *before) {
  thread->has_adopted_stream = before->has_adopted_stream;
  thread->synchronizes_adopted_stream = before->synchronizes_adopted_stream;
  thread->adopted_stream = before->adopted_stream;
  thread->is_adopted_stream_idle = false;
  thread->entry = before->entry;
  thread->entry_context = before->entry_context;
  thread->has_device_results = before->has_device_results;
  thread->is_result_next = false;
  thread->workspace.used = 0;
}

static bool has_failed(const aotc_rt_call *c) {
  return c->scope.thread->error.status != AOTC_OK;
}

static void *result_of(const aotc_rt_call *c, void **values, int32_t index) {
  return values[c->entry->argument_count + index];
}

// -------------------------------------------------------------------------------------------------
// Passing arguments

static size_t aligned(size_t bytes) {
  return (bytes + AOTC_RT_VALUE_ALIGNMENT - 1) / AOTC_RT_VALUE_ALIGNMENT * AOTC_RT_VALUE_ALIGNMENT;
}

static bool is_replaced(const aotc_rt_call *c, int32_t argument) {
  return c->is_staged && c->pieces[argument].bytes > 0 &&
         c->pieces[c->pieces[argument].leader].is_staged;
}

// The size of `passed` with all the values it points to; 0 if the caller's values can be used.
static size_t passed_bytes(const aotc_rt_call *c) {
  const aotc_entry *entry = c->entry;
  size_t pointers = (size_t)entry->argument_count + (size_t)entry->result_count;
  size_t bytes = 0;
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    bytes += is_replaced(c, i) ? aligned(aotc_rt_value_bytes(&entry->arguments[i])) : 0;
  }
  for (int32_t i = 0; i < entry->result_count; ++i) {
    bool is_unwanted = result_of(c, c->values, i) == NULL;
    bytes += is_unwanted ? aligned(aotc_rt_value_bytes(&entry->results[i])) : 0;
  }
  return bytes > 0 ? bytes + aligned(pointers * sizeof(void *)) : 0;
}

static void *replace(const aotc_rt_call *c, int32_t argument, char *place) {
  memcpy(place, c->values[argument], aotc_rt_value_bytes(&c->entry->arguments[argument]));
  aotc_rt_memref *memref = (aotc_rt_memref *)(void *)place;
  uintptr_t shift = c->pieces[c->pieces[argument].leader].shift;
  memref->allocated = (void *)((uintptr_t)memref->allocated + shift);
  memref->aligned = (void *)((uintptr_t)memref->aligned + shift);
  return place;
}

// Sets up the values passed to the entry; `small` has room for SMALL_BYTES.
static bool pass(aotc_rt_call *c, char *small) {
  size_t bytes = passed_bytes(c);
  if (bytes == 0) {
    c->passed = c->values;
    return true;
  }
  char *room = small;
  if (bytes > SMALL_BYTES) {
    c->memory = malloc(bytes);
    room = c->memory;
  }
  if (room == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for the descriptors of a call");
    return false;
  }
  const aotc_entry *entry = c->entry;
  size_t pointers = (size_t)entry->argument_count + (size_t)entry->result_count;
  void **passed = (void **)(void *)room;
  room += aligned(pointers * sizeof(void *));
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    passed[i] = c->values[i];
    if (is_replaced(c, i)) {
      passed[i] = replace(c, i, room);
      room += aligned(aotc_rt_value_bytes(&entry->arguments[i]));
    }
  }
  for (int32_t i = 0; i < entry->result_count; ++i) {
    void *result = result_of(c, c->values, i);
    if (result == NULL) {
      result = room;
      size_t result_bytes = aotc_rt_value_bytes(&entry->results[i]);
      memset(result, 0, result_bytes);
      room += aligned(result_bytes);
    }
    passed[entry->argument_count + i] = result;
  }
  c->passed = passed;
  return true;
}

// -------------------------------------------------------------------------------------------------
// Results

static void zero_results(const aotc_entry *entry, void **values) {
  for (int32_t i = 0; i < entry->result_count; ++i) {
    void *result = values[entry->argument_count + i];
    if (result != NULL) {
      memset(result, 0, aotc_rt_value_bytes(&entry->results[i]));
    }
  }
}

static void *allocated_of(const aotc_rt_call *c, int32_t index) {
  return ((const aotc_rt_memref *)c->passed[index])->allocated;
}

// Whether nothing else refers to the memory of a result: no argument, no earlier result, and no
// result that the caller gets.
static bool is_only_owner(const aotc_rt_call *c, int32_t index) {
  const aotc_entry *entry = c->entry;
  const void *allocated = allocated_of(c, entry->argument_count + index);
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    if (entry->arguments[i].rank >= 0 && allocated_of(c, i) == allocated) {
      return false;
    }
  }
  for (int32_t i = 0; i < entry->result_count; ++i) {
    bool counts = i < index || (!has_failed(c) && result_of(c, c->values, i) != NULL);
    if (i != index && counts && entry->results[i].rank >= 0 &&
        allocated_of(c, entry->argument_count + i) == allocated) {
      return false;
    }
  }
  return true;
}

// Frees the results that the caller owns but does not receive.
static void free_results(const aotc_rt_call *c) {
  const aotc_entry *entry = c->entry;
  for (int32_t i = entry->result_count - 1; i >= 0; --i) {
    const aotc_value *value = &entry->results[i];
    bool is_wanted = !has_failed(c) && result_of(c, c->values, i) != NULL;
    if (value->rank < 0 || !value->is_owned || is_wanted || !is_only_owner(c, i)) {
      continue;
    }
    void *allocated = allocated_of(c, entry->argument_count + i);
    if (c->stream != NULL && value->memory != AOTC_MEMORY_HOST) {
      aotc_rt_memory_free_anywhere(allocated, c->stream);
    } else {
      aotc_memory_free(value->memory, allocated);
    }
  }
}

// The argument group whose buffer a result points into; NULL if none.
static const aotc_rt_piece *find_piece(const aotc_rt_call *c, const aotc_value *value,
                                       const aotc_rt_memref *result) {
  // It may be a new allocation, or another argument, depending on the entry.
  for (int32_t i = 0; i < c->entry->argument_count; ++i) {
    const aotc_rt_piece *piece = &c->pieces[i];
    uintptr_t at = (uintptr_t)result->aligned - piece->shift;
    if (aotc_rt_call_is_buffer_of(c, i) && at >= piece->group_start && at < piece->group_end) {
      return piece;
    }
  }
  bool is_argument = value->aliases >= 0 && !value->is_owned && is_replaced(c, value->aliases);
  return is_argument ? &c->pieces[c->pieces[value->aliases].leader] : NULL;
}

// Results that point into a buffer are changed to point to the caller's memory.
static void translate_results(const aotc_rt_call *c) {
  const aotc_entry *entry = c->entry;
  for (int32_t i = 0; i < entry->result_count; ++i) {
    const aotc_value *value = &entry->results[i];
    aotc_rt_memref *result = result_of(c, c->values, i);
    if (result == NULL || value->rank < 0) {
      continue;
    }
    const aotc_rt_piece *piece = find_piece(c, value, result);
    if (piece != NULL) {
      result->allocated = (void *)((uintptr_t)result->allocated - piece->shift);
      result->aligned = (void *)((uintptr_t)result->aligned - piece->shift);
    }
  }
}

// -------------------------------------------------------------------------------------------------
// Calls

// Waits for copies and for the caller's work, which the entry's host code may read.
static bool wait_for_host_code(const aotc_rt_call *c) {
  return !c->entry->touches_memory_on_host ||
         (AOTC_RT_TRY(c->scope.driver, stream_synchronize(AOTC_RT_STREAM_DEFAULT),
                      "waiting for what comes before the call") &&
          AOTC_RT_TRY(c->scope.driver, stream_synchronize(AOTC_RT_STREAM_OF_THREAD),
                      "waiting for what comes before the call"));
}

static void adopt(const aotc_rt_call *c, void *stream, bool synchronizes, bool has_device_results) {
  aotc_rt_thread *thread = c->scope.thread;
  aotc_stream_adopt(stream, synchronizes);
  thread->entry_context = c->scope.context;
  thread->has_device_results = has_device_results;
}

// Calls the entry's host code; on a GPU its launches are submitted together if possible.
static void call_entry(aotc_rt_call *c, aotc_rt_stream stream) {
  if (c->scope.driver == NULL) {
    c->entry->call(c->passed);
    return;
  }
  aotc_rt_recording recording;
  aotc_rt_recording_begin(&recording, &c->scope, c->entry, stream);
  c->entry->call(c->passed);
  aotc_rt_recording_end(&recording, c->entry);
}

static void call_on_gpu(aotc_rt_call *c, char *small) {
  if (!aotc_rt_make_current(&c->scope) || !aotc_rt_call_classify(c) ||
      (c->is_staged && !aotc_rt_call_copy_in(c)) || !pass(c, small) || !wait_for_host_code(c)) {
    return;
  }
  adopt(c, AOTC_RT_STREAM_OF_THREAD, c->entry->touches_memory_on_host,
        c->has_device_memory && !c->has_host_memory);
  c->scope.thread->is_adopted_stream_idle = c->entry->touches_memory_on_host; // it was synchronized
  c->is_enqueued = true;
  call_entry(c, AOTC_RT_STREAM_OF_THREAD);
  c->is_enqueued = has_failed(c) || !c->scope.thread->is_adopted_stream_idle;
  c->scope.thread->context = c->scope.context;
  if (c->is_staged && !has_failed(c)) {
    aotc_rt_call_copy_out(c);
  }
}

// Waits, also after a failure, because enqueued work uses the caller's memory and the buffers.
static void finish_on_gpu(aotc_rt_call *c) {
  if (c->is_enqueued) {
    AOTC_RT_TRY(c->scope.driver, stream_synchronize(AOTC_RT_STREAM_OF_THREAD),
                "waiting for the call's work");
  }
  if (c->is_staged) {
    aotc_rt_call_give_back(c);
  }
}

// While another thread captures a stream, the driver rejects waiting for any stream. The waits here
// are only for this thread's own work.
static void call_beside_captures(aotc_rt_call *c, char *small) {
  aotc_rt_capture_mode mode;
  if (aotc_rt_capture_relax(c->scope.driver, &mode)) {
    call_on_gpu(c, small);
    finish_on_gpu(c);
    aotc_rt_capture_restore(c->scope.driver, mode);
  }
}

static void end(aotc_rt_call *c, const surroundings *before) {
  aotc_rt_end(&c->scope);
  aotc_rt_weight_pages_tell(c->scope.thread);
  // The memory is freed after the call, not as part of the entry.
  restore(c->scope.thread, before);
  if (c->entry->result_count > 0 && c->passed != NULL) {
    if (c->is_staged && !has_failed(c)) {
      translate_results(c);
    }
    free_results(c);
  }
  free(c->memory);
}

static void run_and_wait(aotc_rt_call *c, const surroundings *before) {
  _Alignas(AOTC_RT_VALUE_ALIGNMENT) char small[SMALL_BYTES];
  if (!aotc_rt_begin(&c->scope, NULL)) {
    return;
  }
  if (c->scope.driver == NULL) {
    if (pass(c, small)) {
      c->entry->call(c->passed);
      aotc_rt_cpu_streams_finish();
    }
  } else {
    call_beside_captures(c, small);
  }
  end(c, before);
}

static bool is_reachable(aotc_rt_call *c, int32_t index) {
  aotc_rt_place place;
  const aotc_rt_piece *piece = &c->pieces[index];
  if (piece->bytes == 0 || c->entry->arguments[index].memory == AOTC_MEMORY_HOST) {
    return true;
  }
  if (!aotc_rt_pointer_locate(&c->scope, (void *)piece->start, &place)) {
    return false;
  }
  if (!place.is_known && !place.is_managed) {
    aotc_rt_fail_argument(AOTC_INVALID_ARGUMENT, c->entry, index,
                          "the GPU cannot reach the pointer %p: it is plain host memory, neither "
                          "pinned nor managed",
                          (void *)piece->start);
    return false;
  }
  return true;
}

// With AOTC_CHECK=1: an inaccessible pointer passed to a kernel would destroy the context.
static bool are_all_reachable(aotc_rt_call *c) {
  bool is_good = aotc_rt_make_current(&c->scope);
  for (int32_t i = 0; i < c->entry->argument_count && is_good; ++i) {
    is_good = is_reachable(c, i);
  }
  return is_good;
}

static void run_on_stream(aotc_rt_call *c, void *stream, const surroundings *before) {
  _Alignas(AOTC_RT_VALUE_ALIGNMENT) char small[SMALL_BYTES];
  if (!aotc_rt_begin_on_stream(&c->scope, NULL, stream)) {
    return;
  }
  bool is_good = true;
  if (c->scope.driver != NULL) {
    is_good = aotc_rt_make_current(&c->scope) &&
              (!aotc_rt_state_of_process.checks_launches || are_all_reachable(c));
    adopt(c, stream, false, true);
    c->stream = c->scope.thread->adopted_stream;
  }
  if (is_good && pass(c, small)) {
    call_entry(c, c->stream);
  }
  end(c, before);
}

typedef enum manner { AND_WAIT, ON_STREAM } manner;

aotc_status aotc_rt_entry_tell(aotc_rt_thread *thread) {
  aotc_status status = thread->error.status;
  if (status != AOTC_OK) {
    thread->told = thread->error;
    thread->error.status = AOTC_OK;
    thread->error.message[0] = '\0';
  }
  return status;
}

aotc_call_note aotc_call_begin(const char *entry) {
  return (aotc_call_note){.begin = aotc_rt_trace_begin(), .has_range = aotc_rt_nvtx_begin(entry)};
}

static void end_note(aotc_call_note note, const char *entry, const aotc_rt_context *context) {
  if (note.has_range) {
    aotc_rt_nvtx_end();
  }
  if (note.begin != 0) {
    aotc_rt_trace_call(note.begin, entry, context);
  }
}

void aotc_call_end(aotc_call_note note, const char *entry) {
  end_note(note, entry, NULL);
}

// Checks the arguments, and calls the entry if they are valid.
static aotc_status run(const aotc_entry *entry, void **values, manner how, void *stream) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_error_clear();
  if (entry == NULL || (values == NULL && entry->argument_count + entry->result_count > 0)) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no entry to call, or there are no values");
  }
  const aotc_call_note note = aotc_call_begin(entry->name);
  aotc_rt_piece small[SMALL_COUNT];
  const surroundings before = surroundings_of(thread);
  aotc_rt_call c = {.entry = entry, .values = values, .pieces = small, .scope = {.thread = thread}};
  thread->entry = entry->name;
  if (entry->argument_count > SMALL_COUNT) {
    c.pieces = malloc((size_t)entry->argument_count * sizeof(*c.pieces));
  }
  if (how == ON_STREAM && entry->why_not_async != NULL) {
    aotc_rt_fail(AOTC_UNSUPPORTED, "%s", entry->why_not_async);
  } else if (c.pieces == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for the arguments of a call");
  } else if (aotc_rt_entry_check(entry, values, how == ON_STREAM, c.pieces)) {
    if (how == ON_STREAM) {
      run_on_stream(&c, stream, &before);
    } else {
      run_and_wait(&c, &before);
    }
  }
  restore(thread, &before);
  if (c.pieces != small) {
    free(c.pieces);
  }
  if (thread->error.status != AOTC_OK) {
    zero_results(entry, values);
  }
  end_note(note, entry->name, c.scope.context);
  return aotc_rt_entry_tell(thread);
}

aotc_status aotc_entry_call(const aotc_entry *entry, void **values) {
  return run(entry, values, AND_WAIT, NULL);
}

aotc_status aotc_entry_enqueue(const aotc_entry *entry, void **values, void *stream) {
  return run(entry, values, ON_STREAM, stream);
}

static aotc_status free_result(void *allocated, aotc_rt_stream stream) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_rt_error failure;
  failure.status = AOTC_OK;
  aotc_rt_error *sink = thread->sink;
  thread->sink = &failure;
  thread->operation = "aotc_entry_free";
  aotc_rt_memory_free_anywhere(allocated, stream);
  thread->operation = NULL;
  thread->sink = sink;
  return aotc_rt_replace_failure(&failure);
}

aotc_status aotc_entry_free(void *allocated) {
  return free_result(allocated, NULL);
}

aotc_status aotc_entry_free_async(void *allocated, void *stream) {
  return free_result(allocated, stream != NULL ? stream : AOTC_RT_STREAM_DEFAULT);
}

aotc_status aotc_entry_copy(void *to, const void *from, uint64_t bytes) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_error_clear();
  aotc_memory_copy(to, from, bytes);
  return aotc_rt_entry_tell(thread);
}
