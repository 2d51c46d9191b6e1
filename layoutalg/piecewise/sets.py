"""Sets of integer points with symbolic parameters: domains, images, holes.

Notation: ISL's, for example ``[N] -> { [i, j] : 0 <= i < N and 0 <= j <= 36 }``.

Implementation notes: points are found by testing a bounding box with numpy; counts come from boxes, digit chains, sums
of polynomials, or those points (``counts``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.layout import Written
from layoutalg.piecewise import counts, operations, reading
from layoutalg.piecewise.boxes import finite_box
from layoutalg.piecewise.notation import malformed
from layoutalg.piecewise.pieces import SAFE, evaluated
from layoutalg.piecewise.points import Numbers, checked_values, point_arrays
from layoutalg.piecewise.value import TextOfValue, Value

POINTS = 2**24
CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class PointSet(TextOfValue, Written):
    """A set of integer points, defined by affine conditions on its axes and parameters.

    Args:
        text: ISL set text; stored in canonical form.

    Example:
        >>> S = PointSet("[N] -> { [t, r] : 0 <= r < 12 and 0 <= 12t + r < N }")
        >>> S.params, S.axes, S.count(N=50), (5, 0) in S.subs(N=61)
        (('N',), ('t', 'r'), 50, True)

    Source: arXiv 2511.10374 (layouts as ISL relations); islpy for the algorithms.
    """

    text: str
    params: tuple[str, ...] = field(init=False, repr=False, compare=False)
    axes: tuple[str, ...] = field(init=False, repr=False, compare=False)
    value: Value = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text = self.text
        object.__delattr__(self, "text")  # from now on the canonical one
        self._take(reading.read_set(text))

    def _take(self, value: Value) -> PointSet:
        for name, entry in (("params", value.params), ("axes", value.axes), ("value", value)):
            object.__setattr__(self, name, entry)
        return self

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[PointSet], tuple[str]]:
        return PointSet, (self.text,)

    @classmethod
    def of(cls, points: PointSet | Value | str) -> PointSet:
        """Return a set unchanged, parse its text, or wrap what ISL answered."""
        if isinstance(points, Value):
            return cls.__new__(cls)._take(points)
        return points if isinstance(points, PointSet) else cls(points)

    def subs(self, **values: int) -> PointSet:
        """Return the set with values substituted for some parameters.

        Example:
            >>> print(PointSet("[N] -> { [i] : 0 <= i < N }").subs(N=3))
            { [i] : 0 <= i <= 2 }
        """
        return PointSet.of(operations.substitute(self.value, checked_values(values, self.params, self)))

    def is_empty(self) -> bool:
        """Return whether the set is empty for all parameter values."""
        return operations.sample(self.value) is None

    def sample(self) -> dict[str, object] | None:
        """Return parameter values and a point by axis name, or None if the set is empty."""
        return operations.sample(self.value)

    def union(self, other: PointSet) -> PointSet:
        """Return the points in either set; axes correspond by position."""
        return PointSet.of(operations.combined_sets("union", self.value, self._same(other).value))

    def intersect(self, other: PointSet) -> PointSet:
        """Return the points in both sets; axes correspond by position."""
        return PointSet.of(operations.combined_sets("intersect", self.value, self._same(other).value))

    def subtract(self, other: PointSet) -> PointSet:
        """Return the points of this set outside ``other``; axes correspond by position.

        Example:
            >>> box = PointSet("{ [i] : 0 <= i < 8 }")
            >>> print(box.subtract(PointSet("{ [i] : 2 <= i }")))
            { [i] : 0 <= i <= 1 }
        """
        return PointSet.of(operations.combined_sets("subtract", self.value, self._same(other).value))

    def difference(self, other: PointSet) -> dict[str, object] | None:
        """Return parameter values and a point in exactly one of the sets; None if they are equal."""
        return operations.set_difference(self.value, self._same(other).value)

    def is_equal(self, other: PointSet) -> bool:
        """Return whether both contain the same points for all parameter values."""
        return self.difference(other) is None

    def contains(self, coords: Mapping[str, Numbers], **values: int) -> npt.NDArray[np.bool_]:
        """Return which points are in the set, vectorised.

        Args:
            coords: Value of every axis; integers or integer arrays that broadcast together.
            values: Value of every parameter.
        """
        arrays, shape = point_arrays(coords, self.axes, self)
        known = checked_values(values, self.params, self, complete=True)
        return np.array(evaluated(self.value, known, arrays, shape)[1])

    def __contains__(self, point: object) -> bool:
        """Return whether a tuple of integers is in this set, which must have no parameters."""
        if not isinstance(point, tuple) or len(point) != len(self.axes):
            return False
        if not all(isinstance(value, (int, np.integer)) for value in point):
            return False
        return bool(self.contains(dict(zip(self.axes, point, strict=True))))

    def points(self, **values: int) -> npt.NDArray[np.int64]:
        """Return all points at parameter values, in lexicographic order: shape (count, axes).

        Example:
            >>> PointSet("[N] -> { [i, j] : 0 <= j <= i < N }").points(N=2).tolist()
            [[0, 0], [1, 0], [1, 1]]
        """
        known = checked_values(values, self.params, self, complete=True)
        box = self._box(known)
        if box is None:
            return np.empty((0, len(self.axes)), dtype=np.int64)
        size = prod(high - low + 1 for low, high in box)
        if size > POINTS:
            because = f"its bounding box has {size} points; lists go up to {POINTS}"
            raise BudgetError(Diagnostic("LA224", "this set is too large to list", (self.text[:200],), because))
        wide = any(max(abs(low), abs(high)) >= SAFE for low, high in box)
        found: list[npt.NDArray[np.int64]] = []
        total = 0
        for start in range(0, size, CHUNK):
            clock.check("listing the points of a set")
            rest = np.arange(start, min(size, start + CHUNK), dtype=np.int64)
            arrays: list[npt.NDArray[np.int64]] = []
            for low, high in reversed(box):
                rest, digit = np.divmod(rest, high - low + 1)
                arrays.insert(0, (digit.astype(object) if wide else digit) + low)
            inside = evaluated(self.value, known, arrays, rest.shape)[1]
            columns = [array[inside] for array in arrays]
            part = np.stack(columns, axis=-1) if columns else np.empty((int(inside.sum()), 0), dtype=np.int64)
            total += len(part)
            memory.reserve("the points of a set", total, 16 * max(1, len(box)) * (8 if wide else 1))
            found.append(part)
        return np.concatenate(found) if found else np.empty((0, len(self.axes)), dtype=np.int64)

    def _box(self, known: Mapping[str, int]) -> Sequence[tuple[int, int]] | None:
        """Return inclusive bounds of the points at parameter values, None if there are no points."""
        box = finite_box(self.value, known)
        if box is None or prod(max(0, high - low + 1) for low, high in box) > POINTS:
            here = operations.substitute(self.value, known)
            found = operations.bounds(here)
            axis = None if found is None else next((k for k, entry in enumerate(found) if entry is None), None)
            if axis is not None:
                raise self._unbounded(self.axes[axis], here)
            return None if found is None else [entry or (0, 0) for entry in found]
        return box if all(low <= high for low, high in box) else None

    def count(self, **values: int) -> int:
        """Return the number of points at parameter values.

        Example:
            >>> PointSet("[N] -> { [i] : 0 <= i < N }").count(N=10**30) == 10**30
            True
        """
        known = checked_values(values, self.params, self, complete=True)
        box = self._box(known)
        if box is None or not self.axes:
            return 0 if box is None else len(self.points(**values))
        if prod(high - low + 1 for low, high in box) <= POINTS:
            return len(self.points(**values))
        here = PointSet.of(operations.substitute(self.value, known))
        found = counts.formula(here.value)
        return len(here.points()) if found is None else found()

    def count_formula(self) -> counts.PointCount:
        """Return the number of points as a function of the parameters; see ``counts.formula``.

        Example:
            >>> count = PointSet("[N] -> { [t, r] : 0 <= 12t + r < N and 0 <= r < 12 }").count_formula()
            >>> count(N=50), count(N=-3)
            (50, 0)
            >>> PointSet("[N] -> { [i, j] : 0 <= j <= i < N }").count_formula()(N=10**6)
            500000500000
        """
        found = counts.formula(self.value)
        if found is None and not self.params:
            with suppress(AdmissibilityError, BudgetError):
                found = counts.constant(len(self.points()))
        if found is None:
            because = "the set is unbounded, or its axes cannot be summed one by one; use .count(...) instead"
            where, witness = (self.text[:200],), {"point": self.sample()}
            raise AdmissibilityError(
                Diagnostic("LA790", "no formula for the number of points", where, because, witness)
            )
        return found

    def _same(self, other: PointSet) -> PointSet:
        if not isinstance(other, PointSet) or len(other.axes) != len(self.axes):
            raise malformed("LA785", "the sets have different axes", other, f"the axes are {list(self.axes)}")
        return other

    def _unbounded(self, axis: str, here: Value) -> AdmissibilityError:
        return AdmissibilityError(
            Diagnostic(
                code="LA786",
                what="this set has infinitely many points",
                where=(here.text[:200],),
                because=f"the axis {axis} is unbounded",
                witness={"axis": axis, "point": operations.sample(here)},
            )
        )
