// The runtime of MLIR's async dialect, in C: the functions that convert-async-to-llvm calls
// (LLVM 22).
//
// A task is a coroutine. The functions are in libmlir_runner_utils.a, and linked into programs that
// use them.
//
// - Tasks run on threads of the runtime, which are made when there is work for them: as many as the
//   process has CPUs, but at least four (a task that waits for a GPU blocks its thread), or
//   AOTC_CPU_THREADS; and one more for each thread that waits in one of the Await functions.
//
// - A failure travels with the data. A task begins with the failure of the thread that made it, and
//   takes over that of the tokens, values and groups that it awaits. A thread that awaits them gets
//   it as its own (aotc_status_get). After a failure, launches and copies do nothing, whatever the
//   thread.
//
// - A task's calls go to the GPU of the thread that made it (aotc_default_device_get).
//
// - Tokens, values and groups are reference counted. Every function accepts NULL for one of them
//   that could not be made: it is available, and in error.
#ifndef MLIR_ASYNC_RUNTIME_H
#define MLIR_ASYNC_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlir_async_object mlir_async_object;

// Resumes a suspended coroutine.
typedef void (*mlir_async_resume)(void *coroutine);

// -------------------------------------------------------------------------------------------------
// References

AOTC_API void mlirAsyncRuntimeAddRef(mlir_async_object *object, int64_t count);
// Drops references. The last one frees the object.
AOTC_API void mlirAsyncRuntimeDropRef(mlir_async_object *object, int64_t count);

// Tokens and values are made with two references: the caller's, and one that is dropped when they
// become available or get an error. Groups have the caller's, and wait for `size` tokens. NULL,
// with the failure recorded, if there is no memory.
AOTC_API mlir_async_object *mlirAsyncRuntimeCreateToken(void);
AOTC_API mlir_async_object *mlirAsyncRuntimeCreateValue(int64_t bytes);
AOTC_API mlir_async_object *mlirAsyncRuntimeCreateGroup(int64_t size);

// -------------------------------------------------------------------------------------------------
// State

AOTC_API void mlirAsyncRuntimeEmplaceToken(mlir_async_object *token);
AOTC_API void mlirAsyncRuntimeEmplaceValue(mlir_async_object *value);
AOTC_API void mlirAsyncRuntimeSetTokenError(mlir_async_object *token);
AOTC_API void mlirAsyncRuntimeSetValueError(mlir_async_object *value);
AOTC_API bool mlirAsyncRuntimeIsTokenError(mlir_async_object *token);
AOTC_API bool mlirAsyncRuntimeIsValueError(mlir_async_object *value);
// Whether one of its tokens is in error.
AOTC_API bool mlirAsyncRuntimeIsGroupError(mlir_async_object *group);

// The address of a value's bytes, aligned to 64. They are zeros until they are written.
AOTC_API void *mlirAsyncRuntimeGetValueStorage(mlir_async_object *value);

// Returns the index of the token or value in the group, from 0.
AOTC_API int64_t mlirAsyncRuntimeAddTokenToGroup(mlir_async_object *token,
                                                 mlir_async_object *group);

// -------------------------------------------------------------------------------------------------
// Waiting and running

// Block the calling thread.
AOTC_API void mlirAsyncRuntimeAwaitToken(mlir_async_object *token);
AOTC_API void mlirAsyncRuntimeAwaitValue(mlir_async_object *value);
AOTC_API void mlirAsyncRuntimeAwaitAllInGroup(mlir_async_object *group);

// Runs a coroutine on one of the threads. (If none can be made, a thread that waits runs it.)
AOTC_API void mlirAsyncRuntimeExecute(void *coroutine, mlir_async_resume resume);

// Runs a coroutine once the object is available or in error.
AOTC_API void mlirAsyncRuntimeAwaitTokenAndExecute(mlir_async_object *token, void *coroutine,
                                                   mlir_async_resume resume);
AOTC_API void mlirAsyncRuntimeAwaitValueAndExecute(mlir_async_object *value, void *coroutine,
                                                   mlir_async_resume resume);
AOTC_API void mlirAsyncRuntimeAwaitAllInGroupAndExecute(mlir_async_object *group, void *coroutine,
                                                        mlir_async_resume resume);

// The maximum number of tasks that run at the same time. (The name is upstream's.)
AOTC_API int64_t mlirAsyncRuntimGetNumWorkerThreads(void);

// Prints "Current thread id: 140..." to stdout.
AOTC_API void mlirAsyncRuntimePrintCurrentThreadId(void);

// Waits until all tasks have ended. If one failed, awaited or not, the first such failure becomes
// this thread's. A program calls it after its main. (Upstream has no such function.)
AOTC_API void aotc_async_finish(void);

#ifdef __cplusplus
}
#endif

#endif // MLIR_ASYNC_RUNTIME_H
