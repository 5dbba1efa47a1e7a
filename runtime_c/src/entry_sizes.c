// The sizes of an entry's results, computed before it is called.
#include "entry.h"

// Rejects a result that the entry could not allocate.
static bool check_result(const aotc_value *value, const int64_t *sizes) {
  bool is_good = aotc_rt_fits_memory(value, sizes);
  for (int32_t i = 0; i < value->rank; ++i) {
    is_good = is_good && (sizes[i] >= 0 || sizes[i] == AOTC_DYNAMIC);
  }
  if (!is_good) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "there is no memory for a %s", value->type);
  }
  return is_good;
}

static void check_results(const aotc_entry *entry, const int64_t *sizes) {
  bool is_good = true;
  for (int32_t i = 0; i < entry->result_count && is_good; ++i) {
    const aotc_value *value = &entry->results[i];
    is_good = value->rank < 0 || check_result(value, sizes);
    sizes += value->rank < 0 ? 0 : value->rank;
  }
}

static void hand_out(const aotc_entry *entry, const int64_t *sizes, bool is_good,
                     int64_t *const *out_shapes) {
  for (int32_t i = 0; i < entry->result_count; ++i) {
    int32_t rank = entry->results[i].rank;
    for (int32_t k = 0; k < rank && out_shapes[i] != NULL; ++k) {
      int64_t size = sizes[k] == AOTC_DYNAMIC ? -1 : sizes[k];
      out_shapes[i][k] = is_good ? size : 0;
    }
    sizes += rank < 0 ? 0 : rank;
  }
}

aotc_status aotc_entry_size_workspace(const aotc_entry *entry, const void *const *given,
                                      uint64_t *out_bytes) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_error_clear();
  const char *before = thread->entry;
  int64_t bytes = (int64_t)entry->workspace_bytes;
  thread->entry = entry->name;
  if (aotc_rt_entry_check_sizes(entry, given) && entry->size_workspace != NULL) {
    entry->size_workspace(given, &bytes);
  }
  *out_bytes = thread->error.status == AOTC_OK ? (uint64_t)bytes : 0;
  thread->entry = before;
  return aotc_rt_entry_tell(thread);
}

aotc_status aotc_entry_size_results(const aotc_entry *entry, const void *const *given,
                                    int64_t *sizes, int64_t *const *out_shapes) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_error_clear();
  const char *before = thread->entry;
  thread->entry = entry->name;
  if (aotc_rt_entry_check_sizes(entry, given)) {
    entry->size_results(given, sizes);
    if (thread->error.status == AOTC_OK) {
      check_results(entry, sizes);
    }
  }
  hand_out(entry, sizes, thread->error.status == AOTC_OK, out_shapes);
  thread->entry = before;
  return aotc_rt_entry_tell(thread);
}
