// The memory of a device's budget for weights, in pages, and its mapping to addresses.
//
// Models read their weights cyclically, so the least recently used page is the one needed next.
// Therefore most pages are never evicted, and the others share a window that has room for twice the
// pages that one kernel reads.
#include "weight_blocks.h"

#include "upload.h"

// A page that was not used for this many launches is evicted first.
#define STALE 65536

// Waits until a launch and all earlier ones have ended.
static bool wait_for(const aotc_rt_driver *driver, weight_pages *p, uint64_t launch) {
  while (p->waited < launch) {
    aotc_rt_event event = p->events[(p->waited + 1) % AOTC_RT_READERS];
    if (event != NULL &&
        !AOTC_RT_TRY(driver, event_synchronize(event), "waiting for kernels that read a weight")) {
      return false;
    }
    ++p->waited;
  }
  return true;
}

static uint64_t used(const block *b) {
  return b->file != NULL ? b->file->pages[b->page].used : 0;
}

// Chooses the block to reuse: a stale one, else the next one of the window, else any that this
// launch does not read.
static block *choose_victim(weight_pages *p) {
  block *oldest = NULL;
  for (uint32_t i = 0; i < p->block_count; ++i) {
    oldest = oldest == NULL || used(&p->blocks[i]) < used(oldest) ? &p->blocks[i] : oldest;
  }
  if (oldest->file == NULL || p->launches - used(oldest) > STALE) {
    return oldest;
  }
  uint32_t window = p->window < p->block_count ? p->window : p->block_count;
  for (uint32_t i = 0; i < window; ++i) {
    block *next = &p->blocks[p->block_count - window + p->turn++ % window];
    if (used(next) != p->launches) {
      return next;
    }
  }
  return oldest;
}

// Unmaps a block's memory from its page.
static bool empty_block(const aotc_rt_driver *driver, weight_pages *p, block *b) {
  if (b->file == NULL) {
    return true;
  }
  page *old = &b->file->pages[b->page];
  if (!wait_for(driver, p, old->used) ||
      !AOTC_RT_TRY(driver,
                   page_unmap(b->file->base + b->page * p->page_bytes, (size_t)p->page_bytes),
                   "a page of weights")) {
    return false;
  }
  old->block = AOTC_RT_NO_BLOCK;
  b->file = NULL;
  return true;
}

static block *find_block(aotc_rt_scope *scope, weight_pages *p) {
  if (p->block_count < p->capacity) {
    block *next = &p->blocks[p->block_count];
    if (!AOTC_RT_TRY(scope->driver, page_make(scope->context, (size_t)p->page_bytes, &next->memory),
                     "%llu bytes for weights, of a budget of %llu",
                     (unsigned long long)p->page_bytes, (unsigned long long)p->budget)) {
      return NULL;
    }
    ++p->block_count;
    return next;
  }
  block *victim = choose_victim(p);
  return empty_block(scope->driver, p, victim) ? victim : NULL;
}

static bool bring_page(aotc_rt_scope *scope, weight_pages *p, paged_file *file, size_t index) {
  block *b = find_block(scope, p);
  uint64_t at = index * p->page_bytes;
  uint64_t left = file->file->bytes - at;
  uint64_t bytes = left < p->page_bytes ? left : p->page_bytes;
  const char *data = file->file->data + at;
  if (b == NULL ||
      !AOTC_RT_TRY(scope->driver,
                   page_map(scope->context, file->base + at, (size_t)p->page_bytes, b->memory),
                   "a page of weights")) {
    return false;
  }
  b->file = file;
  b->page = index;
  bool is_copied =
      aotc_rt_upload(scope, file->base + at, data, (size_t)bytes, p->stream, "a page of weights");
  p->copying = p->launches;
  aotc_rt_lock();
  aotc_rt_weights_read_ahead_locked(data + bytes, left - bytes < bytes ? left - bytes : bytes);
  aotc_rt_unlock();
  if (!is_copied) {
    aotc_rt_weight_reader_fail(scope->driver, p); // a part of the copy may have been enqueued
    empty_block(scope->driver, p, b);
    return false;
  }
  file->pages[index].block = (uint32_t)(b - p->blocks);
  return true;
}

