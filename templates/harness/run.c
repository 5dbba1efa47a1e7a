#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "status.h"

// MLIR's memref descriptor; `sizes` is followed by as many strides.
typedef struct descriptor {
  void *allocated, *aligned;
  int64_t offset;
  int64_t sizes[];
} descriptor;

// Storage for a scalar, which is passed by its address, of the largest size and alignment.
typedef union scalar {
  double alignment[2];
  unsigned char bytes[16];
} scalar;

// One buffer argument, in the memory that the entry requires.
typedef struct buffer {
  harness_layout layout;
  uint64_t bytes;
  int64_t lead; // elements before the aligned pointer, for negative strides
  void *memory; // NULL for scalars
  aotc_memory_kind kind;
} buffer;

typedef struct runner {
  harness_plan *plan;
  const aotc_entry *entry;
  harness_outcome *outcome;
  buffer *buffers; // one for each argument
  void **values;   // one for each target: a scalar or a descriptor
  void *stream;
  bool has_stream;
  aotc_timer *timer;
} runner;

bool harness_is_reported(const harness_options *options, int32_t target) {
  const aotc_entry *entry = options->entry;
  const aotc_value *value = harness_target(entry, target);
  bool is_asked_for =
      options->outs[target] != NULL || options->expects[target] != NULL || options->prints[target];
  bool is_left = target >= entry->argument_count || (value->rank >= 0 && value->is_written);
  return is_left || is_asked_for;
}

// Prints the runtime's message, and returns the exit code for its status.
static int report_failure(const runner *self) {
  return harness_report_status(aotc_status_get(), &self->outcome->device);
}

// --- buffers ---

static int too_large(const aotc_value *value) {
  harness_error("'%s' (%s) is larger than memory can be", value->name, value->type);
  return HARNESS_USAGE;
}

static int place_layout(const harness_input *input, buffer *out_buffer) {
  const aotc_value *value = input->value;
  harness_layout *layout = &out_buffer->layout;
  layout->rank = value->rank;
  layout->offset = value->offset == AOTC_DYNAMIC ? 0 : value->offset;
  for (int32_t i = 0; i < value->rank; ++i) {
    layout->sizes[i] = input->array.shape[i];
    layout->strides[i] = value->strides != NULL ? value->strides[i] : AOTC_DYNAMIC;
  }
  uint32_t element_bytes = harness_facts(value->dtype)->bytes;
  if (!harness_layout_pack(layout->rank, layout->sizes, layout->strides) ||
      !harness_layout_derive(layout, element_bytes)) {
    return too_large(value);
  }
  if (layout->count > 0) {
    // The buffer includes the position of the aligned pointer, wherever the elements are.
    out_buffer->lead = layout->low < 0 ? -layout->low : 0;
    int64_t last = layout->high > 0 ? layout->high : 0, elements, bytes;
    if (__builtin_add_overflow(last, out_buffer->lead + 1, &elements) ||
        __builtin_mul_overflow(elements, (int64_t)element_bytes, &bytes)) {
      return too_large(value);
    }
    out_buffer->bytes = (uint64_t)bytes;
  }
  return HARNESS_OK;
}

// Whether the packed array and the buffer contain the same bytes.
static bool is_same_bytes(const buffer *target) {
  return target->layout.is_packed && target->layout.offset == 0;
}

// Copies an argument's values into its buffer. Gaps between its elements are poisoned.
static int upload(const runner *self, int32_t index) {
  const harness_input *input = &self->plan->inputs[index];
  buffer *target = &self->buffers[index];
  void *image = input->array.data;
  bool is_direct = is_same_bytes(target);
  if (!is_direct) {
    uint32_t element_bytes = harness_facts(input->array.dtype)->bytes;
    image = malloc(target->bytes + 1);
    if (image == NULL) {
      harness_error("out of memory: '%s' takes %llu bytes", input->value->name,
                    (unsigned long long)target->bytes);
      return HARNESS_DEVICE_FAILED;
    }
    harness_poison(input->array.dtype, image, target->bytes / element_bytes);
    char *origin = (char *)image + (target->lead + target->layout.low) * (int64_t)element_bytes;
    harness_layout_scatter(&target->layout, element_bytes, input->array.data, origin);
  }
  aotc_status status = aotc_memory_copy(target->memory, image, target->bytes);
  if (!is_direct) {
    free(image);
  }
  return status == AOTC_OK ? HARNESS_OK : report_failure(self);
}

