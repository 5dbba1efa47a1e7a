// States in files: a header, and a description and the bytes of each field. docs/state.md describes
// the format.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entry_state.h"

#define MAGIC "aotc-sta"
#define VERSION 1
#define CHUNK ((uint64_t)1 << 20)

typedef struct header {
  char magic[8];
  uint32_t version;
  uint32_t field_count;
  uint64_t file_bytes;
} header;

// Precedes a field's description and its bytes.
typedef struct row {
  uint64_t text_bytes, bytes;
} row;

// A file that is written or read sequentially.
typedef struct stream {
  const char *path;
  int file;
  uint64_t at; // bytes written or read so far
  char *chunk; // a buffer of CHUNK bytes
} stream;

static bool fail(const stream *s, const char *doing, const char *problem) {
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "cannot %s the state '%s': %s", doing, s->path, problem);
  return false;
}

static bool write_all(stream *s, const void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    ssize_t count = pwrite(s->file, (const char *)data + done, bytes - done, (off_t)(s->at + done));
    if (count < 0 && errno != EINTR) {
      return fail(s, "save", strerror(errno));
    }
    done += count > 0 ? (uint64_t)count : 0;
  }
  s->at += bytes;
  return true;
}

static bool read_all(stream *s, void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    ssize_t count = pread(s->file, (char *)data + done, bytes - done, (off_t)(s->at + done));
    if (count == 0) {
      return fail(s, "load", "it ends too early");
    }
    if (count < 0 && errno != EINTR) {
      return fail(s, "load", strerror(errno));
    }
    done += count > 0 ? (uint64_t)count : 0;
  }
  s->at += bytes;
  return true;
}

// A field's description: "keys: memref<4x8xf32>". Allocated; NULL, with the failure recorded.
static char *text_of(const aotc_value *value) {
  size_t bytes = strlen(value->name) + strlen(value->type) + sizeof(": ");
  char *text = malloc(bytes);
  if (text == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a state's file");
    return NULL;
  }
  snprintf(text, bytes, "%s: %s", value->name, value->type);
  return text;
}

static uint64_t file_bytes(const aotc_state_type *type) {
  uint64_t bytes = sizeof(header);
  for (int32_t i = 0; i < type->field_count; ++i) {
    const aotc_value *value = &type->fields[i].value;
    bytes += sizeof(row) + strlen(value->name) + strlen(": ") + strlen(value->type) + value->bytes;
  }
  return bytes;
}

// -------------------------------------------------------------------------------------------------
// Saving

static bool save_field(stream *s, const aotc_value *value, const char *data) {
  char *text = text_of(value);
  if (text == NULL) {
    return false;
  }
  const row start = {.text_bytes = strlen(text), .bytes = value->bytes};
  bool is_good = write_all(s, &start, sizeof(start)) && write_all(s, text, start.text_bytes);
  free(text);
  for (uint64_t done = 0; is_good && done < value->bytes; done += CHUNK) {
    uint64_t bytes = value->bytes - done < CHUNK ? value->bytes - done : CHUNK;
    is_good =
        aotc_memory_copy(s->chunk, data + done, bytes) == AOTC_OK && write_all(s, s->chunk, bytes);
  }
  return is_good;
}

static bool save_all(stream *s, const aotc_state *state) {
  const aotc_state_type *type = state->type;
  header start = {.version = VERSION,
                  .field_count = (uint32_t)type->field_count,
                  .file_bytes = file_bytes(type)};
  memcpy(start.magic, MAGIC, sizeof(start.magic));
  bool is_good = write_all(s, &start, sizeof(start));
  for (int32_t i = 0; i < type->field_count && is_good; ++i) {
    is_good = save_field(s, &type->fields[i].value, aotc_rt_state_data(state, i));
  }
  return is_good;
}

// Whether the file may be replaced; a device or a pipe may not.
static bool check_place(const stream *s) {
  struct stat found;
  bool is_other = stat(s->path, &found) == 0 && !S_ISREG(found.st_mode);
  return !is_other || fail(s, "save", "it is there, and no regular file");
}

static bool save_beside(stream *s, const aotc_state *state, const char *draft) {
  s->file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (s->file < 0) {
    return fail(s, "save", strerror(errno));
  }
  bool is_good = save_all(s, state);
  if (close(s->file) != 0 && is_good) {
    is_good = fail(s, "save", strerror(errno));
  }
  if (is_good && rename(draft, s->path) != 0) {
    is_good = fail(s, "save", strerror(errno));
  }
  if (!is_good) {
    unlink(draft);
  }
  return is_good;
}

