// Shared by the files for the state of entries.
#ifndef AOTC_RT_ENTRY_STATE_H
#define AOTC_RT_ENTRY_STATE_H

#include "aotc_state.h"
#include "entry.h"

struct aotc_state {
  const aotc_state_type *type;
  aotc_rt_memref *memrefs[]; // one for each field
};

static inline char *aotc_rt_state_data(const aotc_state *state, int32_t field) {
  return state->memrefs[field]->aligned;
}

#endif // AOTC_RT_ENTRY_STATE_H
