"""CAKE: a typed language for GPU kernels, its verifying compiler and its search loop.

Importing ``cake`` must stay cheap (under 0.3 s): nothing that loads numpy or the CUDA libraries
belongs in this file. What it offers is imported when it is first asked for (PEP 562), by name: a
plain import here would be an edge from every module that imports ``cake`` to all that it offers,
and break the contract of layers in ``pyproject.toml``. ``__init__.pyi`` has the types.
"""

from importlib import import_module

__version__ = "0.1.0"

# The packages `verify` and `simulate` keep their names, so their functions need others.
_EXPORTS = {
    "LoadedKernel": ("cake.runtime.kernel", "LoadedKernel"),
    "compile_program": ("cake.codegen.compile", "compile_program"),
    "explain": ("cake.codes", "explain"),
    "inline": ("cake.lang.decorator", "inline"),
    "parse": ("cake.lang.elaborate", "parse"),
    "schedule": ("cake.lang.decorator", "schedule"),
    "simulate_program": ("cake.simulate", "simulate"),
    "verify_program": ("cake.verify", "verify"),
}

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


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _EXPORTS[name]
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
