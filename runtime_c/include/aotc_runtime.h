// The runtime under programs made by aotc: device choice, memory, streams, errors, CPU kernels.
//
// What generated code calls to load and launch kernels is in mlir_cuda_runtime.h. This header is
// for the code around it: a program's main, a library's C functions, a language's own runtime.
//
// Rules that hold for every function here and there:
//
// - Nothing happens before it is asked for. Loading a program or a library only remembers images;
//   the first call that needs a device chooses one (see aotc_device_resolve) and opens libcuda.so.1
//   with dlopen. Nothing links against it.
// - Errors are values. Nothing exits, aborts or prints. A failure is recorded for the thread it
//   happened on; functions that return aotc_status return it too.
// - After a thread's first failure, the mgpu* functions do nothing on that thread until
//   aotc_error_clear: they launch and copy nothing and return NULL. Those that release something
//   (mgpuMemFree, mgpu*Destroy, mgpuModuleUnload, mgpuMemHostUnregister*) still release it, and
//   mgpuModuleLoad, which only remembers, still remembers. The aotc_* functions always do their
//   work.
// - Every function may be called from any thread. The error, the adopted stream and the default
//   device belong to the calling thread.
#ifndef AOTC_RUNTIME_H
#define AOTC_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The visibility of the runtime's functions. A library with its own copy of the runtime compiles it
// with -DAOTC_RUNTIME_HIDDEN, so that a program can have two such libraries.
#ifdef AOTC_RUNTIME_HIDDEN
#define AOTC_API __attribute__((visibility("hidden")))
#else
#define AOTC_API __attribute__((visibility("default")))
#endif

// -------------------------------------------------------------------------------------------------
// Errors

// Generated headers define these, too; a program may include both.
#ifndef AOTC_STATUS_CODES
#define AOTC_STATUS_CODES
typedef enum aotc_status {
  AOTC_OK = 0,
  AOTC_INVALID_ARGUMENT = 1, // an argument of a call is unusable
  AOTC_NO_DEVICE = 2, // no driver, no GPU, or the requested device is not there, and no CPU kernels
  AOTC_NO_IMAGE = 3,  // the image holds nothing for the GPU that is there
  AOTC_NO_CPU_KERNEL = 4, // the kernel has no form that runs on the CPU device
  AOTC_OUT_OF_MEMORY = 5,
  AOTC_LAUNCH_FAILED = 6,    // a launch was refused, or the kernel failed while running
  AOTC_DRIVER_FAILED = 7,    // any other failure of a CUDA driver call
  AOTC_UNSUPPORTED = 8,      // the driver or the CPU device cannot do this call
  AOTC_ASSERTION_FAILED = 9, // host code of the program found that what it relies on does not hold
  AOTC_NO_WEIGHTS = 10,      // the file with the program's weights is not there, or another build's
} aotc_status;
#endif

// The first failure of this thread since its last aotc_error_clear, or AOTC_OK.
AOTC_API aotc_status aotc_status_get(void);

// The message of that failure, "" if there is none: the call, the kernel, the launch, the device,
// what the image was built for and what was found. Valid until this thread's next aotc_error_clear.
AOTC_API const char *aotc_error_message(void);

// Clears this thread's failure, so that the mgpu* functions work again.
AOTC_API void aotc_error_clear(void);

// Whether this thread has a failure after which the mgpu* functions do nothing. (The failure of an
// entry's last call, whose status was returned, stops nothing.)
AOTC_API bool aotc_is_stopped(void);

// Records a failure for this thread, unless it has one: the caller's own failure, or one that a
// task brings from another thread. The message is copied.
AOTC_API void aotc_error_adopt(aotc_status status, const char *message);

// Clears a failure that this thread has queried (mlirAsyncRuntimeIsTokenError), so it can continue.
// The failure is restored if an assertion fails before another function checks whether the thread
// is stopped.
AOTC_API void aotc_error_set_aside(void);

