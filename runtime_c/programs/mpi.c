// The functions of aotc_mpi.h, by an MPI library that is opened when the first of them is called.
#include "aotc_mpi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memref.h"
#include "utility.h"

// -------------------------------------------------------------------------------------------------
// The standard ABI of MPI 5.0, chapter 20

#define WORLD 0x101
#define COMM_NULL 0x100
#define REQUEST_NULL 0x180
#define ERRORS_RETURN 0x143
#define ERROR_CHARACTERS 512
#define IN_PLACE ((void *)1)
#define STATUS_IGNORE NULL

typedef void *handle;
typedef int64_t count;

#define FUNCTIONS(X)                                                                               \
  X(Initialized, (int *))                                                                          \
  X(Finalized, (int *))                                                                            \
  X(Init, (int *, char ***))                                                                       \
  X(Finalize, (void))                                                                              \
  X(Abort, (handle, int))                                                                          \
  X(Comm_set_errhandler, (handle, handle))                                                         \
  X(Comm_rank, (handle, int *))                                                                    \
  X(Comm_size, (handle, int *))                                                                    \
  X(Comm_split, (handle, int, int, handle *))                                                      \
  X(Error_class, (int, int *))                                                                     \
  X(Error_string, (int, char *, int *))                                                            \
  X(Barrier, (handle))                                                                             \
  X(Wait, (handle *, void *))                                                                      \
  X(Send_c, (const void *, count, handle, int, int, handle))                                       \
  X(Recv_c, (void *, count, handle, int, int, handle, void *))                                     \
  X(Isend_c, (const void *, count, handle, int, int, handle, handle *))                            \
  X(Irecv_c, (void *, count, handle, int, int, handle, handle *))                                  \
  X(Allgather_c, (const void *, count, handle, void *, count, handle, handle))                     \
  X(Allreduce_c, (const void *, void *, count, handle, handle, handle))                            \
  X(Reduce_scatter_block_c, (const void *, void *, count, handle, handle, handle))

// MPI's reductions, by the dialect's numbers.
static const intptr_t reductions[] = {
    0x20, // MPI_OP_NULL
    0x23, // MPI_MAX
    0x22, // MPI_MIN
    0x21, // MPI_SUM
    0x24, // MPI_PROD
    0x30, // MPI_LAND
    0x28, // MPI_BAND
    0x31, // MPI_LOR
    0x29, // MPI_BOR
    0x32, // MPI_LXOR
    0x2a, // MPI_BXOR
    0x38, // MPI_MINLOC
    0x39, // MPI_MAXLOC
    0x3c, // MPI_REPLACE
};

#define MEMBER(name, parameters) int(*name) parameters;
static struct {
  FUNCTIONS(MEMBER)
} mpi;

static handle handle_of(int64_t value) {
  return (handle)(intptr_t)value; // NOLINT: what the standard says that handles are
}

// -------------------------------------------------------------------------------------------------
// The library

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_ready;
static char refusal[1024];

static void *open_in(const char *folder) {
  static const char *const places[] = {"../lib", "../lib64", "../lib/x86_64-linux-gnu",
                                       "../lib/aarch64-linux-gnu"};
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s/libmpi_abi.so.1", folder, places[i]);
    if (length > 0 && (size_t)length < sizeof(path) && access(path, R_OK) == 0) {
      void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
      if (library != NULL) {
        return library;
      }
    }
  }
  return NULL;
}

// Beside the program that started this one: the launcher's own part on this machine.
static void *open_beside_parent(void) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/%d/exe", (int)getppid());
  ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) {
    return NULL;
  }
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (slash == NULL) {
    return NULL;
  }
  *slash = '\0';
  return open_in(path);
}

static void *open_beside_mpirun(void) {
  const char *rest = getenv("PATH");
  while (rest != NULL && rest[0] != '\0') {
    size_t length = strcspn(rest, ":");
    char folder[PATH_MAX];
    char file[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)length, rest);
    int written = snprintf(file, sizeof(file), "%s/mpirun", folder);
    if (written > 0 && (size_t)written < sizeof(file) && access(file, X_OK) == 0) {
      return open_in(folder);
    }
    rest += length + (rest[length] == ':' ? 1 : 0);
  }
  return NULL;
}

