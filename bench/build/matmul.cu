// samples/matmul.mlir in CUDA C++: the same kernel, the same blocks, and a main that calls it.
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int n = 1024;

__global__ void matmul_kernel(const float *a, const float *b, float *c) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = c[i * n + j];
  for (int k = 0; k < n; ++k) {
    sum += a[i * n + k] * b[k * n + j];
  }
  c[i * n + j] = sum;
}

static void check(cudaError_t status) {
  if (status != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
  }
}

int main() {
  std::vector<float> host[3];
  float *device[3];
  const size_t bytes = sizeof(float) * n * n;
  for (int i = 0; i < 3; ++i) {
    host[i].assign(n * n, 1.0f);
    check(cudaMalloc(&device[i], bytes));
    check(cudaMemcpy(device[i], host[i].data(), bytes, cudaMemcpyHostToDevice));
  }
  matmul_kernel<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(device[0], device[1], device[2]);
  check(cudaGetLastError());
  check(cudaMemcpy(host[2].data(), device[2], bytes, cudaMemcpyDeviceToHost));
  std::printf("%g\n", host[2][0]);
  for (float *matrix : device) {
    check(cudaFree(matrix));
  }
}