// The name of a status, such as "AOTC_NO_DEVICE"; never NULL.
AOTC_API const char *aotc_status_name(aotc_status status);

// -------------------------------------------------------------------------------------------------
// Devices

typedef enum aotc_device_kind { AOTC_DEVICE_CPU = 0, AOTC_DEVICE_CUDA = 1 } aotc_device_kind;

typedef struct aotc_device {
  aotc_device_kind kind;
  int32_t ordinal;          // the CUDA device's number; 0 for cpu
  char name[256];           // "NVIDIA H200", or "cpu"
  int32_t capability_major; // compute capability; 0 for cpu
  int32_t capability_minor; //
  int32_t multiprocessors;  // SMs; for cpu, the threads that run kernels
  uint64_t memory_bytes;    //
  char reason[512];         // why auto took the cpu ("no NVIDIA driver: libcuda.so.1 ..."), else ""
} aotc_device;

// Requests a device: "auto", "cuda", "cuda:N" or "cpu"; NULL withdraws an earlier request. A
// request takes precedence over the environment variable AOTC_DEVICE, which has the same values,
// and which takes precedence over the default, "auto". It must be made before the first use of a
// device. Afterwards only the device in use may be requested; any other is AOTC_INVALID_ARGUMENT.
//
//   auto    CUDA if there is a driver, a GPU, and every image of the program loads on it (this is
//           tried, not guessed); else the CPU, if the program has registered CPU kernels or has no
//           images at all; else AOTC_NO_DEVICE or AOTC_NO_IMAGE.
//
//   cuda    The device of the thread's current context, else the first GPU on which every image
//           loads.
//
//   cuda:N  That GPU.
//
//   cpu     The CPU. libcuda is not opened.
//
// If a launcher of MPI programs has started several processes on one machine, auto and cuda take
// the GPU of the process's local rank, modulo the number of GPUs, instead of the first one.
AOTC_API aotc_status aotc_device_request(const char *spec);

// Chooses the device now, and starts CUDA if it is a GPU. The device is stored to *out_device,
// which may be NULL. Later calls return the same device. A failure is not kept: the next call tries
// again.
AOTC_API aotc_status aotc_device_resolve(aotc_device *out_device);

// Whether a device has been chosen: false for a program that needed none. It does not choose one.
AOTC_API bool aotc_device_is_resolved(void);

// The compute capability of the GPU that this thread's calls go to: 90 for 9.0. It is 0 for the CPU
// device, and if there is no device, which is recorded as a failure. Generated code selects one of
// several kernels by it.
AOTC_API int32_t aotc_compute_capability(void);

// The number of the GPU that this thread's calls go to, set by mgpuSetDefaultDevice or by the entry
// in progress; -1 if it follows the rules above. A thread that works for this one adopts the number
// (-1 clears an earlier one). If the context is not the device's primary one, that thread gets the
// device only.
AOTC_API int32_t aotc_default_device_get(void);
AOTC_API void aotc_default_device_adopt(int32_t ordinal);

// Lists every GPU, then the cpu, without choosing one. At most `capacity` are written; *out_count
// is how many there are. A missing driver is not a failure: then there is only the cpu, whose
// `reason` says why. out_devices may be NULL if capacity is 0.
AOTC_API aotc_status aotc_device_list(aotc_device *out_devices, int32_t capacity,
                                      int32_t *out_count);

// -------------------------------------------------------------------------------------------------
// Memory

typedef enum aotc_memory_kind {
  AOTC_MEMORY_HOST = 0,    // plain host memory, which a GPU need not reach
  AOTC_MEMORY_DEVICE = 1,  // the GPU's memory
  AOTC_MEMORY_MANAGED = 2, // reached by both
} aotc_memory_kind;

