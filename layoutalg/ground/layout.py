"""The base class of all layouts: functions on a finite box of integers.

Notation: flat indices are colexicographic (first axis fastest). The *value* at a flat index is one integer if the
layout has one output or all outputs have extents (packed, first output fastest), otherwise the tuple of outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy.typing as npt

from layoutalg.ground.operators import after
from layoutalg.ground.picture import Shown
from layoutalg.ground.writing import Written


class Layout(Shown, Written):
    """A function from a box of named integer axes to integers; each family represents some of them.

    The methods mean the same in every family; ``tests/property/test_protocol.py`` checks these laws:
    ``table()[i]`` is ``at(i)``, ``apply(a)`` is ``table()[a]``, ``(f @ g).at(i)`` is ``f.at(g.at(i))``,
    ``g.then(f)`` is ``f @ g``, ``f.inverse().at(f.at(i))`` is ``i``.
    """

    __slots__ = ()
    _whole = True

    @property
    @abstractmethod
    def in_dims(self) -> dict[str, int]:
        """The box: axis name -> extent, fastest first."""

    @property
    @abstractmethod
    def out_dims(self) -> dict[str, Any]:
        """Output name -> extent of the codomain, None if unbounded."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of points of the box."""

    @abstractmethod
    def at(self, index: int) -> Any:
        """Return the value at a flat index."""

    @abstractmethod
    def apply(self, coords: Any) -> Any:
        """Return the values at many points.

        Args:
            coords: An array of flat indices gives an array of values of the same shape (plus one axis if values are
                tuples); a mapping axis -> integers gives a mapping output -> integers.
        """

    @abstractmethod
    def table(self) -> npt.NDArray[Any]:
        """Return the values at 0, 1, ..., size - 1, one row each."""

    @abstractmethod
    def inverse(self) -> Any:
        """Return the inverse; the values must be exactly 0, 1, ..., size - 1."""

    def __matmul__(self, inner: Any) -> Any:
        """Return ``self`` after ``inner``: (f @ g)(x) = f(g(x)), exact or refused."""
        return after(self, inner) if isinstance(inner, Layout) else NotImplemented

    def then(self, outer: Any) -> Any:
        """Return ``outer`` after ``self``: (g.then(f))(x) = f(g(x)), exact or refused."""
        return after(outer, self)
