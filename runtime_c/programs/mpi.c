// The functions of aotc_mpi.h, implemented by an MPI library that is loaded on the first call.
#include "aotc_mpi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memref.h"
#include "mpi_library.h"
#include "utility.h"

// MPI's reduction operations, indexed by the number the dialect gives them.
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

// -------------------------------------------------------------------------------------------------
// Processes

UTILITY int32_t aotc_mpi_init(bool is_checked) {
  (void)is_checked;
  aotc_program_mpi_begin("mpi.init");
  return 0;
}

UTILITY int32_t aotc_mpi_finalize(bool is_checked) {
  return aotc_program_mpi_begin("mpi.finalize")
             ? aotc_program_mpi_end("mpi.finalize", aotc_program_mpi.Finalize(), is_checked)
             : 0;
}

UTILITY int32_t aotc_mpi_barrier(int64_t comm, bool is_checked) {
  return aotc_program_mpi_begin("mpi.barrier")
             ? aotc_program_mpi_end("mpi.barrier", aotc_program_mpi.Barrier(handle_of(comm)),
                                    is_checked)
             : 0;
}

UTILITY int32_t aotc_mpi_wait(int64_t request, bool is_checked) {
  if (!aotc_program_mpi_begin("mpi.wait")) {
    return 0;
  }
  handle waited = handle_of(request);
  return aotc_program_mpi_end("mpi.wait", aotc_program_mpi.Wait(&waited, STATUS_IGNORE),
                              is_checked);
}

UTILITY int32_t aotc_mpi_error_class(int32_t status) {
  int class = status;
  if (status != 0 && aotc_program_mpi_begin("mpi.error_class")) {
    aotc_program_mpi.Error_class(status, &class);
  }
  return class;
}

UTILITY int32_t aotc_mpi_comm_rank(int64_t comm) {
  int rank = 0;
  if (aotc_program_mpi_begin("mpi.comm_rank")) {
    aotc_program_mpi_end("mpi.comm_rank", aotc_program_mpi.Comm_rank(handle_of(comm), &rank), true);
  }
  return rank;
}

UTILITY int32_t aotc_mpi_comm_size(int64_t comm) {
  int size = 0;
  if (aotc_program_mpi_begin("mpi.comm_size")) {
    aotc_program_mpi_end("mpi.comm_size", aotc_program_mpi.Comm_size(handle_of(comm), &size), true);
  }
  return size;
}

UTILITY int64_t aotc_mpi_comm_split(int64_t comm, int32_t color, int32_t key) {
  handle made = handle_of(COMM_NULL);
  if (aotc_program_mpi_begin("mpi.comm_split")) {
    aotc_program_mpi_end("mpi.comm_split",
                         aotc_program_mpi.Comm_split(handle_of(comm), color, key, &made), true);
  }
  return (int64_t)(intptr_t)made;
}

UTILITY void aotc_mpi_check_processes(int64_t expected) {
  if (!aotc_program_mpi_begin("shard.grid")) {
    return;
  }
  int size = 0;
  if (aotc_program_mpi_end("shard.grid", aotc_program_mpi.Comm_size(handle_of(WORLD), &size),
                           true) == 0 &&
      size != expected) {
    char what[160];
    snprintf(what, sizeof(what),
             "the program is for %" PRId64 " process%s, and runs in %d: start it by mpirun -n "
             "%" PRId64,
             expected, expected == 1 ? "" : "es", size, expected);
    aotc_program_mpi_fail("shard.grid", what);
  }
}

// -------------------------------------------------------------------------------------------------
// Buffers

typedef struct buffer {
  void *data;
  count elements;
  aotc_program_memref memref;
  int64_t bytes; // of one element
  bool is_contiguous;
} buffer;