// Allocates on the chosen device. On the cpu all three kinds are host memory. Host memory is
// aligned to 64 bytes, the GPU's to at least 256. 0 bytes give a valid pointer. Freed with
// aotc_memory_free and the same kind. On failure *out_pointer is NULL.
AOTC_API aotc_status aotc_memory_allocate(aotc_memory_kind kind, uint64_t bytes,
                                          void **out_pointer);

// Frees memory of aotc_memory_allocate; NULL is allowed. Waits until the GPU no longer uses it.
AOTC_API aotc_status aotc_memory_free(aotc_memory_kind kind, void *pointer);

// Copies between any mix of host, managed and device pointers; returns when the copy is done. It
// comes after this thread's work on its adopted stream, if it has one.
AOTC_API aotc_status aotc_memory_copy(void *to, const void *from, uint64_t bytes);

// -------------------------------------------------------------------------------------------------
// Streams and time

// Makes a caller's stream this thread's: mgpuStreamCreate returns it, mgpuStreamDestroy does
// nothing with it, a NULL stream means it, and mgpuStreamSynchronize and mgpuEventSynchronize wait
// only if `synchronize` is set. NULL adopts CUDA's default stream. The caller keeps the stream
// alive until aotc_stream_release or the next adoption. Adoption calls nothing on the stream, which
// may be capturing.
AOTC_API aotc_status aotc_stream_adopt(void *stream, bool synchronize);

// Ends the adoption; nothing happens if there is none.
AOTC_API void aotc_stream_release(void);

// A stream of the runtime (a CUstream that does not synchronize with the default stream). On the
// cpu *out_stream is NULL, which every function here accepts.
AOTC_API aotc_status aotc_stream_open(void **out_stream);

// Returns the stream to the runtime; work on it may still run.
AOTC_API aotc_status aotc_stream_close(void *stream);

// Waits until the stream's work is done. A kernel that failed while running is reported here.
AOTC_API aotc_status aotc_stream_wait(void *stream);

// Time between two points of a stream: CUDA events, or the monotonic clock on the cpu.
typedef struct aotc_timer aotc_timer;
AOTC_API aotc_status aotc_timer_open(aotc_timer **out_timer);
AOTC_API aotc_status aotc_timer_start(aotc_timer *timer, void *stream);
// Waits for the stop event. *out_milliseconds is 0 on failure.
AOTC_API aotc_status aotc_timer_stop(aotc_timer *timer, void *stream, double *out_milliseconds);
// NULL is allowed.
AOTC_API void aotc_timer_close(aotc_timer *timer);

// -------------------------------------------------------------------------------------------------
// Launches

// Announces that the next launch of this thread is concurrent: the program continues while it runs.
// `values` are the values of its parameters, which the CPU device copies. Generated code calls this
// before a launch on a stream of tokens (`gpu.launch_func async`), through a weak reference.
// Any other launch on the CPU device has ended when its call returns.
AOTC_API void aotc_concurrent_launch_prepare(const void *values, uint64_t bytes);

// Makes a tensor map of images by cuTensorMapEncodeIm2col, as mgpuTensorMapEncodeTiledMemref makes
// tiled ones. `descriptor` is a memref of rank 3 to 5, images first and channels last. A box has
// `box_sizes[0]` pixels of `box_sizes[1]` channels. For the spatial dimensions, outermost first,
// `lower_corner` (from the image's first pixel) and `upper_corner` (from its last pixel) are the
// corners of the box of the windows' first pixels, and `steps` are the strides between these
// pixels. Generated code calls it through a weak reference.
AOTC_API void *aotc_tensor_map_encode_im2col(int64_t rank, void *descriptor, int64_t data_type,
                                             int64_t interleave, int64_t swizzle,
                                             int64_t l2_promotion, int64_t oob_fill,
                                             const int64_t *box_sizes, const int64_t *lower_corner,
                                             const int64_t *upper_corner, const int64_t *steps);

// -------------------------------------------------------------------------------------------------
// Results

