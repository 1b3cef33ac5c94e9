"""HTML by function calls: every string becomes text, unless it was made here.

Strings from candidates, schedules and tools can hold anything; they enter the page through
:func:`tag` alone, which escapes them.
"""

from __future__ import annotations

from html import escape

VOID = frozenset({"br", "meta", "input", "rect", "circle", "line", "path"})
"""Elements without content (HTML, and the SVG shapes that the charts use)."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | float | None
"""Content of an element: ``Markup`` as it is, other strings escaped, None for nothing."""


def tag(element: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element.

    Attribute names lose a trailing underscore (``class_``) and exchange the others for hyphens
    (``aria_label``). True gives an attribute without a value, False and None leave it out.
    """
    parts = [element]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(label)
        elif value is not None and value is not False:
            parts.append(f'{label}="{escape(str(value), quote=True)}"')
    head = " ".join(parts)
    if element in VOID and not children:
        return Markup(f"<{head}/>")
    return Markup(f"<{head}>{join(*children)}</{element}>")


def join(*children: Child) -> Markup:
    """Contents one after another."""
    return Markup("".join(_text(c) for c in children))


def _text(child: Child) -> str:
    if child is None:
        return ""
    return child if isinstance(child, Markup) else escape(str(child), quote=True)
