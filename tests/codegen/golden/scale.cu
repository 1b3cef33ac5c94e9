extern "C" __global__ void __launch_bounds__(128, 1)
scale_kernel(
    const float* __restrict__ x,
    float* y,
    int M,
    int N,
    long long x_stride_0,
    long long y_stride_0,
    float a)
{
  const int tiles_1 = (N + 511) >> 9;
  const int tile = (int)blockIdx.x;
  const int outer = tile / tiles_1;
  const int b = tile - outer * tiles_1;
  const int m = outer;
  // work: 1 warpgroup
  const int unit_thread = (int)threadIdx.x & 127;
  // i = (b * 128 + thread()) * 4
  int i_ = ((b * 128) + unit_thread) * 4;
  // inside = i < N
  bool inside = i_ < N;
  // v = load(x[m, i], 4, mask=inside, fill=0.0)
  float v[4];
  if (inside) {
    load_global_x4_f32(v, x + (long long)m * x_stride_0 + i_);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[i] = 0.0f;
    }
  }
  // for j in range(4):
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    // v[j] = v[j] * a
    v[j] = v[j] * a;
  }
  // store(y[m, i], v, mask=inside)
  if (inside) {
    store_global_x4_f32(y + (long long)m * y_stride_0 + i_, v);
  }
}
