"""How prompts and notebooks display values; ``layoutalg`` registers the function that draws pictures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

PROMPT_CHARACTERS = 320
"""Longest ``repr`` of an answer in the constructor's form; longer ones show the first lines of ``str`` instead."""
PROMPT_LINES, LINE_CHARACTERS = 20, 160
_DRAWERS: list[Callable[[Any], dict[str, str]]] = []


def drawn_by(drawer: Callable[[Any], dict[str, str]]) -> None:
    """Register the notebook renderer, which returns MIME type -> text. ``layoutalg`` calls this once."""
    _DRAWERS[:] = [drawer]


_nested: ContextVar[bool] = ContextVar("_nested", default=False)
"""Whether the ``repr`` of another value is being written, in which a value takes one line."""


def _short(full: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a ``__repr__`` that shows the first lines of ``str`` if the full form is too long for a prompt."""

    @functools.wraps(full)
    def shortened(self: Any) -> str:
        inner = _nested.get()
        token = _nested.set(True)
        try:
            text = full(self)
            if len(text) <= PROMPT_CHARACTERS and "=<" not in text:  # nothing in it is shortened
                return text
            lines = str(self).splitlines() or [""]
        finally:
            _nested.reset(token)
        shown = [" ".join(lines[0].split())] if inner else lines[:PROMPT_LINES]
        shown = [line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 3] + "..." for line in shown]
        if not inner and len(lines) > len(shown):
            shown.append(f"... {len(lines) - len(shown)} more lines: print it")
        return f"<{type(self).__name__}{': ' if shown[0] else ''}" + "\n".join(shown) + ">"

    shortened.short = True  # type: ignore[attr-defined]
    return shortened


def in_one_line(value: object) -> str:
    """Return ``repr(value)`` as messages and other values write it: an answer in its first line."""
    token = _nested.set(True)
    try:
        return repr(value)
    finally:
        _nested.reset(token)


class Shown:
    """A value that notebooks show as a picture and prompts in a few lines."""

    __slots__ = ()
    _whole = False
    """Whether ``repr`` is never abbreviated: layouts are read back from it."""

    def __init_subclass__(cls) -> None:
        """Wrap the class's own ``__repr__``. Runs twice for slotted dataclasses, which are recreated."""
        super().__init_subclass__()
        full = cls.__dict__.get("__repr__")
        if full is not None and not hasattr(full, "short") and not cls._whole:
            cls.__repr__ = _short(full)  # type: ignore[method-assign]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the value's text and picture; called by Jupyter."""
        del include, exclude  # optional hints of the protocol
        return _DRAWERS[0](self) if _DRAWERS else {"text/plain": repr(self)}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Write the value as ``repr`` does; called by IPython, and by Hypothesis for a failing example."""
        printer.text(repr(self) if not cycle else "...")
