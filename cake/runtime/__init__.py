"""Running compiled kernels: arrays of any library, argument checks, tensor maps and launch."""
