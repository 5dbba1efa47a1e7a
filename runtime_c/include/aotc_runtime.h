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

// How the runtime's functions are seen outside the object that holds them. A library that carries a
// runtime of its own compiles it with -DAOTC_RUNTIME_HIDDEN, so that two of them fit in one
// program.
#ifdef AOTC_RUNTIME_HIDDEN
#define AOTC_API __attribute__((visibility("hidden")))
#else
#define AOTC_API __attribute__((visibility("default")))
#endif

// -------------------------------------------------------------------------------------------------
// Errors

// Generated headers have the same, for programs that include both.
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

// The message of that failure, "" when there is none: the call, the kernel, the launch, the device,
// what was built for and what was found. Valid until this thread's next aotc_error_clear.
AOTC_API const char *aotc_error_message(void);

// Forgets this thread's failure: the mgpu* functions work again.
AOTC_API void aotc_error_clear(void);

// Whether this thread has a failure after which the mgpu* functions do nothing. (That of an entry's
// last call, whose status was returned, stops nothing.)
AOTC_API bool aotc_is_stopped(void);

// Makes a failure this thread's, unless it has one: the caller's own, or one that another thread
// handed on with its task. The message is copied.
AOTC_API void aotc_error_adopt(aotc_status status, const char *message);

// Takes a failure from this thread that it asked for, and goes on: mlirAsyncRuntimeIsTokenError. It
// is the thread's again if an assertion fails before anything else asks whether the thread is
// stopped.
AOTC_API void aotc_error_set_aside(void);

// "AOTC_NO_DEVICE" for AOTC_NO_DEVICE; never NULL.
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

// Says which device to use: "auto", "cuda", "cuda:N" or "cpu"; NULL takes back an earlier request.
// A request outranks the environment variable AOTC_DEVICE, which says the same things, and which
// outranks the default, "auto". Must come before the first use of a device: afterwards only what is
// in use already may be requested, anything else is AOTC_INVALID_ARGUMENT.
//
//   auto    CUDA if there is a driver, a GPU, and every image of the program loads on it (this is
//           tried, not guessed); else the CPU, if the program has registered CPU kernels or has no
//           images at all; else AOTC_NO_DEVICE or AOTC_NO_IMAGE.
//   cuda    The first GPU on which every image loads, or the device of the thread's current
//   context. cuda:N  That GPU. cpu     The CPU. libcuda is not opened.
//
// Where a launcher of MPI's programs started several processes on one machine, auto and cuda take
// the GPU of the process's number there, modulo the GPUs, in place of the first.
AOTC_API aotc_status aotc_device_request(const char *spec);

// Chooses the device now, starts CUDA if it takes a GPU, and says what was chosen (out_device may
// be NULL). Later calls say the same. A failure is not kept: the next call tries again.
AOTC_API aotc_status aotc_device_resolve(aotc_device *out_device);

// Whether a device was chosen so far: false for a program that needed none. Chooses none.
AOTC_API bool aotc_device_is_resolved(void);

// The compute capability of the GPU that this thread's calls go to: 90 for 9.0. 0 for the CPU
// device, and where there is no device: then the failure is recorded. Generated code asks which of
// several kernels to launch.
AOTC_API int32_t aotc_compute_capability(void);

// The number of the GPU that this thread's calls go to, as mgpuSetDefaultDevice or the entry under
// way has it; -1 when that is left to the rules above. Another thread that works for this one
// adopts it, where -1 forgets an earlier one. (Of a context that is not the device's primary one it
// gets the device alone.)
AOTC_API int32_t aotc_default_device_get(void);
AOTC_API void aotc_default_device_adopt(int32_t ordinal);

// Lists every GPU, then the cpu, without choosing one. Writes at most `capacity` of them;
// *out_count is how many there are. A missing driver is no failure: then there is only the cpu, and
// its `reason` says why. out_devices may be NULL when capacity is 0.
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

