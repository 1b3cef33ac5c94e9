"""How the L2 cache is emptied between timed samples."""

# Half of the flush buffer is read into the other half, and each has to be twice the cache.
FLUSH_FACTOR = 4

# A pass writes 4 and reads 2 caches: 50 MiB at 5 TB/s take at least 60 us. The estimate is on the
# short side, so that the passes outlast the host's enqueueing.
PASS_SECONDS = 30e-6
