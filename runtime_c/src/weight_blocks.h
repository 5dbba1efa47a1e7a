// A device's weights under a memory budget, shared by weight_pages.c and weight_blocks.c.
#ifndef AOTC_RT_WEIGHT_BLOCKS_H
#define AOTC_RT_WEIGHT_BLOCKS_H

#include "weight_pages.h"

#define AOTC_RT_NO_BLOCK UINT32_MAX
// The maximum number of launches that may still be running.
#define AOTC_RT_READERS 64
// The maximum number of pointers of a launch: a kernel has at most 32 KiB of parameters.
#define AOTC_RT_MOST_RANGES 4096

typedef struct page {
  uint32_t block; // AOTC_RT_NO_BLOCK if it is not resident
  uint64_t used;  // the number of the latest launch that reads it
} page;

// A file on a device. If `base` is NULL, the file fits into the budget, and each weight gets a
// copy.
typedef struct paged_file {
  struct paged_file *next;
  const aotc_rt_weights_file *file;
  char *base;
  size_t reserved, page_count;
  page *pages;
} paged_file;

// The memory of one page, and the page it is mapped to.
typedef struct block {
  uint64_t memory;
  paged_file *file;
  size_t page;
} block;

typedef struct range {
  paged_file *file;
  size_t first, end; // pages
} range;

// A descriptor of a weight in device memory.
typedef struct alias {
  uintptr_t descriptor, address;
} alias;

struct aotc_rt_weight_pages {
  // Protects all members; locked by the functions below. The state's lock may be taken while it is
  // held.
  pthread_mutex_t lock;
  uint64_t budget, whole_bytes;
  uint64_t page_bytes;
  paged_file *files;
  block *blocks;
  uint32_t block_count, capacity;
  uint32_t window; // number of blocks at the end that are reused cyclically
  uint32_t turn;
  uint64_t launches, waited; // numbers of the latest launch, and of the latest known to have ended
  uint64_t copying;          // the latest launch that copied pages; 0 if all copies are done
  aotc_rt_event events[AOTC_RT_READERS], copied;
  aotc_rt_stream stream; // for the copies
  range ranges[AOTC_RT_MOST_RANGES];
  int range_count;
  alias *aliases;
  size_t alias_count, alias_capacity;
};
typedef struct aotc_rt_weight_pages weight_pages;

// Begins a launch, or a copy, with a new number; the second function undoes it if it reads no
// weight.
void aotc_rt_weight_reader_begin(weight_pages *p);
void aotc_rt_weight_reader_cancel(weight_pages *p);
// Copies all nonresident pages of all ranges. Later work on the stream is ordered after these
// copies and those begun for launches on other streams.
bool aotc_rt_weight_blocks_bring(aotc_rt_scope *scope, weight_pages *p, aotc_rt_stream stream);
// Records on the stream where the launch ends.
bool aotc_rt_weight_reader_end(const aotc_rt_driver *driver, weight_pages *p,
                               aotc_rt_stream stream);

// Waits for the copies of a failed launch, because no later wait covers them.
void aotc_rt_weight_reader_fail(const aotc_rt_driver *driver, weight_pages *p);

// Unmap a file's pages; free the memory of all pages.
void aotc_rt_weight_blocks_empty(const aotc_rt_driver *driver, weight_pages *p,
                                 const paged_file *file);
void aotc_rt_weight_blocks_unload(const aotc_rt_driver *driver, weight_pages *p);

#endif // AOTC_RT_WEIGHT_BLOCKS_H