// Frees what aotc_memory_allocate gave; NULL is fine. Waits for the GPU's use of the memory to end.
AOTC_API aotc_status aotc_memory_free(aotc_memory_kind kind, void *pointer);

// Copies between any mix of host, managed and device pointers; returns when the copy is done. It
// comes after what this thread enqueued on its adopted stream, if it has one.
AOTC_API aotc_status aotc_memory_copy(void *to, const void *from, uint64_t bytes);

// -------------------------------------------------------------------------------------------------
// Streams and time

// Makes a caller's stream this thread's: mgpuStreamCreate hands it out, mgpuStreamDestroy leaves it
// alone, a NULL stream means it, and mgpuStreamSynchronize and mgpuEventSynchronize wait only when
// `synchronize` is set. NULL adopts CUDA's default stream. The stream stays the caller's and must
// live until aotc_stream_release or the next adoption. Nothing is called on it here: it may be
// capturing.
AOTC_API aotc_status aotc_stream_adopt(void *stream, bool synchronize);

// Ends the adoption; nothing happens if there is none.
AOTC_API void aotc_stream_release(void);

// A stream of the runtime's own (a CUstream that does not synchronize with the default stream). On
// the cpu *out_stream is NULL, which every function here takes.
AOTC_API aotc_status aotc_stream_open(void **out_stream);

// Gives the stream back; work on it may still run.
AOTC_API aotc_status aotc_stream_close(void *stream);

// Waits until the stream's work is done. A kernel that failed while running is reported here.
AOTC_API aotc_status aotc_stream_wait(void *stream);

// Time between two points of a stream: CUDA events, or the monotonic clock on the cpu.
typedef struct aotc_timer aotc_timer;
AOTC_API aotc_status aotc_timer_open(aotc_timer **out_timer);
AOTC_API aotc_status aotc_timer_start(aotc_timer *timer, void *stream);
// Waits for the stop event. *out_milliseconds is 0 on failure.
AOTC_API aotc_status aotc_timer_stop(aotc_timer *timer, void *stream, double *out_milliseconds);
// NULL is fine.
AOTC_API void aotc_timer_close(aotc_timer *timer);

// -------------------------------------------------------------------------------------------------
// Launches

// Tells that the program goes on while the next launch of this thread runs, and where the values of
// its parameters are, so that the CPU device can copy them. Called by generated code in front of a
// launch on a stream of tokens (`gpu.launch_func async`), through a weak reference. Any other
// launch on the CPU device has ended when its call returns.
AOTC_API void aotc_concurrent_launch_prepare(const void *values, uint64_t bytes);

// Makes a tensor map of images for cuTensorMapEncodeIm2col, as mgpuTensorMapEncodeTiledMemref makes
// others: `descriptor` is a memref of rank 3 to 5, images first and channels last. A box is
// `box_sizes[0]` pixels of `box_sizes[1]` channels. Of the dimensions between, outermost first: the
// corners of the box of the windows' first pixels, `lower_corner` from the image's first pixel and
// `upper_corner` from its last one, and the `steps` between these pixels. Called by generated code
// through a weak reference.
AOTC_API void *aotc_tensor_map_encode_im2col(int64_t rank, void *descriptor, int64_t data_type,
                                             int64_t interleave, int64_t swizzle,
                                             int64_t l2_promotion, int64_t oob_fill,
                                             const int64_t *box_sizes, const int64_t *lower_corner,
                                             const int64_t *upper_corner, const int64_t *steps);

// -------------------------------------------------------------------------------------------------
// Results

// Tells that the next allocation of host-shared memory is a result's, which no host code of the
// entry touches: it is the device's where that is what the caller can use (aotc_entry_call). Called
// by generated code, through a weak reference.
AOTC_API void aotc_result_prepare(void);

// -------------------------------------------------------------------------------------------------
// CPU kernels: what generated objects register
//
// The blocks of a launch run on several threads at once, in any order: on the launching thread (its
// stream's, if it is concurrent), with the stack that it has, and on threads of the runtime's own,
// which have 8 MiB of stack and a guard behind it. AOTC_CPU_THREADS says how many take part. With 1
// it is the launching thread alone, the blocks come one after the other, x innermost, and a program
// runs alike each time.

