"""CUDA emission, the NVRTC build, ptxas facts and the on-disk cache of compiled kernels."""