// Announces that the next allocation of host-shared memory is for a result that no host code of the
// entry accesses: it becomes device memory if the caller can use that (aotc_entry_call). Generated
// code calls it through a weak reference.
AOTC_API void aotc_result_prepare(void);

// -------------------------------------------------------------------------------------------------
// CPU kernels: what generated objects register
//
// The blocks of a launch run on several threads at once, in any order: on the launching thread (for
// a concurrent launch, its stream's thread), with the stack of that thread, and on threads of the
// runtime, which have 8 MiB of stack and a guard after it. AOTC_CPU_THREADS is the number of
// threads. With 1 it is the launching thread only, the blocks run one after the other, x innermost,
// and a program behaves the same each time.

#define AOTC_CPU_BARRIERS 16

// A block, as it is passed to the functions of its kernel. The memory belongs to the block while it
// runs. It is aligned to 128 bytes, its content is undefined, and it is NULL if it has no bytes.
typedef struct aotc_cpu_block {
  int64_t block_id[3];
  int64_t grid_dim[3];
  int64_t block_dim[3];
  void *dynamic_shared; // dynamic_shared_bytes of the launch
  int64_t dynamic_shared_bytes;
  void *shared; // shared_bytes of the kernel
  // thread_bytes of the kernel for each thread of the block, whose number is rounded up to whole
  // warps of 32.
  void *threads;
  // Ends the launch with AOTC_LAUNCH_FAILED and `message`, which is about one thread of this block.
  // If a launch has several failures, one is reported. The message is copied. It does not return:
  // the block ends here, and blocks that have not begun are skipped.
  void (*fail)(const struct aotc_cpu_block *block, const char *message, const int64_t thread_id[3])
      __attribute__((noreturn));
  // The instruction set: on x86-64 the level of its psABI, 1 to 4, then 5 with AVX512_VNNI, 6 with
  // AVX512_BF16 and 7 with AMX in addition; 0 on others. A function that was compiled for several
  // levels selects one by it.
  int64_t level;
  // A thread, given by its number, arrives at a named barrier of this block, which is for `count`
  // threads (a multiple of 32). A block has AOTC_CPU_BARRIERS such barriers. A thread that then
  // ends its step at a point of AOTC_SYNC_NAMED waits until so many have arrived; any other goes
  // on.
  void (*arrive)(const struct aotc_cpu_block *block, int64_t thread, int32_t barrier,
                 int32_t count);
  // On level 7: whether this process may use AMX's registers, or else only level 6.
  int32_t (*allows_tiles)(const struct aotc_cpu_block *block);
} aotc_cpu_block;

// Runs one block, with all its threads. `parameters` is as in mgpuLaunchKernel: the addresses of
// the values.
typedef void (*aotc_cpu_function)(void *const *parameters, const aotc_cpu_block *block);

// Runs one thread to its next synchronization point, or to its end. `thread` is its number in the
// block, x innermost. `state` is 0 for its first call, and afterwards what its previous call
// returned: 0 if the thread has ended, else 1 + the number of the point at which it waits. A thread
// keeps its values in `threads`. All threads of a block are run by one thread of the host, one
// after the other.
typedef int32_t (*aotc_cpu_step)(void *const *parameters, const aotc_cpu_block *block,
                                 int64_t thread, int32_t state);

// The threads that a thread waits for.
typedef enum aotc_sync_scope {
  AOTC_SYNC_BLOCK = 0,
  AOTC_SYNC_WARP = 1,  // 32 threads with consecutive numbers
  AOTC_SYNC_NAMED = 2, // those that its named barrier is for
} aotc_sync_scope;

// A point at which threads wait for each other. A kernel's points are numbered in the order of its
// text. If lanes of a warp wait at several points, those at the first one go on, so that they reach
// the others.
typedef struct aotc_cpu_sync_point {
  int32_t scope;     // aotc_sync_scope
  const char *place; // for messages: "gpu.barrier at matmul.mlir:12:5"
} aotc_cpu_sync_point;

