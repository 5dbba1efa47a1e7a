// Weights that exceed a device's memory budget for them.
//
// A file of weights has a range of device addresses of its full size. Memory is mapped to the pages
// that are resident. A weight therefore keeps its address, and a kernel's parameters show which
// weights it reads: their pages are copied before the kernel is launched, while earlier kernels
// run.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weight_blocks.h"

#define MOST_PAGE_BYTES ((uint64_t)32 << 20)
// The largest weight is divided into this many pages, if the page size allows it: other data on its
// first and last page are copied with it.
#define PAGES_OF_LARGEST 8

// -------------------------------------------------------------------------------------------------
// The budget

static bool parse_budget(uint64_t *out_budget) {
  const char *text = getenv("AOTC_WEIGHTS_BUDGET");
  *out_budget = 0;
  if (text == NULL || text[0] == '\0') {
    return true;
  }
  char *end = NULL;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  static const char units[] = "KMGT";
  const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
  int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
  bool is_number = text[0] >= '0' && text[0] <= '9' && errno == 0;
  if (!is_number || end[unit != NULL ? 1 : 0] != '\0' || number == 0 ||
      number > UINT64_MAX >> shift) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                 "AOTC_WEIGHTS_BUDGET is '%s'; expected bytes, such as 6442450944, 6144M or 6G",
                 text);
    return false;
  }
  *out_budget = (uint64_t)number << shift;
  return true;
}

bool aotc_rt_weights_budget_resolve_locked(aotc_rt_state *state) {
  return state->has_weights_budget || parse_budget(&state->weights_budget);
}

static bool is_any_weight_used_locked(const aotc_rt_state *state) {
  bool is_any = false;
  for (aotc_rt_context *c = atomic_load(&state->contexts); c != NULL; c = c->next) {
    is_any = is_any || atomic_load(&c->weight_pages) != NULL;
  }
  for (const aotc_rt_weights_file *file = state->weights_files; file != NULL; file = file->next) {
    for (uint32_t i = 0; i < file->count; ++i) {
      is_any = is_any || aotc_rt_constant_is_copied(&file->weights[i].constant);
    }
  }
  return is_any;
}

aotc_status aotc_weights_budget_set(uint64_t bytes) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_lock();
  bool is_late = is_any_weight_used_locked(state);
  if (!is_late) {
    state->has_weights_budget = true;
    state->weights_budget = bytes;
  }
  aotc_rt_unlock();
  return is_late ? aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                                "a budget for weights is set before the first of them is used")
                 : AOTC_OK;
}

// -------------------------------------------------------------------------------------------------
// State of a device

static weight_pages *pages_of(const aotc_rt_context *context) {
  return atomic_load_explicit(&context->weight_pages, memory_order_acquire);
}

// The failure hook is called without the lock held, because it may call the runtime.
static void lock(weight_pages *p) {
  pthread_mutex_lock(&p->lock);
  ++aotc_rt_this_thread.lock_depth;
}

static void unlock(weight_pages *p) {
  --aotc_rt_this_thread.lock_depth;
  pthread_mutex_unlock(&p->lock);
  aotc_rt_tell_untold();
}

static weight_pages *make_pages(aotc_rt_context *context) {
  weight_pages *made = calloc(1, sizeof(*made));
  if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
    free(made);
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a table of weights");
    return NULL;
  }
  made->budget = aotc_rt_state_of_process.weights_budget;
  aotc_rt_lock();
  weight_pages *known = pages_of(context); // another thread may have created them
  if (known == NULL) {
    atomic_store_explicit(&context->weight_pages, made, memory_order_release);
  }
  aotc_rt_unlock();
  if (known != NULL) {
    pthread_mutex_destroy(&made->lock);
    free(made);
  }
  return known != NULL ? known : made;
}

static void free_file(const aotc_rt_driver *driver, paged_file *file) {
  if (file->base != NULL && driver != NULL) {
    AOTC_RT_TRY_RELEASE(driver, pages_unreserve(file->base, file->reserved),
                        "addresses of weights");
  }
  free(file->pages);
  free(file);
}

// Chooses the size and the maximum number of pages, when the first file needs them.
static bool choose_page_bytes(weight_pages *p, size_t granularity, uint64_t largest) {
  uint64_t left = p->budget - p->whole_bytes;
  uint64_t bytes = largest / PAGES_OF_LARGEST / granularity * granularity;
  bytes = bytes > MOST_PAGE_BYTES ? MOST_PAGE_BYTES : bytes;
  p->page_bytes = bytes > granularity ? bytes : granularity;
  uint64_t capacity = left / p->page_bytes;
  p->capacity = capacity < AOTC_RT_NO_BLOCK ? (uint32_t)capacity : AOTC_RT_NO_BLOCK - 1;
  p->blocks = calloc((size_t)p->capacity + 1, sizeof(*p->blocks));
  if (p->blocks == NULL) {
    p->page_bytes = 0;
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a table of weights");
  }
  return p->blocks != NULL;
}

