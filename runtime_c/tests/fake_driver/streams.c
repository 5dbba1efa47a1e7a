// The fake driver: streams and events.
#include "state.h"

#include <string.h>

// cuda.h calls its newest versions by the plain names; here each symbol is what it says.
#undef cuEventElapsedTime

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuStreamCreate");
  if (flags != CU_STREAM_NON_BLOCKING) {
    violate("a stream that waits for the default stream");
  }
  *stream = (CUstream)make_object(OBJECT_STREAM);
  ++the_driver.live_streams;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  ENTER_WITH_CONTEXT("cuStreamDestroy_v2");
  if (!is_object(stream, OBJECT_STREAM) ||
      ((object *)stream)->context != the_stack[the_depth - 1]) {
    violate("a stream destroyed that is none, or of another context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  ((object *)stream)->kind = OBJECT_NONE;
  --the_driver.live_streams;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *context) {
  ENTER("cuStreamGetCtx");
  if (!is_object(stream, OBJECT_STREAM)) {
    violate("the context of a stream that has none of its own");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  *context = (CUcontext)(uintptr_t)((object *)stream)->context;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  ENTER_WITH_CONTEXT("cuStreamIsCapturing");
  *status =
      the_driver.is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  ENTER_WITH_CONTEXT("cuStreamSynchronize");
  if (the_driver.is_capturing) {
    violate("a wait for a stream that is capturing");
  }
  do_late_work();
  return is_stream(stream) ? (CUresult)the_driver.asynchronous_result : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuStreamWaitEvent");
  return is_stream(stream) && is_object(event, OBJECT_EVENT) && flags == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuEventCreate");
  (void)flags;
  *event = (CUevent)make_object(OBJECT_EVENT);
  ++the_driver.live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  ENTER_WITH_CONTEXT("cuEventDestroy_v2");
  if (!is_object(event, OBJECT_EVENT)) {
    violate("an event destroyed that is none");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  ((object *)event)->kind = OBJECT_NONE;
  --the_driver.live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  ENTER_WITH_CONTEXT("cuEventRecord");
  return is_stream(stream) && is_object(event, OBJECT_EVENT) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  ENTER_WITH_CONTEXT("cuEventSynchronize");
  if (the_driver.is_capturing && the_capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    violate("a wait for an event beside a capture");
  }
  do_late_work();
  return is_object(event, OBJECT_EVENT) ? (CUresult)the_driver.asynchronous_result
                                        : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
EXPORT CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  ENTER_WITH_CONTEXT("cuEventElapsedTime");
  *milliseconds = 2.5F;
  return is_object(start, OBJECT_EVENT) && is_object(end, OBJECT_EVENT) ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_HANDLE;
}
