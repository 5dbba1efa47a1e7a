// Loads the CUDA driver, interprets its results, and makes its simple calls.
#include "libcuda.h"

#include <dlfcn.h>
#include <string.h>

aotc_rt_libcuda_symbols aotc_rt_libcuda;

static const char *const call_names[] = {
#define AOTC_RT_NAME(need, member, symbol, type) symbol,
    AOTC_RT_CUDA_SYMBOLS(AOTC_RT_NAME)
#undef AOTC_RT_NAME
};

enum { IS_REQUIRED = 1, IS_OPTIONAL = 0 };

// CUDA graphs support such launches since CUDA 12.3.
#define FIRST_VERSION_WITH_PDL 12030

static void *open_library(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *reason = dlerror();
    aotc_rt_fail(AOTC_NO_DEVICE, "no NVIDIA driver: %s",
                 reason != NULL ? reason : "libcuda.so.1 cannot be opened");
  }
  return library;
}

// Stores a symbol's address; dlsym returns a function pointer as void *, which C cannot convert.
static bool find_symbol(void *library, const char *symbol, int need, void *out_function) {
  void *address = dlsym(library, symbol);
  if (address == NULL && need == IS_REQUIRED) {
    aotc_rt_fail(AOTC_NO_DEVICE,
                 "the NVIDIA driver is too old: its libcuda.so.1 has no %s; a driver for CUDA 11.4 "
                 "or newer is needed",
                 symbol);
    return false;
  }
  memcpy(out_function, &address, sizeof(address));
  return true;
}

static bool has_graphs(const aotc_rt_libcuda_symbols *cuda) {
  // The newest of the functions came with CUDA 12.4.
  return cuda->func_get_param_info != NULL && cuda->stream_begin_capture != NULL &&
         cuda->stream_get_capture_info != NULL && cuda->stream_end_capture != NULL &&
         cuda->graph_instantiate != NULL && cuda->graph_exec_kernel_node_set_params != NULL &&
         cuda->graph_launch != NULL && cuda->graph_exec_destroy != NULL &&
         cuda->graph_destroy != NULL;
}

static bool has_pages(const aotc_rt_libcuda_symbols *cuda) {
  return cuda->func_get_param_info != NULL && cuda->mem_get_granularity != NULL &&
         cuda->mem_address_reserve != NULL && cuda->mem_address_free != NULL &&
         cuda->mem_create != NULL && cuda->mem_release != NULL && cuda->mem_map != NULL &&
         cuda->mem_set_access != NULL && cuda->mem_unmap != NULL;
}