#define AOTC_CPU_BARRIERS 16

// A block, for the functions of its kernel. Memory given here belongs to the block while it runs;
// it is aligned to 128 bytes, its contents are undefined, and it is NULL when it has no bytes.
typedef struct aotc_cpu_block {
  int64_t block_id[3];
  int64_t grid_dim[3];
  int64_t block_dim[3];
  void *dynamic_shared; // dynamic_shared_bytes of the launch
  int64_t dynamic_shared_bytes;
  void *shared; // shared_bytes of the kernel
  // thread_bytes of the kernel for each thread of the block, and for as many more as make whole
  // warps: multiples of 32.
  void *threads;
  // Ends the launch with AOTC_LAUNCH_FAILED and `message`, which is about one thread of this block;
  // of several failures of a launch one is told. The message is copied. It does not return: the
  // block ends where it is, and blocks that did not begin are left out.
  void (*fail)(const struct aotc_cpu_block *block, const char *message, const int64_t thread_id[3])
      __attribute__((noreturn));
  // Which instructions there are: on x86-64 the level of its psABI, 1 to 4, then 5 with AVX512_VNNI
  // and 6 with AVX512_BF16, too; 0 anywhere else. A function that was compiled for several goes by
  // it.
  int64_t level;
  // Tells that a thread, by its number, comes to a named barrier of this block, of which there are
  // AOTC_CPU_BARRIERS, for `count` threads: a multiple of 32. A thread that then ends its step at a
  // point of AOTC_SYNC_NAMED waits until so many came; one that does not goes on.
  void (*arrive)(const struct aotc_cpu_block *block, int64_t thread, int32_t barrier,
                 int32_t count);
} aotc_cpu_block;

// One call runs one block: all its threads. `parameters` is as in mgpuLaunchKernel: the addresses
// of the values.
typedef void (*aotc_cpu_function)(void *const *parameters, const aotc_cpu_block *block);

// Runs one thread from where it is to its next synchronization point, or to its end. `thread` is
// its number in the block, x innermost; `state` is 0 for its first call and afterwards what its
// call before returned: 0 when the thread has ended, else 1 + the number of the point that it waits
// at. What a thread must remember it keeps in `threads`. All threads of a block are run by one
// thread of the host, one after the other.
typedef int32_t (*aotc_cpu_step)(void *const *parameters, const aotc_cpu_block *block,
                                 int64_t thread, int32_t state);

// For whom a thread waits.
typedef enum aotc_sync_scope {
  AOTC_SYNC_BLOCK = 0,
  AOTC_SYNC_WARP = 1,  // 32 threads with consecutive numbers
  AOTC_SYNC_NAMED = 2, // those that its named barrier is for
} aotc_sync_scope;

// Where threads wait for each other. A kernel's points are numbered in the order of its text: of a
// warp whose lanes wait at several, those at the first go on, so that they come to where the others
// are.
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
  // The only GPUs that its kernels are launched on, by compute capability: 90 for 9.0; 0: all, -1:
  // none. On others it is not loaded, and says nothing of whether the program can use them.
  int32_t only_capability;
  uint32_t pdl_kernel_count;
  // Kernels that wait (griddepcontrol.wait) for the work before them before they touch memory, in
  // the images for GPUs that have it: the driver may begin them while the kernel before them on
  // their stream ends. Images that are made of PTX for older GPUs are launched without.
  const char *const *pdl_kernels; // pdl_kernel_count names
} aotc_module_info;

// Tells what an image was built for and which of its kernels run on the CPU. Called from a
// constructor in generated objects, through a weak reference, so that they link against other
// runtimes as well. It only remembers; it may come before or after mgpuModuleLoad of the image. A
// module that is never registered has no CPU kernels.
AOTC_API void aotc_module_register(const aotc_module_info *info);

