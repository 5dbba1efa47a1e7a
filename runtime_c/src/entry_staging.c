// The memory of an entry's arguments: used in place, or copied.
#include "entry_staging.h"

#include "staging.h"

#define NAME_BYTES 256

// -------------------------------------------------------------------------------------------------
// Use in place

// "argument 'A' (memref<4xf32>)"
static const char *name_of(const aotc_entry *entry, int32_t index, char *text, size_t bytes) {
  text[0] = '\0';
  aotc_rt_append(text, bytes, "argument '%s' (%s)", entry->arguments[index].name,
                 entry->arguments[index].type);
  return text;
}

static bool is_in_place(const aotc_rt_call *c, aotc_memory_kind wanted,
                        const aotc_rt_place *place) {
  if (place->is_managed) {
    return true;
  }
  switch (wanted) {
  case AOTC_MEMORY_DEVICE:
    return place->is_device && place->ordinal == c->scope.context->description.ordinal;
  case AOTC_MEMORY_HOST:
    return !place->is_device;
  case AOTC_MEMORY_MANAGED:
    break;
  }
  return false;
}

bool aotc_rt_call_classify(aotc_rt_call *c) {
  bool is_staged = false;
  for (int32_t i = 0; i < c->entry->argument_count; ++i) {
    aotc_rt_piece *piece = &c->pieces[i];
    piece->is_staged = false;
    aotc_rt_place place;
    if (piece->bytes == 0) {
      continue;
    }
    if (!aotc_rt_pointer_locate(&c->scope, (void *)piece->start, &place)) {
      return false;
    }
    if (c->entry->arguments[i].state == NULL && !place.is_managed) {
      c->has_device_memory = c->has_device_memory || place.is_device;
      c->has_host_memory = c->has_host_memory || !place.is_device;
    }
    piece->is_staged = !is_in_place(c, c->entry->arguments[i].memory, &place);
    is_staged = is_staged || piece->is_staged;
  }
  c->is_staged = is_staged;
  return true;
}

// -------------------------------------------------------------------------------------------------
// Copies

static void merge(aotc_rt_call *c, int32_t into, int32_t from) {
  aotc_rt_piece *a = &c->pieces[into];
  const aotc_rt_piece *b = &c->pieces[from];
  a->group_start = a->group_start < b->group_start ? a->group_start : b->group_start;
  a->group_end = a->group_end > b->group_end ? a->group_end : b->group_end;
  a->kind = a->kind == b->kind ? a->kind : AOTC_MEMORY_MANAGED;
  a->is_staged = true;
  a->is_alone = false;
  a->is_read = a->is_read || b->is_read;
  a->is_written = a->is_written || b->is_written;
  for (int32_t i = 0; i < c->entry->argument_count; ++i) {
    c->pieces[i].leader = c->pieces[i].leader == from ? into : c->pieces[i].leader;
  }
}

static bool must_share(const aotc_rt_piece *a, const aotc_rt_piece *b) {
  return (a->is_staged || b->is_staged) && a->group_start < b->group_end &&
         b->group_start < a->group_end;
}

// Makes overlapping ranges share a buffer, including one that could otherwise be used in place (by
// the host, next to one that a kernel uses).
static void group(aotc_rt_call *c) {
  int32_t count = c->entry->argument_count;
  for (int32_t i = 0; i < count; ++i) {
    aotc_rt_piece *piece = &c->pieces[i];
    const aotc_value *value = &c->entry->arguments[i];
    piece->leader = i;
    piece->is_alone = true;
    piece->kind = value->memory;
    piece->is_read = value->is_read;
    piece->is_written = value->is_written;
    piece->group_start = piece->start;
    piece->group_end = piece->start + piece->bytes;
    piece->buffer = NULL;
    piece->shift = 0;
  }
  bool has_merged = true;
  while (has_merged) {
    has_merged = false;
    for (int32_t i = 0; i < count; ++i) {
      for (int32_t j = i + 1; j < count; ++j) {
        const aotc_rt_piece *a = &c->pieces[i];
        const aotc_rt_piece *b = &c->pieces[j];
        if (a->leader == i && b->leader == j && a->bytes > 0 && b->bytes > 0 && must_share(a, b)) {
          merge(c, i, j);
          has_merged = true;
        }
      }
    }
  }
}

bool aotc_rt_call_is_buffer_of(const aotc_rt_call *c, int32_t index) {
  const aotc_rt_piece *piece = &c->pieces[index];
  return piece->bytes > 0 && piece->leader == index && piece->is_staged;
}

// Allocates the buffer of a group, and copies to it what the entry may read or leave unwritten.
static bool copy_in(aotc_rt_call *c, int32_t index) {
  aotc_rt_piece *piece = &c->pieces[index];
  char name[NAME_BYTES];
  name_of(c->entry, index, name, sizeof(name));
  // Elements of different sizes must all stay aligned.
  uintptr_t lead = piece->is_alone ? 0 : piece->group_start % AOTC_RT_VALUE_ALIGNMENT;
  uint64_t bytes = piece->group_end - piece->group_start;
  piece->buffer = aotc_rt_staging_take(&c->scope, piece->kind, bytes + lead, name);
  if (piece->buffer == NULL) {
    return false;
  }
  uintptr_t copy = (uintptr_t)piece->buffer->start + lead;
  piece->shift = copy - piece->group_start;
  if (!piece->is_read && !piece->is_written) {
    return true;
  }
  c->is_enqueued = true;
  return AOTC_RT_TRY(c->scope.driver,
                     memory_copy((void *)copy, (const void *)piece->group_start, (size_t)bytes,
                                 AOTC_RT_STREAM_OF_THREAD),
                     "%s: copying %llu bytes before the call", name, (unsigned long long)bytes);
}

bool aotc_rt_call_copy_in(aotc_rt_call *c) {
  group(c); // from here on the buffers must be released
  bool is_copied = true;
  for (int32_t i = 0; i < c->entry->argument_count && is_copied; ++i) {
    is_copied = !aotc_rt_call_is_buffer_of(c, i) || copy_in(c, i);
  }
  return is_copied;
}

static bool copy_out(aotc_rt_call *c, int32_t index) {
  c->is_enqueued = true;
  const aotc_rt_piece *piece = &c->pieces[index];
  char name[NAME_BYTES];
  uint64_t bytes = piece->group_end - piece->group_start;
  return AOTC_RT_TRY(c->scope.driver,
                     memory_copy((void *)piece->group_start,
                                 (const void *)(piece->group_start + piece->shift), (size_t)bytes,
                                 AOTC_RT_STREAM_OF_THREAD),
                     "%s: copying %llu bytes after the call",
                     name_of(c->entry, index, name, sizeof(name)), (unsigned long long)bytes);
}

void aotc_rt_call_copy_out(aotc_rt_call *c) {
  bool is_copied = true;
  for (int32_t i = 0; i < c->entry->argument_count && is_copied; ++i) {
    is_copied = !aotc_rt_call_is_buffer_of(c, i) || !c->pieces[i].is_written || copy_out(c, i);
  }
}

void aotc_rt_call_give_back(aotc_rt_call *c) {
  for (int32_t i = 0; i < c->entry->argument_count; ++i) {
    if (aotc_rt_call_is_buffer_of(c, i) && c->pieces[i].buffer != NULL) {
      aotc_rt_staging_give_back(c->scope.context, c->pieces[i].buffer);
    }
  }
}
