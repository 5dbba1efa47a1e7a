// Recorded launches, and the graphs kept for them.
//
// An entry's host code runs in every call; its launches are recorded and compared with the graphs
// of earlier calls. A graph is looked up by its kernels and their order; grids, blocks and
// parameters that differ are updated in it. So nothing is assumed about pointers and sizes.
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "trace.h"

// A graph does not pay off for fewer launches.
#define LEAST_LAUNCHES 4
// Per context; the least recently used ones are evicted.
#define MOST_GRAPHS 64
// Graphs of the same kernels with different pointers: an allocator may alternate between a few
// addresses in a loop's calls.
#define MOST_VARIANTS 4
#define ENTRIES 256

typedef struct aotc_rt_kept_graph {
  struct aotc_rt_kept_graph *next;
  uint64_t key;
  aotc_rt_stream stream;
  int count;
  bool is_busy;
  bool is_refused;     // rejected by the driver
  aotc_rt_graph graph; // NULL if not made yet
  aotc_rt_recorded *launches;
  char *values;
} kept_graph;

// Protects every context's graphs; not held during driver calls.
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

// Entries with enough launches in their last call, or others with the same hash.
static _Atomic(const aotc_entry *) large_entries[ENTRIES];

static _Atomic(const aotc_entry *) *place_of(const aotc_entry *entry) {
  return &large_entries[(uintptr_t)entry / sizeof(*entry) % ENTRIES];
}

// -------------------------------------------------------------------------------------------------
// Recording

void aotc_rt_recording_begin(aotc_rt_recording *recording, aotc_rt_scope *scope,
                             const aotc_entry *entry, aotc_rt_stream stream) {
  aotc_rt_thread *thread = scope->thread;
  thread->launches_of_entry = 0;
  // Host code that touches memory waits for the kernels launched so far.
  if (!aotc_rt_state_of_process.uses_graphs || entry->touches_memory_on_host ||
      atomic_load_explicit(place_of(entry), memory_order_relaxed) != entry ||
      aotc_rt_trace_is_on()) {
    return;
  }
  bool is_capturing = false;
  if (scope->driver->stream_is_capturing(stream, &is_capturing).code != 0 || is_capturing) {
    return;
  }
  *recording = (aotc_rt_recording){.scope = scope, .stream = stream};
  thread->recording = recording;
}

// Makes room for one more item of `bytes` bytes after `count` items; false if there is no memory.
static bool make_room(void **items, int count, int *capacity, size_t bytes) {
  if (count < *capacity) {
    return true;
  }
  int wanted = *capacity == 0 ? 64 : 2 * *capacity;
  void *larger = realloc(*items, (size_t)wanted * bytes);
  if (larger == NULL) {
    return false;
  }
  *items = larger;
  *capacity = wanted;
  return true;
}

static size_t aligned(size_t bytes) {
  return (bytes + AOTC_RT_SLOT_BYTES - 1) / AOTC_RT_SLOT_BYTES * AOTC_RT_SLOT_BYTES;
}

static bool make_room_for_values(aotc_rt_recording *r, size_t bytes) {
  if (r->values_capacity - r->bytes >= bytes) {
    return true;
  }
  size_t wanted = 2 * (r->bytes + bytes) + 8192;
  char *larger = realloc(r->values, wanted);
  if (larger == NULL) {
    return false;
  }
  r->values = larger;
  r->values_capacity = wanted;
  return true;
}

// Stores a value, followed by zeros, because the padding is compared as well. Most values are
// pointers and sizes.
static char *store_value(char *place, const void *value, size_t bytes) {
  if (bytes == AOTC_RT_SLOT_BYTES) {
    memcpy(place, value, AOTC_RT_SLOT_BYTES);
    return place + AOTC_RT_SLOT_BYTES;
  }
  size_t whole = aligned(bytes);
  if (whole > bytes) {
    memset(place + whole - AOTC_RT_SLOT_BYTES, 0, AOTC_RT_SLOT_BYTES);
  }
  memcpy(place, value, bytes);
  return place + whole;
}

