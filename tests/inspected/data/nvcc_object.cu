// CUDA 13.0: nvcc -arch=sm_80 -c nvcc_object.cu -o nvcc_object.o
__global__ __launch_bounds__(256) void reverse(int *values) {
  __shared__ int tile[256];
  tile[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = tile[255 - threadIdx.x];
}
