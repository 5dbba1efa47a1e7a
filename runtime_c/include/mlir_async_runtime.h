// The runtime of MLIR's async dialect: what convert-async-to-llvm calls (LLVM 22), in C.
//
// A task is a coroutine. The functions are in libmlir_runner_utils.a, and linked into what uses
// them.
//
// - Tasks run on threads of the runtime's own, made as there is work for them: as many as the
//   process has CPUs, at least four (a task that waits for a GPU holds its thread), or
//   AOTC_CPU_THREADS; and one more for each that waits in one of the Await functions.
// - A failure travels with the data: a task begins with that of the thread that made it, and goes
// on
//   with that of the tokens, values and groups that it awaits; a thread that awaits them gets it as
//   its own (aotc_status_get). After it, launches and copies do nothing, on whichever thread.
// - A task's calls go to the GPU of the thread that made it (aotc_default_device_get).
// - Tokens, values and groups are counted references. Every function takes NULL for one of them
// that
//   could not be made: it is available, and in error.
#ifndef MLIR_ASYNC_RUNTIME_H
#define MLIR_ASYNC_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlir_async_object mlir_async_object;

// Goes on with a suspended coroutine.
typedef void (*mlir_async_resume)(void *coroutine);

// -------------------------------------------------------------------------------------------------
// References

AOTC_API void mlirAsyncRuntimeAddRef(mlir_async_object *object, int64_t count);
// Frees the object with its last reference.
AOTC_API void mlirAsyncRuntimeDropRef(mlir_async_object *object, int64_t count);

// Tokens and values are made with two references: the caller's, and one that goes when they become
// available or get an error. Groups have the caller's, and wait for `size` tokens. NULL, with the
// failure recorded, when memory runs out.
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

// Where a value's bytes are, aligned to 64. They are zeros until they are written.
AOTC_API void *mlirAsyncRuntimeGetValueStorage(mlir_async_object *value);

// The token's or value's number in the group, from 0.
AOTC_API int64_t mlirAsyncRuntimeAddTokenToGroup(mlir_async_object *token,
                                                 mlir_async_object *group);

// -------------------------------------------------------------------------------------------------
// Waiting and running

// Block the calling thread.
AOTC_API void mlirAsyncRuntimeAwaitToken(mlir_async_object *token);
AOTC_API void mlirAsyncRuntimeAwaitValue(mlir_async_object *value);
AOTC_API void mlirAsyncRuntimeAwaitAllInGroup(mlir_async_object *group);

// Runs a coroutine on one of the threads. (Where none can be made, whoever waits runs it.)
AOTC_API void mlirAsyncRuntimeExecute(void *coroutine, mlir_async_resume resume);

// The same, once the object is available or in error.
AOTC_API void mlirAsyncRuntimeAwaitTokenAndExecute(mlir_async_object *token, void *coroutine,
                                                   mlir_async_resume resume);
AOTC_API void mlirAsyncRuntimeAwaitValueAndExecute(mlir_async_object *value, void *coroutine,
                                                   mlir_async_resume resume);
AOTC_API void mlirAsyncRuntimeAwaitAllInGroupAndExecute(mlir_async_object *group, void *coroutine,
                                                        mlir_async_resume resume);

// How many tasks run at the same time at most. (The name is upstream's.)
AOTC_API int64_t mlirAsyncRuntimGetNumWorkerThreads(void);

// "Current thread id: 140..." to stdout.
AOTC_API void mlirAsyncRuntimePrintCurrentThreadId(void);

// Waits until no task is left. If one failed, awaited or not, the first such failure becomes this
// thread's. A program calls it behind its main; it is not upstream's.
AOTC_API void aotc_async_finish(void);

#ifdef __cplusplus
}
#endif

#endif // MLIR_ASYNC_RUNTIME_H