bool aotc_rt_recording_add(aotc_rt_thread *thread, const aotc_rt_launch *l,
                           aotc_rt_binding *binding, aotc_rt_stream stream) {
  aotc_rt_recording *r = thread->recording;
  if (r == NULL || stream != r->stream || l->extra != NULL) {
    return false;
  }
  const aotc_rt_parameters *parameters = aotc_rt_binding_parameters(r->scope->driver, binding);
  size_t bytes = parameters != NULL ? parameters->recorded_bytes : 0;
  if (parameters == NULL ||
      !make_room((void **)&r->launches, r->count, &r->capacity, sizeof(*r->launches)) ||
      !make_room_for_values(r, bytes)) {
    return false;
  }
  char *place = r->values + r->bytes;
  for (uint32_t i = 0; i < parameters->count; ++i) {
    place = store_value(place, l->parameters[i], parameters->bytes[i]);
  }
  r->launches[r->count] = (aotc_rt_recorded){
      .launch = *l, .binding = binding, .values_at = r->bytes, .value_bytes = bytes};
  r->launches[r->count].launch.parameters = NULL;
  r->bytes += bytes;
  ++r->count;
  thread->is_adopted_stream_idle = false;
  return true;
}

bool aotc_rt_recording_free(aotc_rt_thread *thread, void *pointer, aotc_rt_stream stream) {
  aotc_rt_recording *r = thread->recording;
  if (r == NULL || r->count == 0) {
    return false;
  }
  if (stream != r->stream ||
      !make_room((void **)&r->freed, r->freed_count, &r->freed_capacity, sizeof(*r->freed))) {
    aotc_rt_recording_submit(r);
    return false;
  }
  r->freed[r->freed_count++] = pointer;
  return true;
}

// -------------------------------------------------------------------------------------------------
// Launching one by one

// The addresses of a launch's values; freed by the caller. NULL if there is no memory.
static void **addresses_of(const aotc_rt_recorded *recorded, char *values) {
  const aotc_rt_parameters *parameters = recorded->binding->parameters;
  void **addresses = malloc((parameters->count + 1) * sizeof(*addresses));
  char *place = values + recorded->values_at;
  for (uint32_t i = 0; i < parameters->count && addresses != NULL; ++i) {
    addresses[i] = place;
    place += aligned(parameters->bytes[i]);
  }
  return addresses;
}

static bool launch(const aotc_rt_recording *r, const aotc_rt_recorded *recorded,
                   aotc_rt_stream stream) {
  aotc_rt_launch l = recorded->launch;
  l.parameters = addresses_of(recorded, r->values);
  if (l.parameters == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for the parameters of a kernel");
    return false;
  }
  bool is_launched = aotc_rt_launch_now(r->scope->driver, &l, recorded->binding, stream);
  free(l.parameters);
  return is_launched;
}

// -------------------------------------------------------------------------------------------------
// Graphs

// A hash of the kernels and of the launch attributes that a graph update cannot change.
static uint64_t key_of(const aotc_rt_recording *r) {
  uint64_t key = 0xcbf29ce484222325u;
  for (int i = 0; i < r->count; ++i) {
    const aotc_rt_launch *l = &r->launches[i].launch;
    const uint64_t parts[] = {(uintptr_t)r->launches[i].binding, (uint64_t)l->cluster[0],
                              (uint64_t)l->cluster[1], (uint64_t)l->cluster[2], l->is_cooperative};
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); ++k) {
      key = (key ^ parts[k]) * 0x100000001b3u;
    }
  }
  return key;
}

static bool are_same_kernels(const kept_graph *kept, const aotc_rt_recording *r) {
  for (int i = 0; i < r->count; ++i) {
    const aotc_rt_recorded *a = &kept->launches[i];
    const aotc_rt_recorded *b = &r->launches[i];
    if (a->binding != b->binding || a->launch.is_cooperative != b->launch.is_cooperative ||
        memcmp(a->launch.cluster, b->launch.cluster, sizeof(a->launch.cluster)) != 0) {
      return false;
    }
  }
  return true;
}

