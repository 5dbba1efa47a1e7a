// Kernels by the address of their name.
#ifndef AOTC_RT_NAME_TABLE_H
#define AOTC_RT_NAME_TABLE_H

#include "state.h"

typedef struct aotc_rt_name_table aotc_rt_name_table;

// An empty table; NULL, with nothing recorded, if there is no memory for it.
aotc_rt_name_table *aotc_rt_name_table_make(void);

// Frees the table and all that it replaced.
void aotc_rt_name_table_free(aotc_rt_name_table *table);

// The kernel that was added at this address; NULL if there is none. No lock is needed. The name may
// be another by now, if it is in a buffer.
aotc_rt_kernel *aotc_rt_name_table_find(const aotc_rt_name_table *table, const char *name);

// Makes the next look-up of `name` fast; a full table is replaced. Without memory for that it stays
// slow.
void aotc_rt_name_table_add_locked(_Atomic(aotc_rt_name_table *) *names, const char *name,
                                   aotc_rt_kernel *kernel);

#endif // AOTC_RT_NAME_TABLE_H
