// Kernels by the address of their name.
#ifndef AOTC_RT_NAME_TABLE_H
#define AOTC_RT_NAME_TABLE_H

#include "state.h"

typedef struct aotc_rt_name_table aotc_rt_name_table;

// Creates an empty table; NULL, with no failure recorded, if there is no memory for it.
aotc_rt_name_table *aotc_rt_name_table_make(void);

// Frees the table and the tables it replaced.
void aotc_rt_name_table_free(aotc_rt_name_table *table);

// The kernel added for this address; NULL if there is none. Needs no lock. If the name is in a
// buffer, its text may have changed since.
aotc_rt_kernel *aotc_rt_name_table_find(const aotc_rt_name_table *table, const char *name);

// Adds `name`, so that later look-ups of it are fast; a full table is replaced. If there is no
// memory for that, they stay slow.
void aotc_rt_name_table_add_locked(_Atomic(aotc_rt_name_table *) *names, const char *name,
                                   aotc_rt_kernel *kernel);

#endif // AOTC_RT_NAME_TABLE_H