bool aotc_rt_weight_blocks_bring(aotc_rt_scope *scope, weight_pages *p, aotc_rt_stream stream) {
  const aotc_rt_driver *driver = scope->driver;
  if (p->launches > AOTC_RT_READERS && !wait_for(driver, p, p->launches - AOTC_RT_READERS)) {
    return false; // the event slot is reused for this launch
  }
  for (int r = 0; r < p->range_count; ++r) {
    for (size_t i = p->ranges[r].first; i < p->ranges[r].end; ++i) {
      if (p->ranges[r].file->pages[i].block != AOTC_RT_NO_BLOCK) {
        continue;
      }
      p->stream = p->stream != NULL ? p->stream : aotc_rt_stream_take(scope);
      if (p->stream == NULL || !bring_page(scope, p, p->ranges[r].file, i)) {
        return false;
      }
    }
  }
  if (p->copying == p->launches &&
      ((p->copied == NULL && !AOTC_RT_TRY(driver, event_create(false, &p->copied), "of copies")) ||
       !AOTC_RT_TRY(driver, event_record(p->copied, p->stream), "behind weights"))) {
    return false;
  }
  // Copies for another stream's launch count as well, until that is known to have ended.
  return p->copying <= p->waited ||
         AOTC_RT_TRY(driver, stream_wait_event(stream, p->copied), "for weights");
}

void aotc_rt_weight_reader_begin(weight_pages *p) {
  p->range_count = 0;
  ++p->launches;
}

void aotc_rt_weight_reader_cancel(weight_pages *p) {
  --p->launches;
}

bool aotc_rt_weight_reader_end(const aotc_rt_driver *driver, weight_pages *p,
                               aotc_rt_stream stream) {
  aotc_rt_event *event = &p->events[p->launches % AOTC_RT_READERS];
  bool is_noted =
      (*event != NULL || AOTC_RT_TRY(driver, event_create(false, event), "of weights' readers")) &&
      AOTC_RT_TRY(driver, event_record(*event, stream), "behind a weight's reader");
  if (!is_noted) { // its pages may be reused from now on
    AOTC_RT_TRY_RELEASE(driver, stream_synchronize(stream), "of a weight's reader");
  }
  return is_noted;
}

void aotc_rt_weight_reader_fail(const aotc_rt_driver *driver, weight_pages *p) {
  if (p->copying == p->launches) {
    AOTC_RT_TRY_RELEASE(driver, stream_synchronize(p->stream), "behind weights");
    p->copying = 0;
  }
}

// -------------------------------------------------------------------------------------------------
// The end

void aotc_rt_weight_blocks_empty(const aotc_rt_driver *driver, weight_pages *p,
                                 const paged_file *file) {
  for (uint32_t i = 0; i < p->block_count; ++i) {
    if (p->blocks[i].file == file && (driver == NULL || !empty_block(driver, p, &p->blocks[i]))) {
      p->blocks[i].file = NULL;
    }
  }
}

void aotc_rt_weight_blocks_unload(const aotc_rt_driver *driver, weight_pages *p) {
  for (uint32_t i = 0; i < p->block_count && driver != NULL; ++i) {
    AOTC_RT_TRY_RELEASE(driver, page_free(p->blocks[i].memory), "a page of weights");
  }
  for (int i = 0; i < AOTC_RT_READERS && driver != NULL; ++i) {
    if (p->events[i] != NULL) {
      AOTC_RT_TRY_RELEASE(driver, event_destroy(p->events[i]), "of weights' readers");
    }
  }
  if (p->copied != NULL && driver != NULL) {
    AOTC_RT_TRY_RELEASE(driver, event_destroy(p->copied), "of copies");
  }
  if (p->stream != NULL) {
    aotc_rt_stream_give_back(p->stream);
  }
}
