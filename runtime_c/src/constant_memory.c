// Device memory for constants. Small constants share an allocation, because the driver rounds each
// allocation up to a 2 MiB page. Large ones, for which that hardly matters, have their own: a
// shared allocation stays alive after a program is unloaded as long as another program's constant
// is in it.
#include <stdlib.h>

#include "constants.h"

#define PAGE_BYTES ((uint64_t)2 << 20)
// In addition to its first constant, a block has room for this fraction of the context's blocks.
#define EXTRA_PART 8
#define MOST_EXTRA_BYTES ((uint64_t)16 << 20)
#define LARGE_BYTES ((uint64_t)16 << 20)
// The alignment of cuMemAlloc, which kernels may rely on.
#define ALIGNMENT 256

struct aotc_rt_constant_block {
  struct aotc_rt_constant_block *next;
  aotc_rt_context *context;
  char *address;
  uint64_t bytes;
  uint64_t used;    // bytes from the start; freed bytes are not reused
  size_t constants; // number of live constants in the block
};

typedef struct aotc_rt_constant_block constant_block;

static uint64_t round_up(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// The block of the context with the least free space that has room for the bytes; NULL if none.
static constant_block *find_room(const aotc_rt_context *context, uint64_t bytes) {
  constant_block *best = NULL;
  for (constant_block *block = aotc_rt_state_of_process.constant_blocks; block != NULL;
       block = block->next) {
    uint64_t room = block->bytes - block->used;
    if (block->context == context && room >= bytes &&
        (best == NULL || room < best->bytes - best->used)) {
      best = block;
    }
  }
  return best;
}

// The size of a new block for a constant of this size.
static uint64_t choose_bytes(const aotc_rt_context *context, uint64_t bytes) {
  uint64_t extra = 0;
  for (const constant_block *block = aotc_rt_state_of_process.constant_blocks; block != NULL;
       block = block->next) {
    extra += block->context == context ? block->bytes / EXTRA_PART : 0;
  }
  extra = extra < MOST_EXTRA_BYTES ? extra : MOST_EXTRA_BYTES;
  return round_up(bytes + extra, PAGE_BYTES);
}

static bool allocate_block(const aotc_rt_scope *scope, uint64_t bytes, constant_block *block) {
  void *address = NULL;
  block->bytes = bytes;
  bool is_there = aotc_rt_is_success(scope->driver->memory_allocate(
      scope->context, AOTC_MEMORY_DEVICE, (size_t)block->bytes, NULL, &address));
  block->address = address;
  return is_there;
}

static constant_block *make_block(aotc_rt_scope *scope, uint64_t bytes) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  constant_block *block = malloc(sizeof(*block));
  if (block == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a constant");
    return NULL;
  }
  *block = (constant_block){.next = state->constant_blocks, .context = scope->context};
  uint64_t least = bytes < LARGE_BYTES ? round_up(bytes, PAGE_BYTES) : bytes;
  uint64_t most = bytes < LARGE_BYTES ? choose_bytes(scope->context, bytes) : bytes;
  // There may be memory for this constant but not for more.
  bool is_there = allocate_block(scope, most, block);
  if (!is_there && most > least && aotc_rt_failed().status == AOTC_OUT_OF_MEMORY) {
    is_there = allocate_block(scope, least, block);
  }
  if (!is_there) {
    aotc_rt_check(scope->driver, aotc_rt_failed(), "a constant of %llu bytes",
                  (unsigned long long)bytes);
    free(block);
    return NULL;
  }
  state->constant_blocks = block;
  return block;
}

void *aotc_rt_constant_memory_take_locked(aotc_rt_scope *scope, uint64_t bytes) {
  uint64_t needed = round_up(aotc_rt_at_least_one(bytes), ALIGNMENT);
  constant_block *block = find_room(scope->context, needed);
  if (block == NULL) {
    block = make_block(scope, needed);
  }
  if (block == NULL) {
    return NULL;
  }
  char *address = block->address + block->used;
  block->used += needed;
  ++block->constants;
  return address;
}

void aotc_rt_constant_memory_give_back_locked(const aotc_rt_driver *driver,
                                              const aotc_rt_context *context, const void *address) {
  constant_block **link = &aotc_rt_state_of_process.constant_blocks;
  while (*link != NULL &&
         ((*link)->context != context || (uintptr_t)address < (uintptr_t)(*link)->address ||
          (uintptr_t)address >= (uintptr_t)(*link)->address + (*link)->bytes)) {
    link = &(*link)->next;
  }
  constant_block *block = *link;
  if (block == NULL || --block->constants > 0) {
    return;
  }
  *link = block->next;
  if (driver != NULL) {
    AOTC_RT_TRY_RELEASE(driver, memory_free(block->address, NULL), "a constant");
  }
  free(block);
}