static bool save(stream *s, const aotc_state *state) {
  size_t bytes = strlen(s->path) + 32;
  char *draft = malloc(bytes);
  if (draft == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a state's file");
    return false;
  }
  snprintf(draft, bytes, "%s.%ld.part", s->path, (long)getpid());
  bool is_good = check_place(s) && save_beside(s, state, draft);
  free(draft);
  return is_good;
}

// -------------------------------------------------------------------------------------------------
// Loading

// Reads a field's description, and rejects it if it differs from the object's.
static bool check_field(stream *s, const aotc_value *value) {
  char *text = text_of(value);
  row start;
  bool is_good = text != NULL && read_all(s, &start, sizeof(start));
  uint64_t expected = is_good ? strlen(text) : 0;
  if (is_good && start.text_bytes > CHUNK) {
    is_good = fail(s, "load", "it is damaged");
  }
  is_good = is_good && read_all(s, s->chunk, start.text_bytes);
  if (is_good && (start.text_bytes != expected || memcmp(s->chunk, text, expected) != 0)) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                 "cannot load the state '%s': it has the field '%.*s', expected '%s'", s->path,
                 (int)(start.text_bytes < 200 ? start.text_bytes : 200), s->chunk, text);
    is_good = false;
  }
  if (is_good && start.bytes != value->bytes) {
    is_good = fail(s, "load", "it is damaged");
  }
  free(text);
  return is_good;
}

// Checks everything except the data, and rewinds to the beginning.
static bool check_file(stream *s, const aotc_state_type *type) {
  header start;
  struct stat found;
  if (fstat(s->file, &found) != 0) {
    return fail(s, "load", strerror(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    return fail(s, "load", "it is no regular file");
  }
  if (!read_all(s, &start, sizeof(start))) {
    return false;
  }
  if (memcmp(start.magic, MAGIC, sizeof(start.magic)) != 0) {
    return fail(s, "load", "it is no state that aotc's libraries save");
  }
  if (start.version != VERSION) {
    return fail(s, "load", "it has another version of the format");
  }
  if (start.field_count != (uint32_t)type->field_count) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "cannot load the state '%s': it has %u fields, expected %d",
                 s->path, (unsigned)start.field_count, (int)type->field_count);
    return false;
  }
  for (int32_t i = 0; i < type->field_count; ++i) {
    const aotc_value *value = &type->fields[i].value;
    if (!check_field(s, value)) {
      return false;
    }
    s->at += value->bytes;
  }
  if ((uint64_t)found.st_size != file_bytes(type) || start.file_bytes != file_bytes(type)) {
    return fail(s, "load", "it is truncated, or longer than it should be");
  }
  s->at = sizeof(header);
  return true;
}

static bool load_all(stream *s, const aotc_state *state) {
  const aotc_state_type *type = state->type;
  bool is_good = check_file(s, type);
  for (int32_t i = 0; i < type->field_count && is_good; ++i) {
    const aotc_value *value = &type->fields[i].value;
    char *to = aotc_rt_state_data(state, i);
    is_good = check_field(s, value);
    for (uint64_t done = 0; is_good && done < value->bytes; done += CHUNK) {
      uint64_t bytes = value->bytes - done < CHUNK ? value->bytes - done : CHUNK;
      is_good =
          read_all(s, s->chunk, bytes) && aotc_memory_copy(to + done, s->chunk, bytes) == AOTC_OK;
    }
  }
  return is_good;
}

static bool load(stream *s, const aotc_state *state) {
  s->file = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (s->file < 0) {
    return fail(s, "load", strerror(errno));
  }
  bool is_good = load_all(s, state);
  close(s->file);
  return is_good;
}

// -------------------------------------------------------------------------------------------------

typedef bool (*manner)(stream *s, const aotc_state *state);

static aotc_status run(manner how, const aotc_state *state, const char *path) {
  if (state == NULL || path == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no %s: the pointer is NULL",
                        state == NULL ? "state" : "path of a state's file");
  }
  stream s = {.path = path, .file = -1, .chunk = malloc(CHUNK)};
  if (s.chunk == NULL) {
    return aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a state's file");
  }
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  bool is_good = how(&s, state);
  free(s.chunk);
  return is_good ? AOTC_OK : thread->latest;
}

aotc_status aotc_state_save(const aotc_state *state, const char *path) {
  return run(save, state, path);
}

aotc_status aotc_state_load(aotc_state *state, const char *path) {
  return run(load, state, path);
}