static bool reserve(aotc_rt_scope *scope, weight_pages *p, paged_file *made) {
  const aotc_rt_driver *driver = scope->driver;
  size_t granularity = 0;
  uint64_t largest = 0;
  if (!aotc_rt_state_of_process.facts.has_pages) {
    aotc_rt_fail(AOTC_UNSUPPORTED,
                 "the weights have %llu bytes, more than their budget of %llu: to bring them in "
                 "parts, a driver for CUDA 12.4 or newer is needed",
                 (unsigned long long)made->file->bytes, (unsigned long long)p->budget);
    return false;
  }
  if (!aotc_rt_weights_file_is_ordered(made->file, &largest)) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights are not in the order of their table, as aotc writes "
                                  "them: there can be no budget for them");
    return false;
  }
  if (!AOTC_RT_TRY(driver, pages_granularity(scope->context, &granularity), "of pages") ||
      (p->page_bytes == 0 && !choose_page_bytes(p, granularity, largest))) {
    return false;
  }
  made->page_count = (made->file->bytes + p->page_bytes - 1) / p->page_bytes;
  made->reserved = made->page_count * p->page_bytes;
  made->pages = calloc(made->page_count, sizeof(*made->pages));
  void *base = NULL;
  if (made->pages == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a table of weights");
  } else if (AOTC_RT_TRY(driver, pages_reserve(made->reserved, &base),
                         "addresses for %llu bytes of weights",
                         (unsigned long long)made->reserved)) {
    made->base = base;
  }
  for (size_t i = 0; made->pages != NULL && i < made->page_count; ++i) {
    made->pages[i].block = AOTC_RT_NO_BLOCK;
  }
  return made->base != NULL;
}

// Another thread's capture is unaffected by these addresses.
static bool reserve_beside_captures(aotc_rt_scope *scope, weight_pages *p, paged_file *made) {
  aotc_rt_capture_mode mode;
  if (!aotc_rt_capture_relax(scope->driver, &mode)) {
    return false;
  }
  bool is_reserved = reserve(scope, p, made);
  return aotc_rt_capture_restore(scope->driver, mode) && is_reserved;
}

// The file on the scope's device; NULL, with the failure recorded.
static paged_file *find_or_add(aotc_rt_scope *scope, weight_pages *p,
                               const aotc_rt_weights_file *file) {
  paged_file *found = p->files;
  while (found != NULL && found->file != file) {
    found = found->next;
  }
  if (found != NULL) {
    return found;
  }
  paged_file *made = calloc(1, sizeof(*made));
  if (made == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a table of weights");
    return NULL;
  }
  made->file = file;
  // Memory already used for pages is not returned.
  bool is_whole = p->page_bytes == 0 && file->bytes <= p->budget - p->whole_bytes;
  if (is_whole) {
    p->whole_bytes += file->bytes;
  } else if (!aotc_rt_make_current(scope) || !reserve_beside_captures(scope, p, made)) {
    free_file(scope->driver, made);
    return NULL;
  }
  made->next = p->files;
  p->files = made;
  if (!is_whole) {
    atomic_store_explicit(&scope->context->has_paged_weights, true, memory_order_release);
  }
  return made;
}

void *aotc_rt_weight_pages_get(aotc_rt_scope *scope, const aotc_rt_weights_file *file,
                               const void *data, bool *out_is_whole) {
  weight_pages *p = pages_of(scope->context);
  p = p != NULL ? p : make_pages(scope->context);
  *out_is_whole = false;
  if (p == NULL) {
    return NULL;
  }
  lock(p);
  const paged_file *found = find_or_add(scope, p, file);
  unlock(p);
  *out_is_whole = found != NULL && found->base == NULL;
  return found != NULL && found->base != NULL ? found->base + ((const char *)data - file->data)
                                              : NULL;
}

// -------------------------------------------------------------------------------------------------
// Determining which weights are read

static paged_file *file_at(const weight_pages *p, uintptr_t address) {
  for (paged_file *file = p->files; file != NULL; file = file->next) {
    if (file->base != NULL && address - (uintptr_t)file->base < file->file->bytes) {
      return file;
    }
  }
  return NULL;
}

bool aotc_rt_weight_pages_have(const aotc_rt_context *context, const void *address) {
  weight_pages *p = pages_of(context);
  if (p == NULL) {
    return false;
  }
  lock(p);
  bool is_there = file_at(p, (uintptr_t)address) != NULL;
  unlock(p);
  return is_there;
}