static int place_argument(runner *self, int32_t index) {
  harness_input *input = &self->plan->inputs[index];
  const aotc_value *value = input->value;
  uint32_t element_bytes = harness_facts(value->dtype)->bytes;
  if (value->rank < 0) {
    scalar *place = harness_zeroed(1, sizeof(scalar));
    memcpy(place->bytes, input->array.data, element_bytes);
    self->values[index] = place;
    return HARNESS_OK;
  }
  buffer *target = &self->buffers[index];
  int code = place_layout(input, target);
  if (code != HARNESS_OK) {
    return code;
  }
  target->kind = value->memory;
  if (aotc_memory_allocate(target->kind, target->bytes, &target->memory) != AOTC_OK) {
    target->memory = NULL;
    return report_failure(self);
  }
  size_t rank = (size_t)value->rank;
  descriptor *place = harness_zeroed(1, sizeof(descriptor) + 2 * rank * sizeof(int64_t));
  place->allocated = target->memory;
  place->aligned = (char *)target->memory + target->lead * (int64_t)element_bytes;
  place->offset = target->layout.offset;
  for (size_t i = 0; i < rank; ++i) {
    place->sizes[i] = target->layout.sizes[i];
    place->sizes[rank + i] = target->layout.strides[i];
  }
  self->values[index] = place;
  return upload(self, index);
}

// Storage for the outputs of the call.
static void place_result(runner *self, int32_t target) {
  const aotc_value *value = harness_target(self->entry, target);
  size_t bytes = sizeof(scalar);
  if (value->rank >= 0) {
    bytes = sizeof(descriptor) + 2 * (size_t)value->rank * sizeof(int64_t);
  }
  self->values[target] = harness_zeroed(1, bytes);
}

static void clear_results(runner *self) {
  for (int32_t i = self->entry->argument_count; i < harness_target_count(self->entry); ++i) {
    const aotc_value *value = harness_target(self->entry, i);
    size_t bytes = value->rank < 0 ? sizeof(scalar)
                                   : sizeof(descriptor) + 2 * (size_t)value->rank * sizeof(int64_t);
    memset(self->values[i], 0, bytes);
  }
}

// --- outputs of a call ---

// Frees the memory of a result that the caller owns. Host memory comes from malloc, and memory that
// kernels use from the runtime; only this function makes the distinction.
static aotc_status release_result_memory(aotc_memory_kind kind, void *allocated) {
  if (kind != AOTC_MEMORY_HOST) {
    return aotc_memory_free(kind, allocated);
  }
  free(allocated);
  return AOTC_OK;
}

// Whether the result's memory is new, and not that of an argument or of an earlier result.
static bool is_own_memory(const runner *self, int32_t target) {
  const descriptor *result = self->values[target];
  for (int32_t i = 0; i < target; ++i) {
    const aotc_value *value = harness_target(self->entry, i);
    if (value->rank >= 0 && ((const descriptor *)self->values[i])->allocated == result->allocated) {
      return false;
    }
  }
  return true;
}

static int release_results(runner *self) {
  int code = HARNESS_OK;
  // In reverse order: of several results that share memory, the first one frees it.
  for (int32_t i = harness_target_count(self->entry) - 1; i >= self->entry->argument_count; --i) {
    const aotc_value *value = harness_target(self->entry, i);
    if (value->rank >= 0 && value->is_owned && is_own_memory(self, i)) {
      void *allocated = ((descriptor *)self->values[i])->allocated;
      bool is_freed = release_result_memory(value->memory, allocated) == AOTC_OK;
      code = is_freed || code != HARNESS_OK ? code : report_failure(self);
    }
  }
  clear_results(self);
  return code;
}

static int bad_result(const aotc_value *value, const char *problem) {
  harness_error("the entry returned '%s' (%s) with %s", value->name, value->type, problem);
  return HARNESS_DEVICE_FAILED;
}

