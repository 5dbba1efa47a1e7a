// Kernels by the address of their name.
//
// Names are constants of the program, so they are looked up by address; the text is compared as
// well, because a program may build names in a buffer.
#include "name_table.h"

#include <stdlib.h>

#define FIRST_SLOTS 16

// Slots are written under the lock and read without it. A full table is replaced by a larger one,
// but kept for threads that are still reading it.
struct aotc_rt_name_table {
  aotc_rt_name_table *smaller;
  size_t slot_count; // a power of 2
  size_t used;
  struct {
    _Atomic(const char *) name;
    _Atomic(aotc_rt_kernel *) kernel;
  } slots[];
};

static aotc_rt_name_table *make_table(size_t slot_count, aotc_rt_name_table *smaller) {
  aotc_rt_name_table *table = calloc(1, sizeof(*table) + slot_count * sizeof(table->slots[0]));
  if (table != NULL) {
    table->slot_count = slot_count;
    table->smaller = smaller;
  }
  return table;
}

aotc_rt_name_table *aotc_rt_name_table_make(void) {
  return make_table(FIRST_SLOTS, NULL);
}

void aotc_rt_name_table_free(aotc_rt_name_table *table) {
  while (table != NULL) {
    aotc_rt_name_table *smaller = table->smaller;
    free(table);
    table = smaller;
  }
}

static size_t first_slot(const aotc_rt_name_table *table, const char *name) {
  uintptr_t address = (uintptr_t)name;
  return (size_t)((address >> 4) ^ (address >> 12) ^ address) & (table->slot_count - 1);
}

aotc_rt_kernel *aotc_rt_name_table_find(const aotc_rt_name_table *table, const char *name) {
  size_t slot = first_slot(table, name);
  for (size_t i = 0; i < table->slot_count; ++i, slot = (slot + 1) & (table->slot_count - 1)) {
    const char *key = atomic_load_explicit(&table->slots[slot].name, memory_order_acquire);
    if (key == name) {
      // The kernel was written before the name.
      return atomic_load_explicit(&table->slots[slot].kernel, memory_order_relaxed);
    }
    if (key == NULL) {
      return NULL;
    }
  }
  return NULL;
}

static void insert(aotc_rt_name_table *table, const char *name, aotc_rt_kernel *kernel) {
  size_t slot = first_slot(table, name);
  while (atomic_load_explicit(&table->slots[slot].name, memory_order_relaxed) != NULL) {
    slot = (slot + 1) & (table->slot_count - 1);
  }
  atomic_store_explicit(&table->slots[slot].kernel, kernel, memory_order_relaxed);
  atomic_store_explicit(&table->slots[slot].name, name, memory_order_release);
  ++table->used;
}

void aotc_rt_name_table_add_locked(_Atomic(aotc_rt_name_table *) *names, const char *name,
                                   aotc_rt_kernel *kernel) {
  aotc_rt_name_table *table = atomic_load_explicit(names, memory_order_relaxed);
  if (aotc_rt_name_table_find(table, name) != NULL) {
    return; // the address is a buffer's, which held another name before
  }
  if (table->used * 2 >= table->slot_count) {
    aotc_rt_name_table *larger = make_table(table->slot_count * 2, table);
    if (larger == NULL) {
      return;
    }
    for (size_t i = 0; i < table->slot_count; ++i) {
      const char *key = atomic_load_explicit(&table->slots[i].name, memory_order_relaxed);
      if (key != NULL) {
        insert(larger, key, atomic_load_explicit(&table->slots[i].kernel, memory_order_relaxed));
      }
    }
    atomic_store_explicit(names, larger, memory_order_release);
    table = larger;
  }
  insert(table, name, kernel);
}
