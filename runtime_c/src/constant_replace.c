// Replacing the data of a constant at run time. The new data are stored where the program computes:
// in host memory on the CPU, otherwise in the context of the call. The host and other contexts copy
// them from there when they first need them.
#include <stdlib.h>

#include "constants.h"

typedef aotc_rt_constant_copy constant_copy;

// The marker of a replaced constant, which has no address, and its data in host memory.
static const aotc_rt_constant_form the_mark = {.what = "replace"}, the_data = {.what = "replace"};

bool aotc_rt_constant_is_replaced(const aotc_constant *constant) {
  return aotc_rt_constant_find(constant, NULL, &the_mark, 0) != NULL;
}

const void *aotc_rt_constant_source(const aotc_constant *constant) {
  if (!aotc_rt_constant_is_replaced(constant)) {
    return NULL;
  }
  const constant_copy *copy = aotc_rt_constant_find(constant, NULL, &the_data, 0);
  if (copy == NULL) {
    copy = aotc_rt_constant_copies(constant);
    while (copy != NULL && copy->context == NULL) {
      copy = copy->next;
    }
  }
  return copy != NULL ? copy->address : NULL;
}

// A copy that is not published yet, with this many bytes of host memory; NULL, with the failure
// recorded.
static constant_copy *make_host_copy(const aotc_rt_constant_form *form, uint64_t bytes) {
  void *address = bytes > 0 ? aotc_rt_host_allocate(bytes) : NULL;
  constant_copy *copy = bytes == 0 || address != NULL ? malloc(sizeof(*copy)) : NULL;
  if (copy == NULL) {
    free(address);
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to replace a weight");
    return NULL;
  }
  *copy = (constant_copy){.form = form, .address = address};
  return copy;
}

const void *aotc_rt_constant_in_host_memory(aotc_constant *constant) {
  const constant_copy *found = aotc_rt_constant_find(constant, NULL, &the_data, 0);
  if (found != NULL) {
    return found->address;
  }
  constant_copy *copy = make_host_copy(&the_data, constant->bytes);
  if (copy == NULL) {
    return NULL;
  }
  if (aotc_memory_copy(copy->address, aotc_rt_constant_source(constant), constant->bytes) !=
      AOTC_OK) {
    free(copy->address);
    free(copy);
    return NULL;
  }
  aotc_rt_lock();
  found = aotc_rt_constant_find(constant, NULL, &the_data, 0); // another thread may have added it
  if (found == NULL) {
    aotc_rt_constant_add_locked(constant, copy);
    found = copy;
    copy = NULL;
  }
  aotc_rt_unlock();
  if (copy != NULL) {
    free(copy->address);
    free(copy);
  }
  return found->address;
}

// Returns the destination of the new data: host memory on the CPU, otherwise the copy in the
// scope's context, which keeps its address if it exists. Frees all other copies. NULL, with the
// failure recorded.
static void *make_place(aotc_rt_scope *scope, aotc_constant *constant) {
  constant_copy *mark = make_host_copy(&the_mark, 0);
  if (mark == NULL) {
    return NULL;
  }
  const constant_copy *place = NULL;
  constant_copy *made = NULL;
  if (scope->driver != NULL) {
    place = aotc_rt_constant_provide(scope, constant, NULL);
  } else {
    place = made = make_host_copy(&the_data, constant->bytes);
  }
  if (place == NULL) {
    free(mark);
    return NULL;
  }
  aotc_rt_lock();
  if (made != NULL) {
    aotc_rt_constant_add_locked(constant, made);
  }
  aotc_rt_constant_free_others_locked(scope->driver, constant, place);
  aotc_rt_constant_add_locked(constant, mark);
  aotc_rt_unlock();
  return place->address;
}

aotc_status aotc_rt_constant_replace(aotc_constant *constant, const void *data) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "replacing a weight")) {
    return aotc_rt_this_thread.latest;
  }
  void *place = make_place(&scope, constant);
  if (!aotc_rt_end(&scope) || place == NULL) {
    return scope.thread->latest;
  }
  aotc_status status = aotc_memory_copy(place, data, constant->bytes);
  if (status != AOTC_OK) {
    aotc_constant_release(constant); // the old data are better than a partial copy
  }
  return status;
}

aotc_status aotc_rt_constant_restore(aotc_constant *constant, const void *data) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "restoring a weight")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_on_cpu = scope.driver == NULL;
  if (!aotc_rt_end(&scope)) {
    return scope.thread->latest;
  }
  if (!is_on_cpu) {
    return aotc_rt_constant_replace(constant, data);
  }
  aotc_constant_release(constant);
  return AOTC_OK;
}
