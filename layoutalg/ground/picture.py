"""How prompts and notebooks display values; ``layoutalg`` registers the function that draws pictures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

PROMPT_CHARACTERS = 1000
"""Longest ``repr`` of an answer or plan; longer ones show the first line of ``str`` instead."""
_LINE_CHARACTERS = 200
_DRAWERS: list[Callable[[Any], dict[str, str]]] = []


def drawn_by(drawer: Callable[[Any], dict[str, str]]) -> None:
    """Register the notebook renderer, which returns MIME type -> text. ``layoutalg`` calls this once."""
    _DRAWERS[:] = [drawer]


def _short(full: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a ``__repr__`` that abbreviates the full form if it is too long for a prompt."""

    @functools.wraps(full)
    def shortened(self: Any) -> str:
        text = full(self)
        if len(text) <= PROMPT_CHARACTERS:
            return text
        line = " ".join(str(self).partition("\n")[0].split())
        line = line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 3] + "..."
        return f"<{type(self).__name__}{': ' if line else ''}{line}>"

    shortened.short = True  # type: ignore[attr-defined]
    return shortened


class Shown:
    """A value that notebooks show as a picture and prompts in at most ``PROMPT_CHARACTERS`` characters."""

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