static void *open_library(void) {
  const char *named = getenv("AOTC_MPI");
  if (named != NULL && named[0] != '\0') {
    void *library = dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
      snprintf(refusal, sizeof(refusal), "AOTC_MPI names no library: %s", dlerror());
    }
    return library;
  }
  void *library = open_beside_parent();
  if (library == NULL) {
    library = open_beside_mpirun();
  }
  if (library == NULL) {
    library = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_GLOBAL);
  }
  if (library == NULL) {
    snprintf(refusal, sizeof(refusal),
             "there is no MPI library with the standard ABI of MPI 5.0 (libmpi_abi.so.1): %s; "
             "install one ('pip install mpich' has it) and start the program by its mpirun, or "
             "name the file by AOTC_MPI",
             dlerror());
  }
  return library;
}

static bool load(void *library) {
#define LOAD(name, parameters)                                                                     \
  *(void **)&mpi.name = dlsym(library, "MPI_" #name);                                              \
  if (mpi.name == NULL) {                                                                          \
    snprintf(refusal, sizeof(refusal), "the MPI library has no MPI_" #name);                       \
    return false;                                                                                  \
  }
  FUNCTIONS(LOAD)
  return true;
}

// At the program's end. One that failed leaves it to the launcher to end the others.
static void finalize(void) {
  int is_finalized = 0;
  if (!aotc_is_stopped() && mpi.Finalized(&is_finalized) == 0 && is_finalized == 0) {
    mpi.Finalize();
  }
}

static void start(void) {
  void *library = open_library();
  if (library == NULL || !load(library)) {
    return;
  }
  int is_initialized = 0;
  mpi.Initialized(&is_initialized);
  if (is_initialized == 0) {
    int status = mpi.Init(NULL, NULL);
    if (status != 0) {
      snprintf(refusal, sizeof(refusal), "MPI_Init failed with status %d", status);
      return;
    }
    atexit(finalize);
  }
  // Failures are values here. Communicators that are made of it have the same.
  mpi.Comm_set_errhandler(handle_of(WORLD), handle_of(ERRORS_RETURN));
  is_ready = true;
}

static bool begin(const char *call) {
  if (aotc_is_stopped()) {
    return false;
  }
  pthread_once(&once, start);
  if (!is_ready) {
    char message[sizeof(refusal) + 64];
    snprintf(message, sizeof(message), "%s: %s", call, refusal);
    aotc_error_adopt(AOTC_UNSUPPORTED, message);
  }
  return is_ready;
}

static void fail(const char *call, const char *what) {
  int rank = 0;
  mpi.Comm_rank(handle_of(WORLD), &rank);
  char message[ERROR_CHARACTERS + 128];
  snprintf(message, sizeof(message), "%s on rank %d: %s", call, rank, what);
  aotc_error_adopt(AOTC_INVALID_ARGUMENT, message);
}

static int32_t end(const char *call, int status, bool is_checked) {
  if (status != 0 && is_checked) {
    char words[ERROR_CHARACTERS] = "";
    int length = 0;
    mpi.Error_string(status, words, &length);
    fail(call, words);
  }
  return status;
}

// -------------------------------------------------------------------------------------------------
// Processes

UTILITY int32_t aotc_mpi_init(bool is_checked) {
  (void)is_checked;
  begin("mpi.init");
  return 0;
}

UTILITY int32_t aotc_mpi_finalize(bool is_checked) {
  return begin("mpi.finalize") ? end("mpi.finalize", mpi.Finalize(), is_checked) : 0;
}

UTILITY int32_t aotc_mpi_barrier(int64_t comm, bool is_checked) {
  return begin("mpi.barrier") ? end("mpi.barrier", mpi.Barrier(handle_of(comm)), is_checked) : 0;
}

UTILITY int32_t aotc_mpi_wait(int64_t request, bool is_checked) {
  if (!begin("mpi.wait")) {
    return 0;
  }
  handle waited = handle_of(request);
  return end("mpi.wait", mpi.Wait(&waited, STATUS_IGNORE), is_checked);
}

UTILITY int32_t aotc_mpi_error_class(int32_t status) {
  int class = status;
  if (status != 0 && begin("mpi.error_class")) {
    mpi.Error_class(status, &class);
  }
  return class;
}

UTILITY int32_t aotc_mpi_comm_rank(int64_t comm) {
  int rank = 0;
  if (begin("mpi.comm_rank")) {
    end("mpi.comm_rank", mpi.Comm_rank(handle_of(comm), &rank), true);
  }
  return rank;
}

UTILITY int32_t aotc_mpi_comm_size(int64_t comm) {
  int size = 0;
  if (begin("mpi.comm_size")) {
    end("mpi.comm_size", mpi.Comm_size(handle_of(comm), &size), true);
  }
  return size;
}

UTILITY int64_t aotc_mpi_comm_split(int64_t comm, int32_t color, int32_t key) {
  handle made = handle_of(COMM_NULL);
  if (begin("mpi.comm_split")) {
    end("mpi.comm_split", mpi.Comm_split(handle_of(comm), color, key, &made), true);
  }
  return (int64_t)(intptr_t)made;
}

UTILITY void aotc_mpi_check_processes(int64_t expected) {
  if (!begin("shard.grid")) {
    return;
  }
  int size = 0;
  if (end("shard.grid", mpi.Comm_size(handle_of(WORLD), &size), true) == 0 && size != expected) {
    char what[160];
    snprintf(what, sizeof(what),
             "the program is for %" PRId64 " process%s, and runs in %d: start it by mpirun -n "
             "%" PRId64,
             expected, expected == 1 ? "" : "es", size, expected);
    fail("shard.grid", what);
  }
}

// -------------------------------------------------------------------------------------------------
// Buffers

typedef struct buffer {
  void *data;
  count elements;
} buffer;

// The elements of a memref, if they lie one behind another.
static bool find_buffer(const char *call, const mlir_unranked_memref *unranked, int64_t bytes,
                        buffer *out) {
  aotc_program_memref m = aotc_program_memref_of(unranked->rank, unranked->descriptor);
  int64_t elements = 1;
  bool is_contiguous = true;
  for (int64_t i = m.rank - 1; i >= 0; --i) {
    is_contiguous = is_contiguous && (m.sizes[i] == 1 || m.strides[i] == elements);
    elements *= m.sizes[i];
  }
  if (!is_contiguous && elements > 1) {
    fail(call, "the buffer is not contiguous: copy it into one that is");
    return false;
  }
  *out = (buffer){.data = m.data + m.offset * bytes, .elements = elements};
  return true;
}

static bool find_reduction(const char *call, int32_t op, handle *out) {
  if (op <= 0 || (size_t)op >= sizeof(reductions) / sizeof(reductions[0])) {
    fail(call, "there is no such reduction");
    return false;
  }
  *out = handle_of(reductions[op]);
  return true;
}

static int32_t reduce(const char *call, const mlir_unranked_memref *from,
                      const mlir_unranked_memref *to, handle type, int64_t bytes, int32_t op,
                      int64_t comm, bool is_checked, bool scatters) {
  buffer source;
  buffer target;
  handle reduction;
  if (!begin(call) || !find_buffer(call, from, bytes, &source) ||
      !find_buffer(call, to, bytes, &target) || !find_reduction(call, op, &reduction)) {
    return 0;
  }
  int size = 1;
  if (scatters) {
    mpi.Comm_size(handle_of(comm), &size);
  }
  if (source.elements != target.elements * size) {
    fail(call, "the buffers' sizes do not fit");
    return 0;
  }
  const void *sent = source.data == target.data ? IN_PLACE : source.data;
  int status = scatters ? mpi.Reduce_scatter_block_c(sent, target.data, target.elements, type,
                                                     reduction, handle_of(comm))
                        : mpi.Allreduce_c(sent, target.data, target.elements, type, reduction,
                                          handle_of(comm));
  return end(call, status, is_checked);
}

static int32_t gather(const mlir_unranked_memref *from, const mlir_unranked_memref *to, handle type,
                      int64_t bytes, int64_t comm, bool is_checked) {
  const char *call = "mpi.allgather";
  buffer source;
  buffer target;
  if (!begin(call) || !find_buffer(call, from, bytes, &source) ||
      !find_buffer(call, to, bytes, &target)) {
    return 0;
  }
  int size = 1;
  mpi.Comm_size(handle_of(comm), &size);
  if (target.elements != source.elements * size) {
    fail(call, "the buffers' sizes do not fit");
    return 0;
  }
  return end(call,
             mpi.Allgather_c(source.data, source.elements, type, target.data, source.elements, type,
                             handle_of(comm)),
             is_checked);
}

static int32_t pass(bool sends, const mlir_unranked_memref *memref, handle type, int64_t bytes,
                    int32_t tag, int32_t peer, int64_t comm, bool is_checked) {
  const char *call = sends ? "mpi.send" : "mpi.recv";
  buffer b;
  if (!begin(call) || !find_buffer(call, memref, bytes, &b)) {
    return 0;
  }
  int status =
      sends ? mpi.Send_c(b.data, b.elements, type, peer, tag, handle_of(comm))
            : mpi.Recv_c(b.data, b.elements, type, peer, tag, handle_of(comm), STATUS_IGNORE);
  return end(call, status, is_checked);
}

static int64_t pass_later(bool sends, const mlir_unranked_memref *memref, handle type,
                          int64_t bytes, int32_t tag, int32_t peer, int64_t comm) {
  const char *call = sends ? "mpi.isend" : "mpi.irecv";
  buffer b;
  handle request = handle_of(REQUEST_NULL);
  if (begin(call) && find_buffer(call, memref, bytes, &b)) {
    int status = sends
                     ? mpi.Isend_c(b.data, b.elements, type, peer, tag, handle_of(comm), &request)
                     : mpi.Irecv_c(b.data, b.elements, type, peer, tag, handle_of(comm), &request);
    end(call, status, true);
  }
  return (int64_t)(intptr_t)request;
}

#define BYTES_f32 4
#define BYTES_f64 8
#define BYTES_c32 8
#define BYTES_c64 16
#define BYTES_i8 1
#define BYTES_i16 2
#define BYTES_i32 4
#define BYTES_i64 8
#define BYTES_index 8

#define DEFINE(type, number)                                                                       \
  UTILITY int32_t _mlir_ciface_aotc_mpi_send_##type(const mlir_unranked_memref *buffer,            \
                                                    int32_t tag, int32_t peer, int64_t comm,       \
                                                    bool is_checked) {                             \
    return pass(true, buffer, handle_of(number), BYTES_##type, tag, peer, comm, is_checked);       \
  }                                                                                                \
  UTILITY int32_t _mlir_ciface_aotc_mpi_recv_##type(const mlir_unranked_memref *buffer,            \
                                                    int32_t tag, int32_t peer, int64_t comm,       \
                                                    bool is_checked) {                             \
    return pass(false, buffer, handle_of(number), BYTES_##type, tag, peer, comm, is_checked);      \
  }                                                                                                \
  UTILITY int64_t _mlir_ciface_aotc_mpi_isend_##type(const mlir_unranked_memref *buffer,           \
                                                     int32_t tag, int32_t peer, int64_t comm) {    \
    return pass_later(true, buffer, handle_of(number), BYTES_##type, tag, peer, comm);             \
  }                                                                                                \
  UTILITY int64_t _mlir_ciface_aotc_mpi_irecv_##type(const mlir_unranked_memref *buffer,           \
                                                     int32_t tag, int32_t peer, int64_t comm) {    \
    return pass_later(false, buffer, handle_of(number), BYTES_##type, tag, peer, comm);            \
  }                                                                                                \
  UTILITY int32_t _mlir_ciface_aotc_mpi_allgather_##type(const mlir_unranked_memref *from,         \
                                                         const mlir_unranked_memref *to,           \
                                                         int64_t comm, bool is_checked) {          \
    return gather(from, to, handle_of(number), BYTES_##type, comm, is_checked);                    \
  }                                                                                                \
  UTILITY int32_t _mlir_ciface_aotc_mpi_allreduce_##type(                                          \
      const mlir_unranked_memref *from, const mlir_unranked_memref *to, int32_t op, int64_t comm,  \
      bool is_checked) {                                                                           \
    return reduce("mpi.allreduce", from, to, handle_of(number), BYTES_##type, op, comm,            \
                  is_checked, false);                                                              \
  }                                                                                                \
  UTILITY int32_t _mlir_ciface_aotc_mpi_reduce_scatter_block_##type(                               \
      const mlir_unranked_memref *from, const mlir_unranked_memref *to, int32_t op, int64_t comm,  \
      bool is_checked) {                                                                           \
    return reduce("mpi.reduce_scatter_block", from, to, handle_of(number), BYTES_##type, op, comm, \
                  is_checked, true);                                                               \
  }

AOTC_MPI_TYPES(DEFINE)
