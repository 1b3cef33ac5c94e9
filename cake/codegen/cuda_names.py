"""Names in C++: the author's where C++ admits them, and names that nobody has used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
xor xor_eq NULL
abs fabsf min max fminf fmaxf umin umax llmin llmax llabs floorf ceilf rintf truncf
threadIdx blockIdx blockDim gridDim warpSize TensorMap
smem smem_block warp lane unit unit_thread warp_in_unit cta_rank leader tile_exists i
"""
"""Keywords of C++, functions that expressions call, and names that every role may use."""

_RESERVED = frozenset(_WORDS.split())


class Names:
    """C names for the author's names, and names that nobody has used.

    ``taken`` are names that emitted code uses for itself.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._reserved = _RESERVED | set(taken)
        self._given: dict[str, str] = {}
        self._used: set[str] = set()
        self._ever: set[str] = set()
        self._fresh: set[str] = set()

    def of(self, name: str) -> str:
        """The C name of an author's name: the same one wherever C++ admits it."""
        if name not in self._given:
            text = "".join(c if c.isascii() else f"_u{ord(c):x}" for c in name)
            if text.startswith("__"):
                text = f"v{text}"
            while text in self._reserved or text in self._used:
                text += "_"
            self._given[name] = text
            self._used.add(text)
        return self._given[name]

    def permanent(self, stem: str) -> str:
        """A fresh name for the whole kernel, also if it is asked for within a scope."""
        name = self.fresh(stem)
        self._given[f"{name} (permanent)"] = name
        return name

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are fresh inside may be given out again afterwards."""
        used, fresh = set(self._used), set(self._fresh)
        yield
        self._ever |= self._used
        self._used = used | set(self._given.values())
        self._fresh = fresh

    def fresh(self, stem: str) -> str:
        """``stem``, or ``stem_1``, ``stem_2``, ... if it is taken."""
        name, k = stem, 0
        while name in self._reserved or name in self._used:
            k += 1
            name = f"{stem}_{k}"
        self._used.add(name)
        self._fresh.add(name)
        return name

    def is_fresh(self, name: str) -> bool:
        """Whether :meth:`fresh` has given the name out."""
        return name in self._fresh

    @property
    def used(self) -> frozenset[str]:
        """Every name given out."""
        return frozenset(self._used | self._ever)