static buffer buffer_of(const mlir_unranked_memref *unranked, int64_t bytes) {
  aotc_program_memref m = aotc_program_memref_of(unranked->rank, unranked->descriptor);
  buffer b = {.data = m.data + m.offset * bytes,
              .elements = 1,
              .memref = m,
              .bytes = bytes,
              .is_contiguous = true};
  for (int64_t i = m.rank - 1; i >= 0; --i) {
    b.is_contiguous = b.is_contiguous && (m.sizes[i] == 1 || m.strides[i] == b.elements);
    b.elements *= m.sizes[i];
  }
  b.is_contiguous = b.is_contiguous || b.elements <= 1;
  return b;
}

// Finds an MPI type that describes the buffer: a strided type, or the element's type if the buffer
// is contiguous. Released with release_type.
static int find_type(const buffer *b, handle element, handle *out_type, count *out_count) {
  *out_type = element;
  *out_count = b->elements;
  if (b->is_contiguous) {
    return 0;
  }
  *out_count = 1;
  int status = 0;
  for (int64_t i = b->memref.rank - 1; i >= 0 && status == 0; --i) {
    handle inner = *out_type;
    status = aotc_program_mpi.Type_create_hvector_c(
        b->memref.sizes[i], 1, b->memref.strides[i] * b->bytes, inner, out_type);
    if (inner != element) {
      aotc_program_mpi.Type_free(&inner);
    }
  }
  return status == 0 ? aotc_program_mpi.Type_commit(out_type) : status;
}

// Operations that are already using the type continue.
static void release_type(handle element, handle type) {
  if (type != element) {
    aotc_program_mpi.Type_free(&type);
  }
}

// Copies the elements of `b` into the contiguous `packed`, or back.
static void copy_packed(const buffer *b, char *packed, bool is_in) {
  const aotc_program_memref *m = &b->memref;
  for (int64_t k = 0; k < b->elements; ++k) {
    int64_t place = 0;
    for (int64_t i = m->rank - 1, rest = k; i >= 0; --i) {
      place += rest % m->sizes[i] * m->strides[i];
      rest /= m->sizes[i];
    }
    char *at = (char *)b->data + place * b->bytes;
    memcpy(is_in ? packed + k * b->bytes : at, is_in ? at : packed + k * b->bytes,
           (size_t)b->bytes);
  }
}

// Returns the buffer's elements contiguously: in place if possible, otherwise copied into memory
// that `unpack` frees. NULL, with the failure recorded, when memory runs out.
static void *pack(const char *call, const buffer *b) {
  if (b->is_contiguous) {
    return b->data;
  }
  char *packed = malloc((size_t)(b->elements * b->bytes));
  if (packed == NULL) {
    aotc_program_mpi_fail(call, "no memory for a copy of a buffer that is not contiguous");
    return NULL;
  }
  copy_packed(b, packed, true);
  return packed;
}

static void unpack(const buffer *b, void *packed, bool is_written) {
  if (packed != NULL && !b->is_contiguous) {
    if (is_written) {
      copy_packed(b, packed, false);
    }
    free(packed);
  }
}

static bool find_reduction(const char *call, int32_t op, handle *out) {
  if (op <= 0 || (size_t)op >= sizeof(reductions) / sizeof(reductions[0])) {
    aotc_program_mpi_fail(call, "there is no such reduction");
    return false;
  }
  *out = handle_of(reductions[op]);
  return true;
}

static int32_t reduce(const char *call, const mlir_unranked_memref *from,
                      const mlir_unranked_memref *to, handle type, int64_t bytes, int32_t op,
                      int64_t comm, bool is_checked, bool scatters) {
  handle reduction;
  if (!aotc_program_mpi_begin(call) || !find_reduction(call, op, &reduction)) {
    return 0;
  }
  buffer source = buffer_of(from, bytes);
  buffer target = buffer_of(to, bytes);
  int size = 1;
  if (scatters) {
    aotc_program_mpi.Comm_size(handle_of(comm), &size);
  }
  if (source.elements != target.elements * size) {
    aotc_program_mpi_fail(call, "the buffers' sizes do not fit");
    return 0;
  }
  void *made = pack(call, &target);
  void *sent = IN_PLACE;
  if (source.data != target.data && made != NULL) {
    sent = pack(call, &source);
  }
  int status = 0;
  if (made != NULL && sent != NULL) {
    status = scatters ? aotc_program_mpi.Reduce_scatter_block_c(sent, made, target.elements, type,
                                                                reduction, handle_of(comm))
                      : aotc_program_mpi.Allreduce_c(sent, made, target.elements, type, reduction,
                                                     handle_of(comm));
  }
  if (sent != IN_PLACE) {
    unpack(&source, sent, false);
  }
  unpack(&target, made, sent != NULL);
  return aotc_program_mpi_end(call, status, is_checked);
}