// Copies a memref from any memory into a packed array.
static int capture_memref(const runner *self, int32_t target, harness_array *out_array) {
  const aotc_value *value = harness_target(self->entry, target);
  const descriptor *place = self->values[target];
  uint32_t element_bytes = harness_facts(value->dtype)->bytes;
  harness_layout layout = {.rank = value->rank, .offset = place->offset};
  for (int32_t i = 0; i < value->rank; ++i) {
    layout.sizes[i] = place->sizes[i];
    layout.strides[i] = place->sizes[value->rank + i];
    if (value->shape[i] != AOTC_DYNAMIC && value->shape[i] != layout.sizes[i]) {
      return bad_result(value, "another shape");
    }
  }
  if (!harness_layout_derive(&layout, element_bytes)) {
    return bad_result(value, "impossible sizes or strides");
  }
  if (layout.count > 0 && place->aligned == NULL) {
    return bad_result(value, "no memory");
  }
  if (!harness_array_allocate(out_array, value->name, value->dtype, layout.rank, layout.sizes)) {
    return HARNESS_DEVICE_FAILED;
  }
  if (layout.count == 0) {
    return HARNESS_OK;
  }
  const char *origin = (const char *)place->aligned + layout.low * (int64_t)element_bytes;
  uint64_t bytes = (uint64_t)(layout.high - layout.low + 1) * element_bytes;
  void *image = layout.is_packed ? out_array->data : malloc(bytes);
  if (image == NULL) {
    harness_error("out of memory: '%s' takes %llu bytes", value->name, (unsigned long long)bytes);
    return HARNESS_DEVICE_FAILED;
  }
  int code = HARNESS_OK;
  if (aotc_memory_copy(image, origin, bytes) != AOTC_OK) {
    code = report_failure(self);
  } else if (!layout.is_packed) {
    harness_layout_gather(&layout, element_bytes, image, out_array->data);
  }
  if (!layout.is_packed) {
    free(image);
  }
  return code;
}

static int capture(runner *self) {
  for (int32_t i = 0; i < harness_target_count(self->entry); ++i) {
    if (!harness_is_reported(self->plan->options, i)) {
      continue;
    }
    const aotc_value *value = harness_target(self->entry, i);
    harness_array *array = &self->outcome->arrays[i];
    int code = HARNESS_OK;
    if (value->rank >= 0) {
      code = capture_memref(self, i, array);
    } else if (!harness_array_allocate(array, value->name, value->dtype, -1, NULL)) {
      code = HARNESS_DEVICE_FAILED;
    } else {
      memcpy(array->data, ((const scalar *)self->values[i])->bytes,
             harness_facts(value->dtype)->bytes);
    }
    if (code != HARNESS_OK) {
      return code;
    }
  }
  return HARNESS_OK;
}

// --- calls ---

static double milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail for this clock
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// Calls the entry once on the harness's stream and waits for it.
static int call(runner *self, harness_time *out_time) {
  aotc_error_clear();
  if (aotc_stream_adopt(self->stream, self->entry->touches_memory_on_host) != AOTC_OK) {
    return report_failure(self);
  }
  double start = milliseconds_now();
  if (aotc_timer_start(self->timer, self->stream) == AOTC_OK) {
    const aotc_call_note note = aotc_call_begin(self->entry->name);
    self->entry->call(self->values);
    aotc_call_end(note, self->entry->name);
    aotc_timer_stop(self->timer, self->stream, &out_time->device_milliseconds);
  }
  out_time->wall_milliseconds = milliseconds_now() - start;
  aotc_stream_release();
  // The status is the first failure, also of functions that the entry called.
  return aotc_status_get() == AOTC_OK ? HARNESS_OK : report_failure(self);
}

// Restores the initial values of buffers that the last call read and wrote, for the next call.
static int restore(runner *self) {
  for (int32_t i = 0; i < self->entry->argument_count; ++i) {
    const aotc_value *value = &self->entry->arguments[i];
    if (value->rank >= 0 && value->is_read && value->is_written) {
      int code = upload(self, i);
      if (code != HARNESS_OK) {
        return code;
      }
    }
  }
  return HARNESS_OK;
}

static int call_again(runner *self, harness_time *out_time) {
  int code = release_results(self);
  if (code == HARNESS_OK) {
    code = restore(self);
  }
  return code == HARNESS_OK ? call(self, out_time) : code;
}

