// Weights files: located next to the program or library, checked, and mapped once for all users.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weight_pages.h"
#include "weights_file.h"

#define FORMAT_VERSION 2
#define DIGEST_BYTES 32
#define HINT "AOTC_WEIGHTS names another file, or its folder"

// The file's header; docs/weights.md describes the format. Both the hosts and the file are
// little-endian.
typedef struct file_header {
  char magic[8];
  uint32_t version;
  uint32_t count;
  uint64_t bytes; // size of the file
  uint8_t digest[DIGEST_BYTES];
  uint64_t reserved;
} file_header;

// The table after the header, sorted by digest.
typedef struct file_row {
  uint8_t digest[DIGEST_BYTES];
  uint64_t offset, bytes, name;
  uint32_t name_bytes, alignment;
} file_row;

static const char the_magic[] = "aotc-wts";

// -------------------------------------------------------------------------------------------------
// Locating the file

// The folder of the program or library that contains `address`, allocated; NULL if unknown. Asks
// the kernel, so it does not depend on the current directory or on how a library was opened.
static char *folder_of(const void *address) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char *line = NULL;
  size_t capacity = 0;
  char *folder = NULL;
  while (maps != NULL && folder == NULL && getline(&line, &capacity, maps) > 0) {
    unsigned long long start = 0, end = 0;
    int path = 0;
    int found = sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &start, &end, &path);
    if (found == 2 && start <= (uintptr_t)address && (uintptr_t)address < end) {
      char *slash = strrchr(line, '/');
      if (path == 0 || slash == NULL) {
        break;
      }
      slash[slash == line + path ? 1 : 0] = '\0';
      folder = strdup(line + path);
    }
  }
  free(line);
  if (maps != NULL) {
    fclose(maps);
  }
  return folder;
}

static char *join(const char *folder, const char *file) {
  size_t bytes = strlen(folder) + strlen(file) + 2;
  char *path = malloc(bytes);
  if (path != NULL) {
    snprintf(path, bytes, "%s/%s", folder, file);
  }
  return path;
}

// The path of the file, allocated; NULL, with the failure recorded.
static char *path_of(const aotc_weights *weights) {
  const char *given = getenv("AOTC_WEIGHTS");
  char *path = NULL;
  if (given != NULL && given[0] != '\0') {
    struct stat status;
    const char *slash = strrchr(weights->file, '/');
    bool is_folder = stat(given, &status) == 0 && S_ISDIR(status.st_mode);
    path = is_folder ? join(given, slash != NULL ? slash + 1 : weights->file) : strdup(given);
  } else {
    char *folder = folder_of(weights->file);
    if (folder == NULL) {
      aotc_rt_fail(AOTC_NO_WEIGHTS,
                   "the folder of this program or library is not known, in which the weights '%s' "
                   "would be: " HINT,
                   weights->file);
      return NULL;
    }
    path = join(folder, weights->file);
    free(folder);
  }
  if (path == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for the weights' path");
  }
  return path;
}

// -------------------------------------------------------------------------------------------------
// Contents

static void *fail_to(const char *what, const char *path) {
  int reason = errno;
  aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' cannot be %s: %s; " HINT, path, what,
               strerror(reason));
  return NULL;
}

static bool fail_of_size(const char *path, uint64_t bytes, uint64_t expected) {
  aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' have %llu bytes, expected %llu%s", path,
               (unsigned long long)bytes, (unsigned long long)expected,
               bytes < expected ? ": a part is lost" : "");
  return false;
}

static bool fail_of_kind(const char *path) {
  aotc_rt_fail(AOTC_NO_WEIGHTS, "'%s' is no file of weights that aotc made; " HINT, path);
  return false;
}

// Whether this is a complete weights file; false, with the failure recorded.
static bool check(const file_header *header, size_t header_bytes, uint64_t bytes,
                  const char *path) {
  if (memcmp(header->magic, the_magic, sizeof(header->magic)) != 0) {
    return fail_of_kind(path);
  }
  if (header_bytes < sizeof(*header)) {
    return fail_of_size(path, bytes, sizeof(*header));
  }
  if (header->version != FORMAT_VERSION) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' are of format %u, expected %d", path,
                 (unsigned)header->version, FORMAT_VERSION);
    return false;
  }
  if (header->bytes < sizeof(*header) + header->count * (uint64_t)sizeof(file_row)) {
    return fail_of_kind(path);
  }
  return bytes == header->bytes || fail_of_size(path, bytes, header->bytes);
}