static bool start(aotc_rt_driver_facts *out_facts) {
  aotc_rt_libcuda_symbols *cuda = &aotc_rt_libcuda;
  // Never closed: the driver's own threads and exit handlers still use its code.
  void *library = open_library();
  if (library == NULL) {
    return false;
  }

  memset(cuda, 0, sizeof(*cuda));
#define AOTC_RT_FIND(need, member, symbol, type)                                                   \
  if (!find_symbol(library, symbol, IS_##need, &cuda->member)) {                                   \
    return false;                                                                                  \
  }
  AOTC_RT_CUDA_SYMBOLS(AOTC_RT_FIND)
#undef AOTC_RT_FIND

  if (!CUDA_TRY(init, (0), "the NVIDIA driver does not start") ||
      !CUDA_TRY(driver_get_version, (&cuda->version), "its CUDA version") ||
      !CUDA_TRY(device_get_count, (&cuda->device_count), "counting GPUs")) {
    return false;
  }
  if (cuda->device_count < 1) {
    aotc_rt_fail(AOTC_NO_DEVICE, "no GPU: the NVIDIA driver (for CUDA %d.%d) has no devices",
                 cuda->version / 1000, cuda->version % 1000 / 10);
    return false;
  }
  bool has_extended_launches = cuda->launch_kernel_ex != NULL;
  *out_facts = (aotc_rt_driver_facts){
      .device_count = cuda->device_count,
      .has_graphs = has_graphs(cuda),
      .has_pages = has_pages(cuda),
      .has_pdl = has_extended_launches && cuda->version >= FIRST_VERSION_WITH_PDL,
      .why_no_clusters =
          has_extended_launches
              ? NULL
              : "clusters need a driver for CUDA 11.8 or newer (it has no cuLaunchKernelEx)",
  };
  return true;
}

// Whether the result reports the failure of earlier work, and not of this call.
static bool is_kernel_failure(CUresult result) {
  switch ((int)result) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

static bool is_load(aotc_rt_cuda_call call) {
  return call == AOTC_RT_CUDA_CALL_library_load_data ||
         call == AOTC_RT_CUDA_CALL_library_get_module ||
         call == AOTC_RT_CUDA_CALL_module_load_data_ex;
}

static bool is_launch(aotc_rt_cuda_call call) {
  return call == AOTC_RT_CUDA_CALL_module_get_function ||
         call == AOTC_RT_CUDA_CALL_func_get_attribute ||
         call == AOTC_RT_CUDA_CALL_func_set_attribute || call == AOTC_RT_CUDA_CALL_launch_kernel ||
         call == AOTC_RT_CUDA_CALL_launch_kernel_ex ||
         call == AOTC_RT_CUDA_CALL_launch_cooperative_kernel;
}

static aotc_status status_of(CUresult result, aotc_rt_cuda_call call) {
  if (is_kernel_failure(result)) {
    return AOTC_LAUNCH_FAILED;
  }
  switch ((int)result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return AOTC_OUT_OF_MEMORY;
  case CUDA_ERROR_STUB_LIBRARY:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
  case CUDA_ERROR_DEVICE_NOT_LICENSED:
  case CUDA_ERROR_SYSTEM_NOT_READY:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return AOTC_NO_DEVICE;
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    return is_load(call) ? AOTC_NO_IMAGE : AOTC_DRIVER_FAILED;
  case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
  case CUDA_ERROR_NOT_SUPPORTED:
    return is_launch(call) ? AOTC_LAUNCH_FAILED : AOTC_UNSUPPORTED;
  default:
    return is_launch(call) ? AOTC_LAUNCH_FAILED : AOTC_DRIVER_FAILED;
  }
}

static aotc_rt_meaning meaning_of(CUresult result) {
  switch ((int)result) {
  case CUDA_ERROR_DEINITIALIZED:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    return AOTC_RT_ALREADY_RELEASED;
  case CUDA_ERROR_INVALID_CONTEXT:
    return AOTC_RT_NO_SUCH_CONTEXT;
  default:
    return is_kernel_failure(result) ? AOTC_RT_OF_EARLIER_WORK : AOTC_RT_OF_THIS_CALL;
  }
}

aotc_rt_result aotc_rt_cuda_failure(CUresult code, aotc_rt_cuda_call call) {
  return (aotc_rt_result){
      .code = (int32_t)code,
      .call = (uint16_t)call,
      .status = (uint8_t)status_of(code, call),
      .meaning = (uint8_t)meaning_of(code),
  };
}

static void describe_failure(aotc_rt_result result, char *text, size_t bytes) {
  const char *name = NULL;
  const char *meaning = NULL;
  CUresult code = (CUresult)result.code;
  // A driver that does not know the error returns NULL.
  if (aotc_rt_libcuda.get_error_name(code, &name) != CUDA_SUCCESS || name == NULL) {
    name = "a CUDA error without a name";
  }
  if (aotc_rt_libcuda.get_error_string(code, &meaning) != CUDA_SUCCESS || meaning == NULL) {
    meaning = "no description";
  }
  // Messages say "cuMemAlloc" for "cuMemAlloc_v2".
  const char *symbol = call_names[result.call];
  const char *version = strstr(symbol, "_v");
  int symbol_length = (int)(version != NULL ? (size_t)(version - symbol) : strlen(symbol));
  text[0] = '\0';
  aotc_rt_append(text, bytes, "%.*s failed with %s (%d, %s)", symbol_length, symbol, name,
                 (int)result.code, meaning);
}

// -------------------------------------------------------------------------------------------------
// Contexts

static aotc_rt_result context_push(aotc_rt_context_handle handle) {
  return CUDA_CALL(ctx_push_current, ((CUcontext)handle));
}

static aotc_rt_result context_pop(void) {
  CUcontext popped = NULL;
  return CUDA_CALL(ctx_pop_current, (&popped));
}

static aotc_rt_result context_synchronize(void) {
  return CUDA_CALL(ctx_synchronize, ());
}

_Static_assert((int)AOTC_RT_CAPTURE_STRICT == (int)CU_STREAM_CAPTURE_MODE_GLOBAL &&
                   (int)AOTC_RT_CAPTURE_RELAXED == (int)CU_STREAM_CAPTURE_MODE_RELAXED,
               "capture modes are CUDA's");

static aotc_rt_result capture_mode_exchange(aotc_rt_capture_mode *mode) {
  CUstreamCaptureMode exchanged = (CUstreamCaptureMode)*mode;
  aotc_rt_result result = CUDA_CALL(thread_exchange_capture_mode, (&exchanged));
  *mode = (aotc_rt_capture_mode)exchanged;
  return result;
}

// -------------------------------------------------------------------------------------------------
// Streams and events

static aotc_rt_result stream_create(aotc_rt_stream *out_stream) {
  CUstream stream = NULL;
  aotc_rt_result result = CUDA_CALL(stream_create, (&stream, CU_STREAM_NON_BLOCKING));
  *out_stream = (aotc_rt_stream)stream;
  return result;
}

static aotc_rt_result stream_destroy(aotc_rt_stream stream) {
  return CUDA_CALL(stream_destroy, ((CUstream)stream));
}

static aotc_rt_result stream_synchronize(aotc_rt_stream stream) {
  return CUDA_CALL(stream_synchronize, ((CUstream)stream));
}

static aotc_rt_result stream_wait_event(aotc_rt_stream stream, aotc_rt_event event) {
  return CUDA_CALL(stream_wait_event, ((CUstream)stream, (CUevent)event, 0));
}

aotc_rt_result aotc_rt_cuda_stream_is_capturing(aotc_rt_stream stream, bool *out_is_capturing) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult code = aotc_rt_libcuda.stream_is_capturing((CUstream)stream, &status);
  // The default stream is used while another stream is being captured.
  bool is_implicit = code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *out_is_capturing = is_implicit || status != CU_STREAM_CAPTURE_STATUS_NONE;
  return aotc_rt_cuda_result(is_implicit ? CUDA_SUCCESS : code,
                             AOTC_RT_CUDA_CALL_stream_is_capturing);
}

static aotc_rt_result event_create(bool is_timed, aotc_rt_event *out_event) {
  CUevent event = NULL;
  aotc_rt_result result =
      CUDA_CALL(event_create, (&event, is_timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
  *out_event = (aotc_rt_event)event;
  return result;
}

static aotc_rt_result event_destroy(aotc_rt_event event) {
  return CUDA_CALL(event_destroy, ((CUevent)event));
}

static aotc_rt_result event_record(aotc_rt_event event, aotc_rt_stream stream) {
  return CUDA_CALL(event_record, ((CUevent)event, (CUstream)stream));
}

static aotc_rt_result event_synchronize(aotc_rt_event event) {
  return CUDA_CALL(event_synchronize, ((CUevent)event));
}

static aotc_rt_result event_elapsed(aotc_rt_event start, aotc_rt_event stop,
                                    float *out_milliseconds) {
  return CUDA_CALL(event_elapsed_time, (out_milliseconds, (CUevent)start, (CUevent)stop));
}

// -------------------------------------------------------------------------------------------------

const aotc_rt_driver aotc_rt_cuda = {
    .name = "cuda",
    .kind = AOTC_DEVICE_CUDA,
    .start = start,
    .describe_failure = describe_failure,
    .describe_device = aotc_rt_cuda_describe_device,
    .context_of = aotc_rt_cuda_context_of,
    .context_open = aotc_rt_cuda_context_open,
    .context_close = aotc_rt_cuda_context_close,
    .context_empty = aotc_rt_cuda_context_empty,
    .context_exists = aotc_rt_cuda_context_exists,
    .context_push = context_push,
    .context_pop = context_pop,
    .context_synchronize = context_synchronize,
    .capture_mode_exchange = capture_mode_exchange,
    .module_load = aotc_rt_cuda_module_load,
    .module_unload = aotc_rt_cuda_module_unload,
    .kernel_find = aotc_rt_cuda_kernel_find,
    .kernel_allow = aotc_rt_cuda_kernel_allow,
    .launch = aotc_rt_cuda_launch,
    .kernel_parameter = aotc_rt_cuda_kernel_parameter,
    .graph_begin = aotc_rt_cuda_graph_begin,
    .graph_note = aotc_rt_cuda_graph_note,
    .graph_end = aotc_rt_cuda_graph_end,
    .graph_update = aotc_rt_cuda_graph_update,
    .graph_launch = aotc_rt_cuda_graph_launch,
    .graph_destroy = aotc_rt_cuda_graph_destroy,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .stream_is_capturing = aotc_rt_cuda_stream_is_capturing,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .memory_allocate = aotc_rt_cuda_memory_allocate,
    .memory_free = aotc_rt_cuda_memory_free,
    .memory_is_ordered = aotc_rt_cuda_memory_is_ordered,
    .memory_locate = aotc_rt_cuda_memory_locate,
    .memory_copy = aotc_rt_cuda_memory_copy,
    .memory_fill = aotc_rt_cuda_memory_fill,
    .pages_granularity = aotc_rt_cuda_pages_granularity,
    .pages_reserve = aotc_rt_cuda_pages_reserve,
    .pages_unreserve = aotc_rt_cuda_pages_unreserve,
    .page_make = aotc_rt_cuda_page_make,
    .page_free = aotc_rt_cuda_page_free,
    .page_map = aotc_rt_cuda_page_map,
    .page_unmap = aotc_rt_cuda_page_unmap,
    .memory_register = aotc_rt_cuda_memory_register,
    .memory_unregister = aotc_rt_cuda_memory_unregister,
};
