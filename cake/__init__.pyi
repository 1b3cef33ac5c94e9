from cake.codegen.compile import compile_program as compile_program
from cake.codes import explain as explain
from cake.lang.decorator import inline as inline
from cake.lang.decorator import schedule as schedule
from cake.lang.elaborate import parse as parse
from cake.runtime.kernel import LoadedKernel as LoadedKernel
from cake.simulate import simulate as simulate_program
from cake.verify import verify as verify_program

__version__: str

__all__ = [
    "LoadedKernel",
    "__version__",
    "compile_program",
    "explain",
    "inline",
    "parse",
    "schedule",
    "simulate_program",
    "verify_program",
]