static int32_t gather(const mlir_unranked_memref *from, const mlir_unranked_memref *to, handle type,
                      int64_t bytes, int64_t comm, bool is_checked) {
  const char *call = "mpi.allgather";
  if (!aotc_program_mpi_begin(call)) {
    return 0;
  }
  buffer source = buffer_of(from, bytes);
  buffer target = buffer_of(to, bytes);
  int size = 1;
  aotc_program_mpi.Comm_size(handle_of(comm), &size);
  if (target.elements != source.elements * size) {
    aotc_program_mpi_fail(call, "the buffers' sizes do not fit");
    return 0;
  }
  handle sent = type;
  count sent_count = 0;
  void *made = pack(call, &target);
  int status = made == NULL ? 0 : find_type(&source, type, &sent, &sent_count);
  if (made != NULL && status == 0) {
    status = aotc_program_mpi.Allgather_c(source.data, sent_count, sent, made, source.elements,
                                          type, handle_of(comm));
  }
  release_type(type, sent);
  unpack(&target, made, status == 0);
  return aotc_program_mpi_end(call, status, is_checked);
}

static int32_t pass(bool sends, const mlir_unranked_memref *memref, handle element, int64_t bytes,
                    int32_t tag, int32_t peer, int64_t comm, bool is_checked) {
  const char *call = sends ? "mpi.send" : "mpi.recv";
  if (!aotc_program_mpi_begin(call)) {
    return 0;
  }
  buffer b = buffer_of(memref, bytes);
  handle type;
  count elements;
  int status = find_type(&b, element, &type, &elements);
  if (status == 0) {
    status = sends ? aotc_program_mpi.Send_c(b.data, elements, type, peer, tag, handle_of(comm))
                   : aotc_program_mpi.Recv_c(b.data, elements, type, peer, tag, handle_of(comm),
                                             STATUS_IGNORE);
  }
  release_type(element, type);
  return aotc_program_mpi_end(call, status, is_checked);
}

static int64_t pass_later(bool sends, const mlir_unranked_memref *memref, handle element,
                          int64_t bytes, int32_t tag, int32_t peer, int64_t comm) {
  const char *call = sends ? "mpi.isend" : "mpi.irecv";
  handle request = handle_of(REQUEST_NULL);
  if (aotc_program_mpi_begin(call)) {
    buffer b = buffer_of(memref, bytes);
    handle type;
    count elements;
    int status = find_type(&b, element, &type, &elements);
    if (status == 0) {
      status = sends ? aotc_program_mpi.Isend_c(b.data, elements, type, peer, tag, handle_of(comm),
                                                &request)
                     : aotc_program_mpi.Irecv_c(b.data, elements, type, peer, tag, handle_of(comm),
                                                &request);
    }
    release_type(element, type);
    aotc_program_mpi_end(call, status, true);
  }
  return (int64_t)(intptr_t)request;
}

#define BYTES_f32 4
#define BYTES_f64 8
#define BYTES_c32 8
#define BYTES_c64 16
#define BYTES_f16 2
#define BYTES_bf16 2
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
  }

#define DEFINE_REDUCTIONS(type, number)                                                            \
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
AOTC_MPI_REDUCED_TYPES(DEFINE_REDUCTIONS)
