"""Operations on partial functions: restrict, join, compose, invert, compare."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.layout import Layout
from layoutalg.piecewise import box, functions, regions
from layoutalg.piecewise.compare import difference
from layoutalg.piecewise.inverse import digits_inverse, turned
from layoutalg.piecewise.notation import malformed
from layoutalg.piecewise.points import check
from layoutalg.piecewise.sets import PointSet


class Algebra(Layout):
    """Operations on partial functions given as text."""

    __slots__ = ()
    text: str
    outputs: tuple[str, ...]
    given: str
    params: tuple[str, ...]
    axes: tuple[str, ...]

    @abstractmethod
    def _made(self, text: str, outputs: tuple[str, ...] | None = None, given: str | None = None) -> Self:
        """Return the function of a text; outputs and constraints default to those of this one."""

    @property
    def domain(self) -> PointSet:
        """The points where the layout is defined."""
        return PointSet(functions.domain(self.text))

    @property
    def image(self) -> PointSet:
        """The set of values."""
        return PointSet(functions.image(self.text))

    def after(self, inner: Self) -> Self:
        """Return ``self`` after ``inner`` on the points of ``inner`` whose value is in the domain of ``self``.

        Outputs match axes by position; a single output is read as the flat index of a total layout with several axes or
        none. ``self @ inner`` raises on a value outside the domain instead.

        Raises: MalformedError: LA785. AdmissibilityError: LA650.

        Example:
            >>> from layoutalg.piecewise import PiecewiseLayout
            >>> f = PiecewiseLayout("{ [x] -> [x + 1] : x < 4 }")
            >>> print(f.after(PiecewiseLayout("{ [i] -> [2i] : 0 <= i < 9 }")))
            { [i] -> [(1 + 2i)] : 0 <= i <= 1 }
        """
        check.kind(inner, type(self), "inner")
        link = box.link(self.text, len(self.axes), inner.text, len(inner.outputs))
        return self.made_with(inner, functions.after(self.text, link, inner.text))

    def restrict(self, points: PointSet | str) -> Self:
        """Return the layout restricted to the points of a set."""
        return self._made(functions.restrict(self.text, self._set(points).text))

    def without(self, points: PointSet | str) -> Self:
        """Return the layout restricted to the points outside a set."""
        return self._made(functions.remove(self.text, self._set(points).text))

    def union(self, other: Self) -> Self:
        """Return the layout defined where either is; they must agree where both are.

        Raises: MalformedError: LA783, LA785.

        Example:
            >>> from layoutalg.piecewise import PiecewiseLayout
            >>> low = PiecewiseLayout("{ [i] -> [i] : 0 <= i < 4 }")
            >>> low.union(PiecewiseLayout("{ [i] -> [2i] : 4 <= i < 6 }")).table().tolist()
            [0, 1, 2, 3, 8, 10]
        """
        return self.made_with(other, functions.union(self.text, self._alike(other).text))

    def intersect(self, other: Self) -> Self:
        """Return the layout restricted to the points where both are defined and agree."""
        return self.made_with(other, functions.intersect(self.text, self._alike(other).text))

    def collision(self) -> dict[str, object] | None:
        """Return two points with the same value (parameters, points, value), or None if the layout is injective."""
        return functions.collision(self.text, self.axes)

    def injective(self) -> bool:
        """Return whether no two points have the same value, for all parameters."""
        return self.collision() is None

    def image_inverse(self) -> Self:
        """Return the inverse, defined exactly on the image.

        Raises: AdmissibilityError: LA792. BudgetError: LA222.

        Example:
            >>> from layoutalg.piecewise import PiecewiseLayout
            >>> f = PiecewiseLayout("[N] -> { [i] -> [i div 12, i mod 12] : 0 <= i < N }")
            >>> f.image_inverse()(y0=4, y1=2, N=60)
            {'i': 50}
        """
        names = self._out_axes()
        text = digits_inverse(self.text, self.axes, names)
        if text is None:
            found = self.collision()
            if found is not None:
                raise self._no_inverse(f"two points have the value {found['value']}", found)
            text = turned(self.text, names, False)
        return self._made(text, self.axes)

    def right_inverse(self) -> Self:
        """Return the function from each value to its lexicographically least preimage.

        Raises: AdmissibilityError: LA791.

        Example:
            >>> from layoutalg.piecewise import PiecewiseLayout
            >>> PiecewiseLayout("{ [i] -> [i div 3] : 0 <= i < 9 }").right_inverse().table().tolist()
            [0, 3, 6]
        """
        names = self._out_axes()
        text = digits_inverse(self.text, self.axes, names) or turned(self.text, names, True)
        return self._made(text, self.axes)

    def holes(self, box: PointSet | str) -> PointSet:
        """Return the values of a box that the layout never takes, such as padding.

        Example:
            >>> from layoutalg.piecewise import PiecewiseLayout
            >>> f = PiecewiseLayout("[N] -> { [i] -> [i div 4, i mod 4] : 0 <= i < N }")
            >>> f.holes("[N] -> { [t, r] : 0 <= t and 4t < N and 0 <= r < 4 }").points(N=6).tolist()
            [[1, 2], [1, 3]]
        """
        return PointSet.of(box).subtract(self.image)

    def difference(self, other: Self) -> dict[str, object] | None:
        """Return parameter values and a point where only one is defined or the values differ; None if equal."""
        return difference(self.text, self._alike(other).text, self.axes)

    def is_equal(self, other: Self) -> bool:
        """Return whether both are the same partial function for all parameter values; names are ignored.

        Raises: MalformedError: LA785. BudgetError: LA222.

        Example:
            >>> from layoutalg.piecewise import PiecewiseLayout
            >>> f = PiecewiseLayout("{ [i] -> [i - 2*floor(i/2)] : 0 <= i < 8 }")
            >>> f.is_equal(PiecewiseLayout("{ [x] -> [x mod 2] : 0 <= x < 8 }"))
            True
        """
        check.kind(other, type(self), "other")
        alike = (len(self.axes), len(self.outputs)) == (len(other.axes), len(other.outputs))
        return alike and self.difference(other) is None

    def _no_inverse(self, because: str, witness: dict[str, object]) -> AdmissibilityError:
        return AdmissibilityError(
            Diagnostic("LA792", "this layout has no inverse", (self.text[:200],), because, witness)
        )

    def _out_axes(self) -> list[str]:
        """Return axis names made from the output names, distinct from parameters and axes."""
        taken = {*self.params, *self.axes}  # a name used twice in ISL text means equality
        names: list[str] = []
        for name in self.outputs:
            while name in taken:
                name += "_out"
            taken.add(name)
            names.append(name)
        return names

    def made_with(self, other: Self, text: str) -> Self:
        """Return the layout of a text derived from this layout and another, with the output names of this one."""
        given = self.given or other.given
        if self.given and other.given:
            given = regions.intersect(self.given, other.given)
        return self._made(text, self.outputs, given)

    def _alike(self, other: Self) -> Self:
        same = isinstance(other, type(self)) and len(self.axes) == len(other.axes)
        if not same or len(self.outputs) != len(other.outputs):
            because = f"the layout has {len(self.axes)} axes and {len(self.outputs)} outputs"
            raise malformed("LA785", "the layouts have different axes", other, because)
        return other

    def _set(self, points: PointSet | str) -> PointSet:
        chosen = PointSet.of(points)
        if len(chosen.axes) != len(self.axes):
            because = f"the layout has the axes {list(self.axes)}"
            raise malformed("LA785", "the set has different axes", chosen.text, because)
        return chosen