static void *copy_of(const void *from, size_t bytes) {
  void *made = malloc(bytes + 1);
  return made != NULL ? memcpy(made, from, bytes) : NULL;
}

static kept_graph *make_kept(const aotc_rt_recording *r, uint64_t key) {
  kept_graph *made = calloc(1, sizeof(*made));
  if (made == NULL) {
    return NULL;
  }
  made->key = key;
  made->stream = r->stream;
  made->count = r->count;
  made->launches = copy_of(r->launches, (size_t)r->count * sizeof(*r->launches));
  made->values = copy_of(r->values, r->bytes);
  if (made->launches == NULL || made->values == NULL) {
    free(made->launches);
    free(made->values);
    free(made);
    return NULL;
  }
  return made;
}

static void destroy(const aotc_rt_driver *driver, kept_graph *kept) {
  if (kept->graph != NULL && driver != NULL) {
    AOTC_RT_TRY_RELEASE(driver, graph_destroy(kept->graph), "a graph of a call's launches");
  }
  free(kept->launches);
  free(kept->values);
  free(kept);
}

// Removes the least recently used idle graph if the list is too long; NULL otherwise.
static kept_graph *take_oldest_locked(aotc_rt_context *context) {
  kept_graph **oldest = NULL;
  int count = 0;
  for (kept_graph **place = &context->graphs; *place != NULL; place = &(*place)->next) {
    oldest = (*place)->is_busy ? oldest : place;
    ++count;
  }
  kept_graph *found = count > MOST_GRAPHS && oldest != NULL ? *oldest : NULL;
  if (found != NULL) {
    *oldest = found->next;
  }
  return found;
}

static bool is_like(const aotc_rt_recorded *a, const aotc_rt_recorded *b, const char *a_values,
                    const char *b_values) {
  return memcmp(a->launch.grid, b->launch.grid, sizeof(a->launch.grid)) == 0 &&
         memcmp(a->launch.block, b->launch.block, sizeof(a->launch.block)) == 0 &&
         a->launch.dynamic_shared_bytes == b->launch.dynamic_shared_bytes &&
         memcmp(a_values + a->values_at, b_values + b->values_at, a->value_bytes) == 0;
}

// Whether launching is cheaper than updating the graph: half of its launches would change.
static bool differs_much(const aotc_rt_recording *r, const kept_graph *kept) {
  int count = 0;
  for (int i = 0; i < r->count; ++i) {
    count += is_like(&kept->launches[i], &r->launches[i], kept->values, r->values) ? 0 : 1;
  }
  return 2 * count > r->count;
}

static bool is_of(const kept_graph *kept, const aotc_rt_recording *r, uint64_t key) {
  return kept->key == key && kept->stream == r->stream && kept->count == r->count &&
         are_same_kernels(kept, r);
}

// The graph for these launches that needs few updates. Otherwise the end of the list, or, if there
// are already enough graphs of these kernels, the least recently used of them.
static kept_graph **find_locked(aotc_rt_context *context, const aotc_rt_recording *r, uint64_t key,
                                int *out_variants) {
  kept_graph **place = &context->graphs;
  kept_graph **oldest = NULL;
  *out_variants = 0;
  for (; *place != NULL; place = &(*place)->next) {
    if (!is_of(*place, r, key)) {
      continue;
    }
    // A busy graph may be changing.
    if (!(*place)->is_busy && !differs_much(r, *place)) {
      return place;
    }
    oldest = place;
    ++*out_variants;
  }
  return *out_variants < MOST_VARIANTS ? place : oldest;
}

