"""CAKE: a typed language for GPU kernels, its verifying compiler and its search loop.

Importing ``cake`` must stay cheap (under 0.3 s): nothing that loads numpy or the CUDA libraries
belongs in this file.
"""

__version__ = "0.1.0"
