"""What a notebook shows of a value: a door that is filled from above, for the ground draws nothing.

Main definitions: ``Shown``, ``Drawable``, ``drawn_by``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DRAWERS: list[Callable[[Any], dict[str, str]]] = []


def drawn_by(drawer: Callable[[Any], dict[str, str]]) -> None:
    """Let ``drawer`` answer what a notebook shows: MIME type -> text. The front door calls this once."""
    _DRAWERS[:] = [drawer]


class Shown:
    """A value that notebooks show as a picture."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the value's text and picture; called by Jupyter."""
        del include, exclude  # hints of the protocol that need not be heeded
        return _DRAWERS[0](self) if _DRAWERS else {"text/plain": repr(self)}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Write the value as ``repr`` does; called by IPython, and by Hypothesis for a failing example."""
        printer.text(repr(self) if not cycle else "...")


class Drawable(Shown):
    """A value that draws itself: one of a floor above the pictures."""

    __slots__ = ()

    def draw_on(self, canvas: Any, top: float) -> None:
        """Draw the value below ``top``."""
        raise NotImplementedError