static aotc_rt_weights_file *find_file(const struct stat *status) {
  aotc_rt_weights_file *file = aotc_rt_state_of_process.weights_files;
  while (file != NULL && (file->device != status->st_dev || file->number != status->st_ino)) {
    file = file->next;
  }
  return file;
}

// Maps the open file; NULL, with the failure recorded.
static aotc_rt_weights_file *map(const char *path, int open_file, const struct stat *status) {
  file_header header;
  ssize_t count = pread(open_file, &header, sizeof(header), 0);
  if (count < 0) {
    return fail_to("read", path);
  }
  memset((char *)&header + count, 0, sizeof(header) - (size_t)count);
  if (!check(&header, (size_t)count, (uint64_t)status->st_size, path)) {
    return NULL;
  }
  void *data = mmap(NULL, (size_t)header.bytes, PROT_READ, MAP_PRIVATE, open_file, 0);
  if (data == MAP_FAILED) {
    return fail_to("mapped", path);
  }
  aotc_rt_weights_file *file = calloc(1, sizeof(*file));
  aotc_rt_shared_weight *weights = calloc(header.count + (size_t)1, sizeof(*weights));
  if (file == NULL || weights == NULL) {
    free(file);
    free(weights);
    munmap(data, (size_t)header.bytes);
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember %u weights",
                 (unsigned)header.count);
    return NULL;
  }
  *file = (aotc_rt_weights_file){.next = aotc_rt_state_of_process.weights_files,
                                 .device = status->st_dev,
                                 .number = status->st_ino,
                                 .data = data,
                                 .bytes = (size_t)header.bytes,
                                 .count = header.count,
                                 .weights = weights};
  aotc_rt_state_of_process.weights_files = file;
  return file;
}

static aotc_rt_weights_file *map_or_find(const char *path) {
  // A pipe is rejected, not waited for.
  int open_file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (open_file < 0) {
    return fail_to("opened", path);
  }
  struct stat status;
  aotc_rt_weights_file *file = NULL;
  if (fstat(open_file, &status) != 0) {
    fail_to("read", path);
  } else if (!S_ISREG(status.st_mode)) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' are no file; " HINT, path);
  } else {
    file = find_file(&status);
    file = file != NULL ? file : map(path, open_file, &status);
  }
  close(open_file);
  return file;
}

// Releases what contexts hold of a file. Must not be called under the state's lock, which is taken
// after theirs.
static void empty_contexts(const aotc_rt_weights_file *file) {
  const aotc_rt_driver *driver = aotc_rt_driver_to_release(&aotc_rt_state_of_process);
  aotc_rt_context *context = atomic_load(&aotc_rt_state_of_process.contexts);
  for (; context != NULL; context = context->next) {
    bool is_current = driver != NULL && aotc_rt_has_paged_weights(context) &&
                      aotc_rt_context_enter_to_release(driver, context, "to free weights");
    aotc_rt_weight_pages_unload(is_current ? driver : NULL, context, file);
    if (is_current) {
      AOTC_RT_TRY_RELEASE(driver, context_pop(), "after weights are freed");
    }
  }
}

// Removes the file from the list if it has no users, so that it cannot be found any more.
static bool leave_if_unused_locked(aotc_rt_weights_file *file) {
  if (file->users > 0) {
    return false;
  }
  aotc_rt_weights_file **link = &aotc_rt_state_of_process.weights_files;
  while (*link != file) {
    link = &(*link)->next;
  }
  *link = file->next;
  return true;
}

static void unmap(aotc_rt_weights_file *file) {
  munmap((void *)(uintptr_t)file->data, file->bytes);
  free(file->weights);
  free(file);
}

bool aotc_rt_weights_file_is_ordered(const aotc_rt_weights_file *file, uint64_t *out_largest) {
  const file_row *rows = (const file_row *)(const void *)(file->data + sizeof(file_header));
  uint64_t end = 0;
  *out_largest = 0;
  for (uint32_t i = 0; i < file->count; ++i) {
    if (rows[i].offset < end || rows[i].offset > file->bytes ||
        rows[i].bytes > file->bytes - rows[i].offset) {
      return false;
    }
    end = rows[i].offset + rows[i].bytes;
    *out_largest = rows[i].bytes > *out_largest ? rows[i].bytes : *out_largest;
  }
  return true;
}

bool aotc_rt_weights_file_find(const aotc_rt_weights_file *file, uint64_t at, uint64_t *out_start,
                               uint64_t *out_bytes) {
  const file_row *rows = (const file_row *)(const void *)(file->data + sizeof(file_header));
  size_t first = 0, end = file->count; // contains the last one that starts at or before `at`
  while (end - first > 1) {
    size_t middle = first + (end - first) / 2;
    if (rows[middle].offset <= at) {
      first = middle;
    } else {
      end = middle;
    }
  }
  bool is_there =
      file->count > 0 && rows[first].offset <= at && at - rows[first].offset < rows[first].bytes;
  *out_start = is_there ? rows[first].offset : 0;
  *out_bytes = is_there ? rows[first].bytes : 0;
  return is_there;
}