// Acquires the graph for these launches; it belongs to this thread until it is released. NULL if
// another thread has it. Also NULL for new launches if there are many graphs, or other graphs of
// the same kernels, because a graph that is not used again would not pay off.
static kept_graph *take(const aotc_rt_recording *r) {
  aotc_rt_context *context = r->scope->context;
  uint64_t key = key_of(r);
  pthread_mutex_lock(&the_lock);
  int variants = 0;
  kept_graph **place = find_locked(context, r, key, &variants);
  kept_graph *found = *place;
  kept_graph *old = NULL;
  bool is_new = found == NULL;
  if (is_new) {
    found = make_kept(r, key);
  } else {
    *place = found->next;
  }
  if (found != NULL) {
    found->next = context->graphs;
    context->graphs = found;
    old = is_new ? take_oldest_locked(context) : NULL;
  }
  bool is_first = is_new && (old != NULL || variants > 0);
  bool is_ours = found != NULL && !is_first && !found->is_busy && !found->is_refused;
  if (is_ours) {
    found->is_busy = true;
  }
  pthread_mutex_unlock(&the_lock);
  if (old != NULL) {
    destroy(r->scope->driver, old);
  }
  return is_ours ? found : NULL;
}

static void give_back(kept_graph *kept) {
  pthread_mutex_lock(&the_lock);
  kept->is_busy = false;
  pthread_mutex_unlock(&the_lock);
}

// Captures the launches on a stream of the pool. While other threads capture their streams, the
// driver rejects some of the calls unless the capture mode is relaxed.
static bool make_graph(const aotc_rt_recording *r, kept_graph *kept) {
  aotc_rt_scope *scope = r->scope;
  const aotc_rt_driver *driver = scope->driver;
  aotc_rt_capture_mode mode;
  aotc_rt_stream stream = aotc_rt_stream_take(scope);
  if (stream == NULL || !aotc_rt_capture_relax(driver, &mode)) {
    aotc_rt_stream_give_back(stream);
    return false;
  }
  void *nodes = NULL;
  bool is_good = driver->graph_begin(stream, r->count, &nodes).code == 0;
  for (int i = 0; i < r->count && is_good; ++i) {
    is_good = launch(r, &r->launches[i], stream) && driver->graph_note(stream, nodes, i).code == 0;
  }
  is_good = nodes != NULL && driver->graph_end(stream, nodes, is_good, &kept->graph).code == 0;
  bool is_restored = aotc_rt_capture_restore(driver, mode);
  aotc_rt_stream_give_back(stream);
  return is_good && kept->graph != NULL && is_restored;
}

// Stores the launch that the graph now has. Other threads may read the remaining members meanwhile.
static void remember_launch(const aotc_rt_recording *r, kept_graph *kept, int i) {
  aotc_rt_recorded *old = &kept->launches[i];
  const aotc_rt_recorded *new = &r->launches[i];
  memcpy(old->launch.grid, new->launch.grid, sizeof(old->launch.grid));
  memcpy(old->launch.block, new->launch.block, sizeof(old->launch.block));
  old->launch.dynamic_shared_bytes = new->launch.dynamic_shared_bytes;
  memcpy(kept->values + old->values_at, r->values + new->values_at, new->value_bytes);
}

static void remember(const aotc_rt_recording *r, kept_graph *kept) {
  for (int i = 0; i < r->count; ++i) {
    remember_launch(r, kept, i);
  }
}

// Updates the launches in the graph that differ.
static bool update(const aotc_rt_recording *r, kept_graph *kept) {
  for (int i = 0; i < r->count; ++i) {
    const aotc_rt_recorded *new = &r->launches[i];
    if (is_like(&kept->launches[i], new, kept->values, r->values)) {
      continue;
    }
    aotc_rt_launch l = new->launch;
    l.parameters = addresses_of(new, r->values);
    bool is_updated = l.parameters != NULL &&
                      r->scope->driver->graph_update(kept->graph, i, new->binding, &l).code == 0;
    free(l.parameters);
    if (!is_updated) {
      return false;
    }
    remember_launch(r, kept, i);
  }
  return true;
}