typedef struct aotc_cpu_kernel {
  const char *name;
  aotc_cpu_function run; // NULL: the kernel has a step function, or no CPU form
  const char *why_not;   // the reason, when run and step are NULL
  aotc_cpu_step step;
  uint64_t shared_bytes; // static workgroup memory
  uint64_t thread_bytes;
  int64_t block_dim[3];                   // the sizes of blocks that it runs with; 0: any
  const aotc_cpu_sync_point *sync_points; // sync_point_count of them
  uint64_t sync_point_count;
} aotc_cpu_kernel;

#define AOTC_MODULE_INFO_VERSION 5

// Constant data in every object that aotc makes. It must stay valid until mgpuModuleUnload of a
// module with this image.
typedef struct aotc_module_info {
  uint32_t version; // AOTC_MODULE_INFO_VERSION
  uint32_t kernel_count;
  const void *image; // the pointer that mgpuModuleLoad gets
  uint64_t image_bytes;
  const char *name;               // of the gpu.module
  const char *built_for;          // "sm_80, sm_86, sm_90a, PTX compute_80"
  const aotc_cpu_kernel *kernels; // kernel_count of them
  // The only GPUs that its kernels are launched on, by compute capability: 90 for 9.0; 0: all; -1:
  // none. On other GPUs the image is not loaded, and whether it would load does not matter.
  int32_t only_capability;
  uint32_t pdl_kernel_count;
  // Kernels that wait (griddepcontrol.wait) for earlier work before they access memory, in the
  // images for GPUs with that instruction: the driver may begin them while the kernel before them
  // on their stream ends. Kernels of images that are compiled from PTX for older GPUs are launched
  // without it.
  const char *const *pdl_kernels; // pdl_kernel_count names
} aotc_module_info;

// Registers what an image was built for, and which of its kernels run on the CPU. A constructor in
// generated objects calls it through a weak reference, so that they link against other runtimes as
// well. It only remembers the data, and may come before or after mgpuModuleLoad of the image. A
// module that is never registered has no CPU kernels.
AOTC_API void aotc_module_register(const aotc_module_info *info);

// A constant of generated code that kernels read. Generated code sets its data and their size, the
// runtime the other fields.
typedef struct aotc_constant {
  const void *data;
  uint64_t bytes;
  void *copies; // NULL at first
  struct aotc_constant *next;
} aotc_constant;

// The constant's data in memory that kernels can access. On a GPU it is a copy, made on first use
// in a context, and kept until aotc_constant_release or aotc_unload. On the CPU, and after a
// failure, it is the data itself. Called through a weak reference.
AOTC_API void *aotc_constant_get(aotc_constant *constant);

// The length of vectors in packed matrices.
#define AOTC_VECTOR_BYTES 64

// A constant matrix of `rows` rows in the packed layout of kernels of the CPU device: its columns
// are in groups of AOTC_VECTOR_BYTES, the last group padded with zeros. A group has its part of
// each row, and then one vector of zeros. The copy is made on first use, and kept until
// aotc_constant_release or aotc_unload. NULL after a failure. Called through a weak reference.
AOTC_API void *aotc_constant_get_packed(aotc_constant *constant, uint64_t rows);

// The transpose of a constant matrix of elements of 2 bytes, for kernels of the CPU device that
// convert them to f32: the transpose has `rows` rows, and its columns are in groups of
// AOTC_VECTOR_BYTES of f32. Otherwise as aotc_constant_get_packed.
AOTC_API void *aotc_constant_get_transposed(aotc_constant *constant, uint64_t rows);