static uintptr_t described_by(const weight_pages *p, uintptr_t value) {
  for (size_t i = 0; i < p->alias_count; ++i) {
    if (p->aliases[i].descriptor == value) {
      return p->aliases[i].address;
    }
  }
  return value;
}

static bool add_alias(weight_pages *p, uintptr_t descriptor, uintptr_t address) {
  if (file_at(p, address) == NULL || described_by(p, descriptor) != descriptor) {
    return true;
  }
  if (p->alias_count == p->alias_capacity) {
    size_t wanted = 2 * p->alias_capacity + 64;
    alias *larger = realloc(p->aliases, wanted * sizeof(*larger));
    if (larger == NULL) {
      aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a descriptor of a weight");
      return false;
    }
    p->aliases = larger;
    p->alias_capacity = wanted;
  }
  p->aliases[p->alias_count++] = (alias){.descriptor = descriptor, .address = address};
  return true;
}

bool aotc_rt_weight_pages_describe(aotc_rt_scope *scope, const void *descriptor,
                                   const void *address) {
  weight_pages *p = pages_of(scope->context);
  if (p == NULL) {
    return true;
  }
  lock(p);
  bool is_known = add_alias(p, (uintptr_t)descriptor, (uintptr_t)address);
  unlock(p);
  return is_known;
}

// Adds the pages of the weight if `value` is the address of one, or of a descriptor of one; returns
// the number of pages that are new to the launch.
static uint64_t want(weight_pages *p, uintptr_t value) {
  uintptr_t address = described_by(p, value);
  paged_file *file = file_at(p, address);
  uint64_t start = 0, bytes = 0;
  if (file == NULL || p->range_count == AOTC_RT_MOST_RANGES ||
      !aotc_rt_weights_file_find(file->file, address - (uintptr_t)file->base, &start, &bytes)) {
    return 0;
  }
  range *wanted = &p->ranges[p->range_count++];
  *wanted = (range){.file = file,
                    .first = start / p->page_bytes,
                    .end = (start + bytes + p->page_bytes - 1) / p->page_bytes};
  uint64_t count = 0;
  for (size_t i = wanted->first; i < wanted->end; ++i) {
    count += file->pages[i].used != p->launches ? 1 : 0;
    file->pages[i].used = p->launches;
  }
  return count;
}

// The same for each pointer-sized value in a parameter.
static uint64_t want_parameters(weight_pages *p, const aotc_rt_parameters *parameters,
                                void *const *values) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < parameters->count; ++i) {
    for (uint32_t at = 0; at + sizeof(uintptr_t) <= parameters->bytes[i]; at += 8) {
      uintptr_t value = 0;
      memcpy(&value, (const char *)values[i] + at, sizeof(value));
      count += want(p, value);
    }
  }
  return count;
}

// -------------------------------------------------------------------------------------------------
// Reading them

static bool fail_capturing(const aotc_rt_driver *driver, aotc_rt_stream stream) {
  bool is_capturing = false;
  if (!AOTC_RT_TRY(driver, stream_is_capturing(stream, &is_capturing), "of weights' readers")) {
    return true;
  }
  if (is_capturing) {
    aotc_rt_fail(AOTC_UNSUPPORTED, "weights under a budget come in parts, which a captured stream "
                                   "cannot wait for");
  }
  return is_capturing;
}

// Begins a launch, or a copy, that reads the ranges, with `count` pages in total.
static bool begin_use(aotc_rt_scope *scope, weight_pages *p, uint64_t count,
                      aotc_rt_stream stream) {
  if (count > p->capacity) {
    uint64_t least = p->whole_bytes + count * p->page_bytes;
    aotc_rt_thread *thread = scope->thread;

    thread->least_weights_budget =
        least > thread->least_weights_budget ? least : thread->least_weights_budget;
    return false;
  }
  p->window = 2 * count > p->window ? (uint32_t)(2 * count) : p->window;
  // Launches after a skipped one would read data that it did not write.
  if (scope->thread->least_weights_budget != 0 || fail_capturing(scope->driver, stream)) {
    return false;
  }
  aotc_rt_capture_mode mode; // for other threads' captures
  if (!aotc_rt_capture_relax(scope->driver, &mode)) {
    return false;
  }
  bool is_there = aotc_rt_weight_blocks_bring(scope, p, stream);
  if (!is_there) {
    aotc_rt_weight_reader_fail(scope->driver, p);
  }
  return aotc_rt_capture_restore(scope->driver, mode) && is_there;
}

// Ends the launch if it was made; otherwise waits for its copies, because no later wait covers
// them.
static bool end_use(const aotc_rt_driver *driver, weight_pages *p, aotc_rt_stream stream,
                    bool is_made) {
  if (!is_made) {
    aotc_rt_weight_reader_fail(driver, p);
  }
  return is_made && aotc_rt_weight_reader_end(driver, p, stream);
}