// Submits the launches as a graph; false if they must be launched one by one. A failure here is not
// reported, because the individual launch will fail again and report it.
static bool submit_graph(const aotc_rt_recording *r) {
  kept_graph *kept = r->count >= LEAST_LAUNCHES ? take(r) : NULL;
  if (kept == NULL) {
    return false;
  }
  if (differs_much(r, kept)) {
    // It is rebuilt for these launches if they are seen again.
    if (kept->graph != NULL) {
      AOTC_RT_TRY_RELEASE(r->scope->driver, graph_destroy(kept->graph),
                          "a graph of other launches");
      kept->graph = NULL;
    }
    remember(r, kept);
    give_back(kept);
    return false;
  }
  aotc_rt_error failure = {.status = AOTC_OK};
  aotc_rt_error *sink = r->scope->thread->sink;
  r->scope->thread->sink = &failure;
  bool is_new = kept->graph == NULL;
  bool is_made = is_new ? make_graph(r, kept) : update(r, kept);
  if (is_made && is_new) {
    remember(r, kept);
  }
  kept->is_refused = !is_made;
  bool is_done = is_made && r->scope->driver->graph_launch(kept->graph, r->stream).code == 0;
  r->scope->thread->sink = sink;
  give_back(kept);
  return is_done;
}

void aotc_rt_recording_submit(aotc_rt_recording *r) {
  aotc_rt_thread *thread = r->scope->thread;
  const char *operation = thread->operation;
  thread->recording = NULL; // the calls below must not be recorded
  if (r->count > 0 && thread->error.status == AOTC_OK) {
    thread->operation = "mgpuLaunchKernel";
    bool is_submitted = aotc_rt_make_current(r->scope) && submit_graph(r);
    for (int i = 0; i < r->count && !is_submitted; ++i) {
      is_submitted = !launch(r, &r->launches[i], r->stream);
    }
  }
  r->count = 0;
  r->bytes = 0;
  for (int i = 0; i < r->freed_count; ++i) {
    thread->operation = "mgpuMemFree";
    aotc_rt_release_in_order(r->scope, r->freed[i], r->stream);
  }
  r->freed_count = 0;
  thread->operation = operation;
  thread->recording = r;
}

void aotc_rt_recording_end(aotc_rt_recording *r, const aotc_entry *entry) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (thread->recording == r) {
    aotc_rt_recording_submit(r);
    thread->recording = NULL;
    free(r->launches);
    free(r->values);
    free(r->freed);
  }
  _Atomic(const aotc_entry *) *place = place_of(entry);
  bool is_large = thread->launches_of_entry >= LEAST_LAUNCHES;
  if (is_large != (atomic_load_explicit(place, memory_order_relaxed) == entry)) {
    atomic_store_explicit(place, is_large ? entry : NULL, memory_order_relaxed);
  }
}

// -------------------------------------------------------------------------------------------------
// The end

void aotc_rt_graphs_unload(const aotc_rt_driver *driver, aotc_rt_context *context) {
  pthread_mutex_lock(&the_lock);
  kept_graph *all = context->graphs;
  context->graphs = NULL;
  pthread_mutex_unlock(&the_lock);
  while (all != NULL) {
    kept_graph *next = all->next;
    destroy(driver, all);
    all = next;
  }
}

void aotc_rt_graphs_forget_kernels(const aotc_rt_driver *driver) {
  aotc_rt_context *context = atomic_load(&aotc_rt_state_of_process.contexts);
  for (; context != NULL; context = context->next) {
    bool is_current = driver != NULL && context->graphs != NULL &&
                      aotc_rt_context_enter_to_release(driver, context, "to give back its graphs");
    aotc_rt_graphs_unload(is_current ? driver : NULL, context);
    if (is_current) {
      AOTC_RT_TRY_RELEASE(driver, context_pop(), "after graphs are given back");
    }
  }
}
