// Stand-ins for managed memory.
//
// Host code uses managed memory without checking whether it was allocated. If the allocation
// failed, it gets zeroed host memory: the failure is recorded, nothing is launched, and the code
// runs to its end.
#include <stdlib.h>

#include "state.h"

typedef struct aotc_rt_stand_in {
  struct aotc_rt_stand_in *next;
  void *pointer;
} stand_in;

void *aotc_rt_stand_in_allocate(uint64_t bytes) {
  stand_in *made = malloc(sizeof(*made));
  void *pointer = made != NULL ? calloc(1, aotc_rt_at_least_one(bytes)) : NULL;
  if (pointer == NULL) {
    free(made);
    return NULL;
  }
  made->pointer = pointer;
  aotc_rt_lock();
  made->next = aotc_rt_state_of_process.stand_ins;
  aotc_rt_state_of_process.stand_ins = made;
  atomic_fetch_add(&aotc_rt_state_of_process.stand_in_count, 1);
  aotc_rt_unlock();
  return pointer;
}

bool aotc_rt_stand_in_release(void *pointer) {
  if (atomic_load(&aotc_rt_state_of_process.stand_in_count) == 0) {
    return false;
  }
  aotc_rt_lock();
  stand_in **place = &aotc_rt_state_of_process.stand_ins;
  while (*place != NULL && (*place)->pointer != pointer) {
    place = &(*place)->next;
  }
  stand_in *found = *place;
  if (found != NULL) {
    *place = found->next;
    atomic_fetch_sub(&aotc_rt_state_of_process.stand_in_count, 1);
  }
  aotc_rt_unlock();
  if (found == NULL) {
    return false;
  }
  free(found->pointer);
  free(found);
  return true;
}

void aotc_rt_stand_ins_unload_locked(aotc_rt_state *state) {
  while (state->stand_ins != NULL) {
    stand_in *made = state->stand_ins;
    state->stand_ins = made->next;
    free(made->pointer);
    free(made);
  }
  atomic_store(&state->stand_in_count, 0);
}