bool aotc_rt_weight_pages_launch(aotc_rt_scope *scope, const aotc_rt_launch *l,
                                 aotc_rt_binding *binding, aotc_rt_stream stream) {
  const aotc_rt_driver *driver = scope->driver;
  weight_pages *p = pages_of(scope->context);
  const aotc_rt_parameters *parameters =
      l->parameters != NULL ? aotc_rt_binding_parameters(driver, binding) : NULL;
  if (parameters == NULL && l->parameters != NULL) {
    aotc_rt_fail(AOTC_UNSUPPORTED,
                 "the driver does not tell the parameters of kernel '%s': so it is not known which "
                 "weights are to be there",
                 l->kernel->name);
    return false;
  }
  if (parameters == NULL) {
    return aotc_rt_launch_now(driver, l, binding, stream);
  }
  lock(p);
  aotc_rt_weight_reader_begin(p);
  uint64_t count = want_parameters(p, parameters, l->parameters);
  bool is_launched = false;
  if (count > 0) {
    // With an early start, the kernel could read weights before the copies are done.
    aotc_rt_launch behind_copies = *l;
    behind_copies.begins_alone = true;
    is_launched =
        begin_use(scope, p, count, stream) &&
        end_use(driver, p, stream, aotc_rt_launch_now(driver, &behind_copies, binding, stream));
  } else {
    aotc_rt_weight_reader_cancel(p);
    is_launched =
        scope->thread->least_weights_budget == 0 && aotc_rt_launch_now(driver, l, binding, stream);
  }
  unlock(p);
  return is_launched;
}

bool aotc_rt_weight_pages_copy(aotc_rt_scope *scope, void *to, const void *from, size_t bytes,
                               aotc_rt_stream stream) {
  const aotc_rt_driver *driver = scope->driver;
  weight_pages *p = pages_of(scope->context);
  lock(p);
  aotc_rt_weight_reader_begin(p);
  uint64_t count = want(p, (uintptr_t)from);
  bool is_copied = (count == 0 || begin_use(scope, p, count, stream)) &&
                   AOTC_RT_TRY(driver, memory_copy(to, from, bytes, stream),
                               "%zu bytes from %p to %p", bytes, from, to);
  if (count == 0) {
    aotc_rt_weight_reader_cancel(p);
  } else {
    is_copied = end_use(driver, p, stream, is_copied);
  }
  unlock(p);
  return is_copied;
}

void aotc_rt_weight_pages_tell(aotc_rt_thread *thread) {
  uint64_t least = thread->least_weights_budget;
  if (least == 0) {
    return;
  }
  // Failures after the skipped launch come from reading memory that it did not write.
  aotc_error_clear();
  aotc_rt_fail(AOTC_OUT_OF_MEMORY,
               "one kernel reads more weights than their budget of %llu bytes has room for: the "
               "least that works is %llu",
               (unsigned long long)aotc_rt_state_of_process.weights_budget,
               (unsigned long long)least);
}

// -------------------------------------------------------------------------------------------------
// The end

// Forgets the descriptors of the file's weights.
static void forget_aliases(weight_pages *p, const paged_file *file) {
  size_t kept = 0;
  for (size_t i = 0; i < p->alias_count; ++i) {
    if (p->aliases[i].address - (uintptr_t)file->base >= file->reserved) {
      p->aliases[kept++] = p->aliases[i];
    }
  }
  p->alias_count = kept;
}

void aotc_rt_weight_pages_unload(const aotc_rt_driver *driver, aotc_rt_context *context,
                                 const aotc_rt_weights_file *file) {
  weight_pages *p = pages_of(context);
  if (p == NULL) {
    return;
  }
  // Other programs' kernels may be launching. Without a driver the lock is not taken: in a forked
  // child, the thread that held it does not exist.
  bool is_shared = file != NULL && aotc_rt_driver_to_release(&aotc_rt_state_of_process) != NULL;
  if (is_shared) {
    lock(p);
  }
  for (paged_file **link = &p->files; *link != NULL;) {
    paged_file *one = *link;
    if (file != NULL && one->file != file) {
      link = &one->next;
      continue;
    }
    *link = one->next;
    p->whole_bytes -= one->base == NULL ? one->file->bytes : 0;
    aotc_rt_weight_blocks_empty(driver, p, one);
    forget_aliases(p, one);
    free_file(driver, one);
  }
  if (is_shared) {
    unlock(p);
  }
  if (file == NULL) {
    atomic_store(&context->has_paged_weights, false);
    atomic_store(&context->weight_pages, NULL);
    aotc_rt_weight_blocks_unload(driver, p);
    pthread_mutex_destroy(&p->lock);
    free(p->aliases);
    free(p->blocks);
    free(p);
  }
}