static int call_all(runner *self) {
  const harness_options *options = self->plan->options;
  int code = call(self, &self->outcome->first);
  if (code == HARNESS_OK) {
    code = capture(self);
  }
  harness_time unused;
  for (uint64_t i = 0; i < options->warmup && code == HARNESS_OK; ++i) {
    code = call_again(self, &unused);
  }
  for (uint64_t i = 0; i < options->repeat && code == HARNESS_OK; ++i) {
    code = call_again(self, &self->outcome->times[i]);
  }
  return code;
}

// --- the device ---

static int choose_device(const harness_options *options, aotc_device *out_device) {
  if (aotc_device_request(options->device) != AOTC_OK ||
      aotc_device_resolve(out_device) != AOTC_OK) {
    // An invalid device name (AOTC_DEVICE) is an error of the user's input.
    if (aotc_status_get() == AOTC_INVALID_ARGUMENT) {
      harness_error("%s", aotc_error_message());
      return HARNESS_USAGE;
    }
    return harness_report_status(aotc_status_get(), out_device);
  }
  if (!options->quiet) {
    harness_note_cpu(out_device, aotc_harness_program.kernel_count > 0);
  }
  return HARNESS_OK;
}

static int open_stream(runner *self) {
  if (aotc_stream_open(&self->stream) != AOTC_OK) {
    return report_failure(self);
  }
  self->has_stream = true;
  if (aotc_timer_open(&self->timer) != AOTC_OK) {
    self->timer = NULL;
    return report_failure(self);
  }
  return HARNESS_OK;
}

static int place_all(runner *self) {
  int code = HARNESS_OK;
  for (int32_t i = 0; i < self->entry->argument_count && code == HARNESS_OK; ++i) {
    code = place_argument(self, i);
  }
  for (int32_t i = self->entry->argument_count; i < harness_target_count(self->entry); ++i) {
    place_result(self, i);
  }
  return code;
}

// Frees everything. A failure here, after a successful call, is an error, too.
static int clean_up(runner *self, int code) {
  if (self->timer != NULL) {
    aotc_timer_close(self->timer);
  }
  aotc_error_clear(); // otherwise the runtime would do nothing from here on
  aotc_status status = AOTC_OK;
  if (self->has_stream) {
    status = aotc_stream_close(self->stream);
  }
  for (int32_t i = 0; i < self->entry->argument_count; ++i) {
    buffer *used = &self->buffers[i];
    if (used->memory != NULL) {
      aotc_status freed = aotc_memory_free(used->kind, used->memory);
      status = status == AOTC_OK ? freed : status;
    }
  }
  if (status != AOTC_OK && code == HARNESS_OK) {
    code = report_failure(self);
  }
  for (int32_t i = 0; i < harness_target_count(self->entry); ++i) {
    free(self->values[i]);
  }
  free(self->values);
  free(self->buffers);
  return code;
}

int harness_run(harness_plan *plan, harness_outcome *out_outcome) {
  const aotc_entry *entry = plan->entry;
  size_t targets = (size_t)harness_target_count(entry);
  *out_outcome = (harness_outcome){
      .arrays = harness_zeroed(targets, sizeof(harness_array)),
      .times = harness_zeroed(plan->options->repeat, sizeof(harness_time)),
  };
  int code = choose_device(plan->options, &out_outcome->device);
  if (code != HARNESS_OK) {
    return code;
  }
  harness_plan_fill(plan);
  runner self = {
      .plan = plan,
      .entry = entry,
      .outcome = out_outcome,
      .buffers = harness_zeroed((size_t)entry->argument_count, sizeof(buffer)),
      .values = harness_zeroed(targets, sizeof(void *)),
  };
  code = place_all(&self);
  if (code == HARNESS_OK) {
    code = open_stream(&self);
  }
  if (code == HARNESS_OK) {
    code = call_all(&self);
    aotc_error_clear(); // the failure was reported; later ones are independent
    int release_code = release_results(&self);
    code = code == HARNESS_OK ? release_code : code;
  }
  return clean_up(&self, code);
}

void harness_outcome_free(harness_outcome *outcome, const aotc_entry *entry) {
  for (int32_t i = 0; outcome->arrays != NULL && i < harness_target_count(entry); ++i) {
    harness_array_free(&outcome->arrays[i]);
  }
  free(outcome->arrays);
  free(outcome->times);
  *outcome = (harness_outcome){0};
}
