// What a device has of weights under a budget: what weight_pages.c and weight_blocks.c share.
#ifndef AOTC_RT_WEIGHT_BLOCKS_H
#define AOTC_RT_WEIGHT_BLOCKS_H

#include "weight_pages.h"

#define AOTC_RT_NO_BLOCK UINT32_MAX
// Of launches whose end is not known yet.
#define AOTC_RT_READERS 64
// Of pointers of one launch: a kernel's parameters have 32 KiB at most.
#define AOTC_RT_MOST_RANGES 4096

typedef struct page {
  uint32_t block; // AOTC_RT_NO_BLOCK: it is not resident
  uint64_t used;  // the number of the latest launch that reads it
} page;

// A file on a device. All of it is copied as its weights are asked for if `base` is NULL.
typedef struct paged_file {
  struct paged_file *next;
  const aotc_rt_weights_file *file;
  char *base;
  size_t reserved, page_count;
  page *pages;
} paged_file;

// Memory of one page, and what it is behind.
typedef struct block {
  uint64_t memory;
  paged_file *file;
  size_t page;
} block;

typedef struct range {
  paged_file *file;
  size_t first, end; // pages
} range;

// A descriptor in the device's memory, of a weight.
typedef struct alias {
  uintptr_t descriptor, address;
} alias;

struct aotc_rt_weight_pages {
  // Of all here, taken by the functions below. The state's may be taken under it.
  pthread_mutex_t lock;
  uint64_t budget, whole_bytes;
  uint64_t page_bytes;
  paged_file *files;
  block *blocks;
  uint32_t block_count, capacity;
  uint32_t window; // the blocks at the end that take turns
  uint32_t turn;
  uint64_t launches, waited; // how many there were, and are known to have ended
  uint64_t copying;          // the latest that brought pages; 0: all are there
  aotc_rt_event events[AOTC_RT_READERS], copied;
  aotc_rt_stream stream; // of the copies
  range ranges[AOTC_RT_MOST_RANGES];
  int range_count;
  alias *aliases;
  size_t alias_count, alias_capacity;
};
typedef struct aotc_rt_weight_pages weight_pages;

// Begins a launch, or a copy, of a number of its own; takes that back, if it reads no weight.
void aotc_rt_weight_reader_begin(weight_pages *p);
void aotc_rt_weight_reader_cancel(weight_pages *p);
// Brings the pages of all ranges that are not there. What comes next on the stream is behind their
// copies, and behind those that other streams' launches began.
bool aotc_rt_weight_blocks_bring(aotc_rt_scope *scope, weight_pages *p, aotc_rt_stream stream);
// Notes on the stream where the launch ends.
bool aotc_rt_weight_reader_end(const aotc_rt_driver *driver, weight_pages *p,
                               aotc_rt_stream stream);

// Waits for the copies of a launch that failed: nothing that is waited for later is behind them.
void aotc_rt_weight_reader_fail(const aotc_rt_driver *driver, weight_pages *p);

// Takes what is behind a file's pages; frees all memory of pages.
void aotc_rt_weight_blocks_empty(const aotc_rt_driver *driver, weight_pages *p,
                                 const paged_file *file);
void aotc_rt_weight_blocks_unload(const aotc_rt_driver *driver, weight_pages *p);

#endif // AOTC_RT_WEIGHT_BLOCKS_H