// A constant of generated code that kernels read. Generated code fills in its data and their size,
// the runtime the rest.
typedef struct aotc_constant {
  const void *data;
  uint64_t bytes;
  void *copies; // NULL at first
  struct aotc_constant *next;
} aotc_constant;

// The constant's data where kernels reach it: on a GPU a copy, made when it is first asked for in a
// context, and kept there until aotc_constant_release or aotc_unload; on the CPU, and after a
// failure, the data themselves. Called through a weak reference.
AOTC_API void *aotc_constant_get(aotc_constant *constant);

// The length of vectors in packed matrices.
#define AOTC_VECTOR_BYTES 64

// A constant matrix of so many rows, as kernels of the CPU device read it: its columns in groups of
// AOTC_VECTOR_BYTES, the last one padded with zeros; of each group that part of each row, and one
// vector of zeros. Made when it is first asked for, and kept until
// aotc_constant_release or aotc_unload. NULL after a failure. Called through a weak reference.
AOTC_API void *aotc_constant_get_packed(aotc_constant *constant, uint64_t rows);

// Constant filters of 3 x 3 f32, `rows` output channels with as many input channels each, as
// kernels of the CPU device read them: transformed to 4 x 4 for Winograd's F(2x2, 3x3), (position,
// output channel, input channel), with 16 elements of padding behind each row. Otherwise as
// aotc_constant_get_packed.
AOTC_API void *aotc_constant_get_winograd(aotc_constant *constant, uint64_t rows);

// Frees the constant's copies. Called from a destructor in generated objects, through a weak
// reference; fine at the end of the process, after the driver has shut down.
AOTC_API void aotc_constant_release(aotc_constant *constant);

// A program's or a library's file of weights: constants that are not in it. Generated code fills in
// what it knows of the file, the runtime the rest. docs/weights.md has the file's format.
typedef struct aotc_weights {
  const char *file; // its path from the folder of the program or library, whose memory this is in
  struct aotc_weight *const *weights; // `count` of them
  uint64_t count;
  void *opened; // NULL at first, as the rest
  const void *stand_in;
  uint64_t stand_in_bytes;
} aotc_weights;

// A constant in that file, by the SHA-256 of its data. All programs and libraries that have one
// runtime share the file in memory, and copies of its weights on devices.
typedef struct aotc_weight {
  aotc_weights *weights;
  uint8_t digest[32];
  aotc_constant constant; // with its size; in place of the file's, where it was replaced
  void *shared;           // NULL at first
} aotc_weight;

// The weight's data, in a file that is mapped into memory when the first of its weights is asked
// for: the one that AOTC_WEIGHTS names (or the one of that name in the folder that it names), else
// the one beside the program or library. After a failure zeros, which AOTC_NO_WEIGHTS says; the
// next call of an entry tries again.
AOTC_API const void *aotc_weight_get(aotc_weight *weight);

// The same for kernels: as aotc_constant_get does it.
AOTC_API void *aotc_weight_get_on_device(aotc_weight *weight);

// The same for kernels of the CPU device: as aotc_constant_get_packed and
// aotc_constant_get_winograd do it.
AOTC_API void *aotc_weight_get_packed(aotc_weight *weight, uint64_t rows);
AOTC_API void *aotc_weight_get_winograd(aotc_weight *weight, uint64_t rows);

// Gives back the file, and copies of its weights that nobody else uses. Called from a destructor in
// generated objects.
AOTC_API void aotc_weights_release(aotc_weights *weights);

// Records that an assertion of host code does not hold: `message` says which, and where it is. The
// code that calls it then returns from its entry. Also called through a weak reference.
AOTC_API void aotc_assertion_failed(const char *message);

// Records that there is no memory for an allocation of host code: AOTC_OUT_OF_MEMORY. `message`
// says which, and where it is. Called like aotc_assertion_failed.
AOTC_API void aotc_allocation_failed(const char *message);

#ifdef __cplusplus
}
#endif

#endif // AOTC_RUNTIME_H
