extern "C" __global__ void __launch_bounds__(64, 1)
copy_kernel(
    const __grid_constant__ TensorMap x_map,
    const __grid_constant__ TensorMap y_map,
    int M,
    int N)
{
  extern __shared__ __align__(1024) unsigned char smem_block[];
  constexpr unsigned X_at = 0;  // bf16 64x64, 2 stages, swizzle 128
  constexpr unsigned ring_full_at = 16384;  // mbarriers
  constexpr unsigned ring_empty_at = 16400;  // mbarriers
  const unsigned smem = (unsigned)__cvta_generic_to_shared(smem_block);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x >> 5, 0);  // uniform
  const int lane = (int)threadIdx.x & 31;
  const int tiles_0 = (M + 63) >> 6;
  const int tiles_1 = (N + 63) >> 6;
  if (threadIdx.x == 0) {
    prefetch_map(&x_map);
    prefetch_map(&y_map);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      mbar_init(smem + ring_full_at + i * 8, 1);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      mbar_init(smem + ring_empty_at + i * 8, 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp == 0) {
    // load: 1 warp
    int ring_stage = 0;
    unsigned ring_phase = 0;
    const bool leader = elect_one();
    // for m, n in tiles:
#pragma unroll 1
    for (int tile = (int)blockIdx.x; tile < tiles_0 * tiles_1; tile += (int)gridDim.x) {
      const int outer = tile / tiles_1;
      const int n = tile - outer * tiles_1;
      const int m = outer;
      // with ring.fill() as s:
      {
        const int ring_slot = ring_stage;
        mbar_wait(smem + ring_empty_at + ring_slot * 8u, ring_phase ^ 1);
        if (++ring_stage == 2) { ring_stage = 0; ring_phase ^= 1; }
        __syncwarp();
        if (leader) {
          mbar_arrive_expect_tx(smem + ring_full_at + ring_slot * 8u, 8192);
          // tma_load(X[s], x[m * 64, n * 64])
          tma_load_2d(smem + X_at + ring_slot * 8192u, &x_map, smem + ring_full_at + ring_slot * 8u, n * 64, m * 64);
        }
      }
    }
  } else if (warp == 1) {
    // save: 1 warp
    int ring_stage = 0;
    unsigned ring_phase = 0;
    const bool leader = elect_one();
    // for m, n in tiles:
#pragma unroll 1
    for (int tile = (int)blockIdx.x; tile < tiles_0 * tiles_1; tile += (int)gridDim.x) {
      const int outer = tile / tiles_1;
      const int n = tile - outer * tiles_1;
      const int m = outer;
      // with ring.use() as s:
      {
        const int ring_slot = ring_stage;
        mbar_wait(smem + ring_full_at + ring_slot * 8u, ring_phase);
        if (++ring_stage == 2) { ring_stage = 0; ring_phase ^= 1; }
        // tma_store(y[m * 64, n * 64], X[s])
        if (leader) {
          tma_store_2d(&y_map, smem + X_at + ring_slot * 8192u, n * 64, m * 64);
          // tma_store_commit()
          tma_store_commit();
          // tma_store_wait(0)
          tma_store_wait_read<0>();
        }
        __syncwarp();
        __syncwarp();
        if (lane == 0) {
          mbar_arrive(smem + ring_empty_at + ring_slot * 8u);
        }
      }
    }
  }
}
