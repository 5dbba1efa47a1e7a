// Weights in a file of their own: found beside the program or library, and mapped when first used.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

#define FORMAT_VERSION 1
#define DIGEST_BYTES 32
#define HINT "AOTC_WEIGHTS names another file, or its folder"

// The start of the file: docs/weights.md has the whole format. Hosts are little-endian, as it is.
typedef struct file_header {
  char magic[8];
  uint32_t version;
  uint32_t count;
  uint64_t bytes; // of the whole file
  uint8_t digest[DIGEST_BYTES];
  uint64_t reserved;
} file_header;

static const char the_magic[] = "aotc-wts";

// -------------------------------------------------------------------------------------------------
// Where the file is

// The folder of the program or library that `address` is in, for free(); NULL if nobody says. The
// kernel knows, whatever the working folder is by now and however a library was opened.
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

// The path of the file, for free(); NULL, with the failure recorded.
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
// What is in it

static void fail_of_another_build(const aotc_weights *weights, const file_header *header,
                                  const char *path) {
  char texts[2][2 * 4 + 1];
  for (int i = 0; i < 4; ++i) {
    snprintf(texts[0] + 2 * i, 3, "%02x", header->digest[i]);
    snprintf(texts[1] + 2 * i, 3, "%02x", weights->digest[i]);
  }
  aotc_rt_fail(
      AOTC_NO_WEIGHTS,
      "the weights '%s' are another build's: their digest begins with %s, expected %s; " HINT, path,
      texts[0], texts[1]);
}

// Whether the file is the one that was made with this program; false, with the failure recorded.
static bool check(const aotc_weights *weights, const file_header *header, const char *path) {
  if (memcmp(header->magic, the_magic, sizeof(header->magic)) != 0) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "'%s' is no file of weights that aotc made; " HINT, path);
    return false;
  }
  if (header->version != FORMAT_VERSION) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' are of format %u, expected %d", path,
                 (unsigned)header->version, FORMAT_VERSION);
    return false;
  }
  if (memcmp(header->digest, weights->digest, DIGEST_BYTES) != 0) {
    fail_of_another_build(weights, header, path);
    return false;
  }
  return true;
}

static void *fail_to(const char *what, const char *path) {
  int reason = errno;
  aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' cannot be %s: %s; " HINT, path, what,
               strerror(reason));
  return NULL;
}

// The file in memory; NULL, with the failure recorded.
static void *map(const aotc_weights *weights, const char *path, int file) {
  struct stat status;
  if (fstat(file, &status) != 0) {
    return fail_to("read", path);
  }
  if (!S_ISREG(status.st_mode)) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' are no file; " HINT, path);
    return NULL;
  }
  file_header header;
  ssize_t count = pread(file, &header, sizeof(header), 0);
  if (count < 0) {
    return fail_to("read", path);
  }
  memset((char *)&header + count, 0, sizeof(header) - (size_t)count);
  // A header that is cut has no digest to compare.
  bool is_whole = count == sizeof(header);
  if ((is_whole || memcmp(header.magic, the_magic, sizeof(header.magic)) != 0) &&
      !check(weights, &header, path)) {
    return NULL;
  }
  if ((uint64_t)status.st_size != weights->bytes) {
    aotc_rt_fail(AOTC_NO_WEIGHTS, "the weights '%s' have %llu bytes, expected %llu%s", path,
                 (unsigned long long)status.st_size, (unsigned long long)weights->bytes,
                 (uint64_t)status.st_size < weights->bytes ? ": a part is lost" : "");
    return NULL;
  }
  void *data = mmap(NULL, (size_t)weights->bytes, PROT_READ, MAP_PRIVATE, file, 0);
  return data != MAP_FAILED ? data : fail_to("mapped", path);
}

static void *open_and_map(const aotc_weights *weights) {
  char *path = path_of(weights);
  if (path == NULL) {
    return NULL;
  }
  // What is a pipe is refused, not waited for.
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  void *data = file >= 0 ? map(weights, path, file) : fail_to("opened", path);
  if (file >= 0) {
    close(file);
  }
  free(path);
  return data;
}

// Zeros in the weights' place, for host code to go on with: none of it is touched, so it takes no
// memory.
static void provide_stand_in_locked(aotc_weights *weights) {
  if (weights->stand_in == NULL) {
    void *zeros = mmap(NULL, (size_t)weights->bytes, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    weights->stand_in = zeros != MAP_FAILED ? zeros : NULL;
  }
}

// -------------------------------------------------------------------------------------------------
// What generated code calls

// Written once, under the lock, and read without it.
static _Atomic(const void *) *data_of(aotc_weights *weights) {
  return (_Atomic(const void *) *)&weights->data;
}

static const char *provide(aotc_weights *weights) {
  const void *data = atomic_load_explicit(data_of(weights), memory_order_acquire);
  if (data != NULL) {
    return data;
  }
  aotc_rt_lock();
  data = atomic_load(data_of(weights)); // another thread may have mapped it
  if (data == NULL && !aotc_is_stopped()) {
    data = open_and_map(weights);
    atomic_store_explicit(data_of(weights), data, memory_order_release);
  }
  if (data == NULL) {
    provide_stand_in_locked(weights);
    data = weights->stand_in;
  }
  aotc_rt_unlock();
  return data;
}

const void *aotc_rt_weight_in_file(aotc_weight *weight) {
  const char *start = provide(weight->weights);
  return start != NULL ? start + weight->offset : NULL;
}

const void *aotc_weight_get(aotc_weight *weight) {
  const void *data = NULL;
  if (aotc_rt_constant_is_replaced(&weight->constant)) {
    data = aotc_rt_constant_in_host_memory(&weight->constant);
  }
  return data != NULL ? data : aotc_rt_weight_in_file(weight);
}

void *aotc_weight_get_on_device(aotc_weight *weight) {
  const void *data = aotc_rt_constant_source(&weight->constant);
  return aotc_rt_constant_copy_of(&weight->constant,
                                  data != NULL ? data : aotc_rt_weight_in_file(weight));
}

void *aotc_weight_get_packed(aotc_weight *weight, uint64_t rows) {
  return aotc_rt_constant_in_form(&weight->constant, aotc_weight_get(weight), rows,
                                  &aotc_rt_constant_packed);
}

void *aotc_weight_get_winograd(aotc_weight *weight, uint64_t rows) {
  return aotc_rt_constant_in_form(&weight->constant, aotc_weight_get(weight), rows,
                                  &aotc_rt_constant_winograd);
}

void aotc_weights_release(aotc_weights *weights) {
  aotc_rt_lock();
  const void *const mappings[] = {atomic_exchange(data_of(weights), NULL), weights->stand_in};
  weights->stand_in = NULL;
  aotc_rt_unlock();
  for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); ++i) {
    if (mappings[i] != NULL) {
      munmap((void *)(uintptr_t)mappings[i], (size_t)weights->bytes);
    }
  }
}