// Advises on the pages that the range overlaps, or (`whole`) contains.
static void advise(const char *data, uint64_t bytes, int advice, bool whole) {
  const aotc_rt_weights_file *file = aotc_rt_state_of_process.weights_files;
  while (file != NULL && (data < file->data || data >= file->data + file->bytes)) {
    file = file->next;
  }
  if (file == NULL || bytes == 0) {
    return;
  }
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t start = (uint64_t)(data - file->data), end = start + bytes;
  start = whole ? (start + page - 1) / page * page : start / page * page;
  end = whole && end < file->bytes ? end / page * page : end;
  if (start < end) {
    // A failure has no consequence.
    madvise((void *)(uintptr_t)(file->data + start), (size_t)(end - start), advice);
  }
}

void aotc_rt_weights_read_ahead_locked(const void *data, uint64_t bytes) {
  advise(data, bytes, MADV_WILLNEED, false);
}

void aotc_rt_weights_forget_locked(const void *data, uint64_t bytes) {
  advise(data, bytes, MADV_DONTNEED, true);
}

// -------------------------------------------------------------------------------------------------
// Weights of an artifact

// The weight with this digest; NULL if it is missing or incomplete.
static aotc_rt_shared_weight *find_weight(const aotc_rt_weights_file *file,
                                          const aotc_weight *wanted) {
  const file_row *rows = (const file_row *)(const void *)(file->data + sizeof(file_header));
  size_t first = 0, end = file->count;
  while (first < end) {
    size_t middle = first + (end - first) / 2;
    int order = memcmp(rows[middle].digest, wanted->digest, DIGEST_BYTES);
    if (order == 0) {
      const file_row *row = &rows[middle];
      bool is_there = row->bytes == wanted->constant.bytes && row->bytes <= file->bytes &&
                      row->offset <= file->bytes - row->bytes;
      aotc_rt_shared_weight *weight = &file->weights[middle];
      weight->constant.data = file->data + row->offset;
      weight->constant.bytes = row->bytes;
      return is_there ? weight : NULL;
    }
    if (order < 0) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return NULL;
}

// Whether the file has all the artifact's weights; false, with the failure recorded.
static bool find_all(const aotc_rt_weights_file *file, const aotc_weights *weights,
                     const char *path) {
  uint64_t missing = 0;
  const aotc_weight *first = NULL;
  for (uint64_t i = weights->count; i-- > 0;) {
    weights->weights[i]->shared = find_weight(file, weights->weights[i]);
    if (weights->weights[i]->shared == NULL) {
      first = weights->weights[i];
      ++missing;
    }
  }
  if (first != NULL) {
    aotc_rt_fail(AOTC_NO_WEIGHTS,
                 "the weights '%s' are another build's: they lack %llu of %llu, one of %llu bytes "
                 "whose SHA-256 begins with %02x%02x%02x%02x; " HINT,
                 path, (unsigned long long)missing, (unsigned long long)weights->count,
                 (unsigned long long)first->constant.bytes, first->digest[0], first->digest[1],
                 first->digest[2], first->digest[3]);
  }
  return first == NULL;
}

aotc_rt_weights_file *aotc_rt_weights_open_locked(const aotc_weights *weights) {
  char *path = path_of(weights);
  aotc_rt_weights_file *file = path != NULL ? map_or_find(path) : NULL;
  if (file != NULL && find_all(file, weights, path)) {
    ++file->users;
    for (uint64_t i = 0; i < weights->count; ++i) {
      ++((aotc_rt_shared_weight *)weights->weights[i]->shared)->users;
    }
  } else if (file != NULL) {
    if (leave_if_unused_locked(file)) {
      unmap(file); // no context uses it
    }
    file = NULL;
  }
  free(path);
  return file;
}

bool aotc_rt_weights_close_locked(aotc_rt_weights_file *file, const aotc_weights *weights) {
  for (uint64_t i = 0; i < weights->count; ++i) {
    aotc_rt_shared_weight *weight = weights->weights[i]->shared;
    if (--weight->users == 0) {
      aotc_rt_constant_release_locked(&weight->constant);
    }
  }
  --file->users;
  return leave_if_unused_locked(file);
}

void aotc_rt_weights_file_free(aotc_rt_weights_file *file) {
  empty_contexts(file);
  unmap(file);
}
