// The fake driver: graphs, which are captured on a stream and contain only launches.
#include "state.h"

#include <string.h>

// cuda.h #defines the plain names to the newest versions; here each symbol is spelled out.
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuGraphInstantiateWithFlags
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphLaunch

typedef struct fake_graph {
  object *handle;
  CUstream stream; // the stream being captured, else NULL
  int count;
  fake_node nodes[MAX_NODES];
} fake_graph;

// Of graphs, including executable ones, which are copies.
#define MAX_GRAPHS 160
static fake_graph the_graphs[MAX_GRAPHS];
// Protects handles and streams; nodes are only used by the thread that captures or launches.
static pthread_mutex_t the_graphs_lock = PTHREAD_MUTEX_INITIALIZER;

static fake_graph *captured_on(CUstream stream) {
  fake_graph *found = NULL;
  pthread_mutex_lock(&the_graphs_lock);
  for (int i = 0; stream != NULL && found == NULL && i < MAX_GRAPHS; ++i) {
    if (the_graphs[i].handle != NULL && the_graphs[i].stream == stream) {
      found = &the_graphs[i];
    }
  }
  pthread_mutex_unlock(&the_graphs_lock);
  return found;
}

bool record_node(CUstream stream, const fake_node *node) {
  fake_graph *graph = captured_on(stream);
  if (graph == NULL) {
    return false;
  }
  if (graph->count == MAX_NODES) {
    violate("a graph with too many launches");
    return true;
  }
  graph->nodes[graph->count++] = *node;
  return true;
}

#ifndef FAKE_OLD_DRIVER
static fake_graph *find_graph_locked(const void *handle) {
  for (int i = 0; i < MAX_GRAPHS; ++i) {
    if (the_graphs[i].handle == handle) {
      return &the_graphs[i];
    }
  }
  violate("a graph that is none");
  return &the_graphs[MAX_GRAPHS - 1];
}

static fake_graph *find_graph(const void *handle) {
  pthread_mutex_lock(&the_graphs_lock);
  fake_graph *found = find_graph_locked(handle);
  pthread_mutex_unlock(&the_graphs_lock);
  return found;
}

static fake_graph *make_graph(object_kind kind, CUstream captured) {
  object *handle = make_object(kind);
  pthread_mutex_lock(&the_graphs_lock);
  fake_graph *made = find_graph_locked(NULL);
  *made = (fake_graph){.handle = handle, .stream = captured};
  pthread_mutex_unlock(&the_graphs_lock);
  COUNT(live_graphs, 1);
  return made;
}

static CUresult destroy_graph(const void *handle, object_kind kind) {
  if (!is_object(handle, kind)) {
    violate("a graph destroyed that is none");
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake_graph *graph = find_graph(handle);
  object *destroyed = graph->handle;
  pthread_mutex_lock(&the_graphs_lock);
  graph->handle = NULL;
  pthread_mutex_unlock(&the_graphs_lock);
  pthread_mutex_lock(&the_lock);
  destroyed->kind = OBJECT_NONE; // the slot may be reused for another graph
  pthread_mutex_unlock(&the_lock);
  COUNT(live_graphs, -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                                           size_t *bytes) {
  ENTER_WITH_CONTEXT("cuFuncGetParamInfo");
  if (!the_driver.has_parameters) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!is_object(function, OBJECT_FUNCTION) || index > 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *offset = 0;
  *bytes = the_driver.parameter_bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  ENTER_WITH_CONTEXT("cuStreamBeginCapture_v2");
  if (!is_object(stream, OBJECT_STREAM) || mode != CU_STREAM_CAPTURE_MODE_RELAXED ||
      captured_on(stream) != NULL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  make_graph(OBJECT_GRAPH, stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                                  cuuint64_t *id, CUgraph *graph,
                                                  const CUgraphNode **dependencies,
                                                  const CUgraphEdgeData **edges, size_t *count) {
  ENTER_WITH_CONTEXT("cuStreamGetCaptureInfo_v3");
  (void)id;
  (void)graph;
  (void)edges;
  static _Thread_local CUgraphNode last;
  fake_graph *captured = captured_on(stream);
  *status = captured != NULL ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  // A node is its number, from 1.
  last = captured != NULL ? (CUgraphNode)(uintptr_t)captured->count : NULL;
  *dependencies = &last;
  *count = last != NULL ? 1 : 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  // The capture ends even if the call fails.
  CUresult entered = enter("cuStreamEndCapture");
  fake_graph *captured = captured_on(stream);
  if (captured == NULL) {
    violate("the end of a capture that did not begin");
    return CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_lock(&the_graphs_lock);
  captured->stream = NULL;
  pthread_mutex_unlock(&the_graphs_lock);
  if (entered != CUDA_SUCCESS) {
    destroy_graph(captured->handle, OBJECT_GRAPH);
    return entered;
  }
  *graph = (CUgraph)captured->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                                    unsigned long long flags) {
  ENTER_WITH_CONTEXT("cuGraphInstantiateWithFlags");
  if (!is_object(graph, OBJECT_GRAPH) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const fake_graph *of = find_graph(graph);
  fake_graph *made = make_graph(OBJECT_EXECUTABLE_GRAPH, NULL);
  made->count = of->count;
  memcpy(made->nodes, of->nodes, sizeof(made->nodes));
  *executable = (CUgraphExec)made->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS *new) {
  ENTER_WITH_CONTEXT("cuGraphExecKernelNodeSetParams_v2");
  fake_graph *graph = find_graph(executable);
  uintptr_t number = (uintptr_t)node;
  if (number < 1 || number > (uintptr_t)graph->count) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake_node *changed = &graph->nodes[number - 1];
  const object *function = (const object *)new->func;
  if (strcmp(changed->launch.kernel, function->name) != 0) {
    violate("another kernel in a graph");
  }
  memcpy(changed->launch.grid, (uint32_t[3]){new->gridDimX, new->gridDimY, new->gridDimZ},
         sizeof(changed->launch.grid));
  memcpy(changed->launch.block, (uint32_t[3]){new->blockDimX, new->blockDimY, new->blockDimZ},
         sizeof(changed->launch.block));
  changed->launch.dynamic_shared_bytes = new->sharedMemBytes;
  changed->parameter = parameter_of(new->kernelParams);
  changed->launch.first_parameter = (int)changed->parameter;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  ENTER_WITH_CONTEXT("cuGraphLaunch");
  if (!is_object(executable, OBJECT_EXECUTABLE_GRAPH) || !is_stream(stream)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake_graph *graph = find_graph(executable);
  COUNT(graph_launch_count, 1);
  for (int i = 0; i < graph->count; ++i) {
    graph->nodes[i].launch.stream = stream;
    void *parameters[] = {&graph->nodes[i].parameter};
    do_launch(&graph->nodes[i].launch, parameters);
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec executable) {
  ENTER_WITH_CONTEXT("cuGraphExecDestroy");
  return destroy_graph(executable, OBJECT_EXECUTABLE_GRAPH);
}

EXPORT CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  ENTER_WITH_CONTEXT("cuGraphDestroy");
  return destroy_graph(graph, OBJECT_GRAPH);
}
#endif // FAKE_OLD_DRIVER