// A constant matrix of narrow elements for kernels of the CPU device that multiply groups of 4
// bytes along K: (16 columns, group of k, column, element), and one group of zeros behind each 16
// columns, of which the last are padded with zeros. The first is for the transpose of a matrix
// whose rows have such groups, and has `rows` groups of k; the others for a matrix of `rows` rows,
// a multiple of a group, of elements of 2 bytes and of 1. Otherwise as aotc_constant_get_packed. On
// processors without AVX512_VNNI, whose kernels do not read it, it is the data itself.
AOTC_API void *aotc_constant_get_grouped_words(aotc_constant *constant, uint64_t rows);
AOTC_API void *aotc_constant_get_grouped_halves(aotc_constant *constant, uint64_t rows);
AOTC_API void *aotc_constant_get_grouped_bytes(aotc_constant *constant, uint64_t rows);

// Constant 3 x 3 filters of f32, with `rows` output channels and as many input channels each, for
// kernels of the CPU device: transformed to 4 x 4 for Winograd's F(2x2, 3x3), with the layout
// (position, output channel, input channel) and 16 elements of padding after each row. Otherwise
// as aotc_constant_get_packed.
AOTC_API void *aotc_constant_get_winograd(aotc_constant *constant, uint64_t rows);

// Frees the constant's copies. A destructor in generated objects calls it through a weak reference,
// also at the end of the process, after the driver has shut down.
AOTC_API void aotc_constant_release(aotc_constant *constant);

// The weights file of a program or library, which has constants that are not in the artifact.
// Generated code sets what it knows of the file, the runtime the rest. docs/weights.md describes
// the format.
typedef struct aotc_weights {
  const char *file; // its path from the folder of the program or library, whose memory this is in
  struct aotc_weight *const *weights; // `count` of them
  uint64_t count;
  void *opened; // NULL at first, as the rest
  const void *stand_in;
  uint64_t stand_in_bytes;
} aotc_weights;

// A constant in that file, identified by the SHA-256 of its data. All programs and libraries with
// the same runtime share the file in memory, and the copies of its weights on devices.
typedef struct aotc_weight {
  aotc_weights *weights;
  uint8_t digest[32];
  aotc_constant constant; // with its size; in place of the file's, where it was replaced
  void *shared;           // NULL at first
} aotc_weight;

// The weight's data. The file is mapped into memory on the first use of one of its weights. It is
// the file that AOTC_WEIGHTS names (or the file of its own name in the folder that AOTC_WEIGHTS
// names), else the file beside the program or library. After a failure (AOTC_NO_WEIGHTS) the data
// are zeros; the next call of an entry tries again.
AOTC_API const void *aotc_weight_get(aotc_weight *weight);

// The weight's data for kernels on a GPU, as from aotc_constant_get.
AOTC_API void *aotc_weight_get_on_device(aotc_weight *weight);

// The weight's data for kernels of the CPU device, as from aotc_constant_get_packed and the
// functions for other layouts.
AOTC_API void *aotc_weight_get_packed(aotc_weight *weight, uint64_t rows);
AOTC_API void *aotc_weight_get_transposed(aotc_weight *weight, uint64_t rows);
AOTC_API void *aotc_weight_get_grouped_words(aotc_weight *weight, uint64_t rows);
AOTC_API void *aotc_weight_get_grouped_halves(aotc_weight *weight, uint64_t rows);
AOTC_API void *aotc_weight_get_grouped_bytes(aotc_weight *weight, uint64_t rows);
AOTC_API void *aotc_weight_get_winograd(aotc_weight *weight, uint64_t rows);

// Releases the file, and the copies of its weights that nobody else uses. A destructor in generated
// objects calls it.
AOTC_API void aotc_weights_release(aotc_weights *weights);

// Records a failed assertion of host code. `message` has the assertion and its place. The calling
// code then returns from its entry. Also called through a weak reference.
AOTC_API void aotc_assertion_failed(const char *message);

// Records that an allocation of host code has failed: AOTC_OUT_OF_MEMORY. `message` has the
// allocation and its place. Called like aotc_assertion_failed.
AOTC_API void aotc_allocation_failed(const char *message);

#ifdef __cplusplus
}
#endif

#endif // AOTC_RUNTIME_H
