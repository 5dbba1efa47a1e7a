// Graphs of launches on CUDA devices: capturing, updating and launching them.
#include <stdlib.h>

#include "libcuda.h"

typedef struct cuda_graph {
  CUgraph graph; // owns the nodes
  CUgraphExec executable;
  int count;
  CUgraphNode nodes[];
} cuda_graph;

aotc_rt_result aotc_rt_cuda_kernel_parameter(aotc_rt_function function, uint32_t index,
                                             size_t *out_bytes, bool *out_is_there) {
  size_t offset = 0;
  CUresult code =
      aotc_rt_libcuda.func_get_param_info((CUfunction)function, index, &offset, out_bytes);
  *out_is_there = code == CUDA_SUCCESS;
  return aotc_rt_cuda_result(code == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : code,
                             AOTC_RT_CUDA_CALL_func_get_param_info);
}

static aotc_rt_result no_memory(void) {
  return aotc_rt_cuda_failure(CUDA_ERROR_OUT_OF_MEMORY, AOTC_RT_CUDA_CALL_stream_begin_capture);
}

aotc_rt_result aotc_rt_cuda_graph_begin(aotc_rt_stream stream, int count, void **out_nodes) {
  cuda_graph *made = calloc(1, sizeof(*made) + (size_t)count * sizeof(made->nodes[0]));
  if (made == NULL) {
    return no_memory();
  }
  made->count = count;
  aotc_rt_result result =
      CUDA_CALL(stream_begin_capture, ((CUstream)stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  if (result.code != 0) {
    free(made);
    return result;
  }
  *out_nodes = made;
  return result;
}

// Requires that the next node depend on this launch alone.
aotc_rt_result aotc_rt_cuda_graph_note(aotc_rt_stream stream, void *nodes, int index) {
  cuda_graph *made = nodes;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *last = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  aotc_rt_result result = CUDA_CALL(stream_get_capture_info,
                                    ((CUstream)stream, &status, NULL, NULL, &last, &edges, &count));
  if (result.code == 0 && (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1)) {
    return aotc_rt_cuda_failure(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                                AOTC_RT_CUDA_CALL_stream_get_capture_info);
  }
  if (result.code == 0) {
    made->nodes[index] = last[0];
  }
  return result;
}

aotc_rt_result aotc_rt_cuda_graph_destroy(aotc_rt_graph graph) {
  cuda_graph *made = (cuda_graph *)graph;
  aotc_rt_result first = made->executable != NULL
                             ? CUDA_CALL(graph_exec_destroy, (made->executable))
                             : (aotc_rt_result){.code = 0};
  aotc_rt_result second = made->graph != NULL ? CUDA_CALL(graph_destroy, (made->graph)) : first;
  free(made);
  return first.code != 0 ? first : second;
}

aotc_rt_result aotc_rt_cuda_graph_end(aotc_rt_stream stream, void *nodes, bool is_whole,
                                      aotc_rt_graph *out_graph) {
  cuda_graph *made = nodes;
  aotc_rt_result result = CUDA_CALL(stream_end_capture, ((CUstream)stream, &made->graph));
  if (result.code == 0 && is_whole) {
    result = CUDA_CALL(graph_instantiate, (&made->executable, made->graph, 0));
  }
  if (result.code == 0 && is_whole) {
    *out_graph = (aotc_rt_graph)made;
  } else {
    aotc_rt_cuda_graph_destroy((aotc_rt_graph)made);
  }
  return result;
}

aotc_rt_result aotc_rt_cuda_graph_update(aotc_rt_graph graph, int index,
                                         const aotc_rt_binding *binding, const aotc_rt_launch *l) {
  cuda_graph *made = (cuda_graph *)graph;
  CUDA_KERNEL_NODE_PARAMS parameters = {
      .func = (CUfunction)binding->function,
      .gridDimX = (unsigned int)l->grid[0],
      .gridDimY = (unsigned int)l->grid[1],
      .gridDimZ = (unsigned int)l->grid[2],
      .blockDimX = (unsigned int)l->block[0],
      .blockDimY = (unsigned int)l->block[1],
      .blockDimZ = (unsigned int)l->block[2],
      .sharedMemBytes = (unsigned int)l->dynamic_shared_bytes,
      .kernelParams = l->parameters,
  };
  return CUDA_CALL(graph_exec_kernel_node_set_params,
                   (made->executable, made->nodes[index], &parameters));
}

aotc_rt_result aotc_rt_cuda_graph_launch(aotc_rt_graph graph, aotc_rt_stream stream) {
  return CUDA_CALL(graph_launch, (((cuda_graph *)graph)->executable, (CUstream)stream));
}
