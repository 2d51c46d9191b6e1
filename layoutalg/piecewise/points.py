"""Sets of integer points with symbolic parameters: domains, images, holes.

Main definitions: ``ParametricSet``, ``ParametricCount``.

Notation: ISL's, for example ``[N] -> { [i, j] : 0 <= i < N and 0 <= j <= 36 }``.

Implementation notes: points are found by testing a bounding box with numpy, and counts come from boxes, from chains of
digits, from sums of polynomials or from those points; ISL's own count answers 0 on parametric and on unbounded sets and
is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, shown
from layoutalg.piecewise import counting, isl, reading, relations, small
from layoutalg.piecewise.confirm import doubted
from layoutalg.piecewise.evaluate import SAFE, evaluate, integers, reach
from layoutalg.piecewise.notation import malformed

if TYPE_CHECKING:
    from layoutalg.piecewise.parametric import ParametricLayout

Numbers: TypeAlias = "int | npt.NDArray[np.int64]"
POINTS = 2**24
CHUNK = 2**18
CHAIN_AXES = 4
VALUE_BITS = 900


@dataclass(frozen=True, slots=True)
class ParametricSet:
    """A set of integer points, cut out by affine conditions over its axes and over parameters.

    Args:
        text: ISL set text; kept in canonical form.

    Raises: MalformedError: LA780, LA781, LA782. BudgetError: LA222.

    Example:
        >>> S = ParametricSet("[N] -> { [t, r] : 0 <= r < 12 and 0 <= 12t + r < N }")
        >>> S.params, S.axes, S.count(N=50), (5, 0) in S.subs(N=61)
        (('N',), ('t', 'r'), 50, True)

    Source: arXiv 2511.10374 (layouts as ISL relations); islpy for the algorithms.
    """

    text: str
    params: tuple[str, ...] = field(init=False, repr=False, compare=False)
    axes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = reading.read_set(self.text)
        object.__setattr__(self, "text", found.text)
        object.__setattr__(self, "params", found.params)
        object.__setattr__(self, "axes", found.axes)

    def __str__(self) -> str:
        return self.text

    def subs(self, **values: int) -> ParametricSet:
        """Return the set at values of some parameters.

        Raises: MalformedError: LA785.

        Example:
            >>> print(ParametricSet("[N] -> { [i] : 0 <= i < N }").subs(N=3))
            { [i] : 0 <= i <= 2 }
        """
        return ParametricSet(relations.substitute(self.text, checked_values(values, self.params, self.text)))

    def is_empty(self) -> bool:
        """Return whether no parameter values give a point."""
        return relations.is_empty(self.text)

    def sample(self) -> dict[str, object] | None:
        """Return parameter values and a point by axis name, or None where the set is empty."""
        return relations.sample(self.text, self.axes)

    def union(self, other: ParametricSet) -> ParametricSet:
        """Return the points in either set; axes correspond by position."""
        return ParametricSet(relations.on_maps("union_set", self.text, self._same(other).text))

    def intersect(self, other: ParametricSet) -> ParametricSet:
        """Return the points in both sets; axes correspond by position."""
        return ParametricSet(relations.on_maps("intersect_set", self.text, self._same(other).text))

    def subtract(self, other: ParametricSet) -> ParametricSet:
        """Return the points of this set outside ``other``; axes correspond by position.

        Example:
            >>> box = ParametricSet("{ [i] : 0 <= i < 8 }")
            >>> print(box.subtract(ParametricSet("{ [i] : 2 <= i }")))
            { [i] : 0 <= i <= 1 }
        """
        return ParametricSet(relations.on_maps("subtract_set", self.text, self._same(other).text))

    def difference(self, other: ParametricSet) -> dict[str, object] | None:
        """Return parameter values and a point in exactly one of the sets; None where they are equal."""
        return relations.difference(self.text, self._same(other).text, self.axes)

    def is_equal(self, other: ParametricSet) -> bool:
        """Return whether both hold the same points for all parameter values."""
        return self.difference(other) is None

    def lexmin(self) -> ParametricLayout:
        """Return the lexicographically least point as a function of the parameters.

        Returns:
            A layout without inputs, defined where the set has points.

        Raises: AdmissibilityError: LA786.

        Example:
            >>> ParametricSet("[N] -> { [i] : N <= 2i and i < 100 }").lexmin().at(N=7)
            (4,)
        """
        return self._extreme(False)

    def lexmax(self) -> ParametricLayout:
        """Return the lexicographically greatest point as a function of the parameters; see ``lexmin``."""
        return self._extreme(True)

    def contains(self, coords: Mapping[str, Numbers], **values: int) -> npt.NDArray[np.bool_]:
        """Return where points lie in the set, vectorised.

        Args:
            coords: Value of every axis; integers or integer arrays that broadcast together.
            values: Value of every parameter.

        Raises: MalformedError: LA785.
        """
        arrays, shape = point_arrays(coords, self.axes, self.text)
        known = checked_values(values, self.params, self.text, complete=True)
        return np.array(self._holds(known, arrays, shape))

    def __contains__(self, point: object) -> bool:
        """Return whether a tuple of integers is a point of this set, which must have no parameters left."""
        if not isinstance(point, tuple) or len(point) != len(self.axes):
            return False
        if not all(isinstance(value, (int, np.integer)) for value in point):
            return False
        return bool(self.contains(dict(zip(self.axes, point, strict=True))))

    def points(self, **values: int) -> npt.NDArray[np.int64]:
        """Return all points at parameter values, in lexicographic order: shape (count, axes).

        Raises: AdmissibilityError: LA786. BudgetError: LA224.

        Example:
            >>> ParametricSet("[N] -> { [i, j] : 0 <= j <= i < N }").points(N=2).tolist()
            [[0, 0], [1, 0], [1, 1]]
        """
        known = checked_values(values, self.params, self.text, complete=True)
        box = self._box(known)
        if box is None:
            return np.empty((0, len(self.axes)), dtype=np.int64)
        size = prod(high - low + 1 for low, high in box)
        if size > POINTS:
            raise BudgetError(
                Diagnostic(
                    code="LA224",
                    what="this set is too large to list",
                    where=(self.text[:200],),
                    because=f"its bounding box has {size} points; lists go up to {POINTS}",
                )
            )
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
            inside = self._holds(known, arrays, rest.shape)
            columns = [array[inside] for array in arrays]
            part = np.stack(columns, axis=-1) if columns else np.empty((int(inside.sum()), 0), dtype=np.int64)
            total += len(part)
            memory.reserve("the points of a set", total, 16 * max(1, len(box)) * (8 if wide else 1))
            found.append(part)
        return np.concatenate(found) if found else np.empty((0, len(self.axes)), dtype=np.int64)

    def _box(self, known: Mapping[str, int]) -> Sequence[tuple[int, int]] | None:
        """Return inclusive bounds of the points at parameter values, None where there are none.

        Raises: AdmissibilityError: LA786.
        """
        box = relations.box_of(self.text, known)
        if box is None or prod(max(0, high - low + 1) for low, high in box) > POINTS:
            here = relations.substitute(self.text, known)
            found = relations.bounds(here)
            if isinstance(found, int):
                raise self._unbounded(self.axes[found], here)
            return found
        return box if all(low <= high for low, high in box) else None

    def _holds(
        self, known: Mapping[str, int], arrays: list[npt.NDArray[np.int64]], shape: tuple[int, ...]
    ) -> npt.NDArray[np.bool_]:
        """Return where points lie in the set."""
        found = relations.members(self.text, known, arrays)
        if found is None:
            return evaluated(relations.on_maps("constant_set", self.text), self.params, known, arrays, shape, 0)[1]
        return np.broadcast_to(found, shape)

    def count(self, **values: int) -> int:
        """Return the number of points at parameter values.

        Raises: AdmissibilityError: LA786. BudgetError: LA224, LA222.

        Example:
            >>> ParametricSet("[N] -> { [i] : 0 <= i < N }").count(N=10**30) == 10**30
            True
        """
        known = checked_values(values, self.params, self.text, complete=True)
        box = self._box(known)
        if box is None or not self.axes:
            return 0 if box is None else len(self.points(**values))
        if prod(high - low + 1 for low, high in box) <= POINTS:
            return len(self.points(**values))
        here = ParametricSet(relations.substitute(self.text, known))
        found = here._formula()
        return len(here.points()) if found is None else found()

    def count_formula(self) -> ParametricCount:
        """Return the number of points as a function of the parameters.

        Mathematically: a product of affine functions for a box and for a chain of digits (a set whose flat indices form
        an interval, as of a ragged tile ``12 t + r < N``); else a sum of polynomials in the parameters and in floors of
        them, each on its own parameter values, by Faulhaber's formula.

        Raises: AdmissibilityError: LA790. BudgetError: LA222.

        Example:
            >>> count = ParametricSet("[N] -> { [t, r] : 0 <= 12t + r < N and 0 <= r < 12 }").count_formula()
            >>> count(N=50), count(N=-3)
            (50, 0)
            >>> ParametricSet("[N] -> { [i, j] : 0 <= j <= i < N }").count_formula()(N=10**6)
            500000500000
        """
        found = self._formula()
        if found is None:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA790",
                    what="no formula for the number of points",
                    where=(self.text[:200],),
                    because="the set is unbounded, or its axes cannot be summed over one by one; "
                    "count at parameter values instead",
                    witness={"point": self.sample()},
                )
            )
        return found

    def _formula(self) -> ParametricCount | None:
        """Return the count as a function of the parameters."""
        from layoutalg.piecewise.parametric import ParametricLayout

        listed = None if self.params else small.set_points(self.text)
        if listed is not None:
            return ParametricCount(ParametricLayout(f"{{ [] -> [{len(listed)}] }}"), (), ())
        found = self._summed()
        if found is not None:
            self._counted(found)
        return found

    def _counted(self, formula: ParametricCount) -> None:
        """Compare a formula with the number of points, wherever these are listed.

        Raises: BudgetError: LA793, LA794.
        """
        points = relations.counts(self.text)
        for known, count in points:
            if formula(**known) != count:
                doubted(f"the number of points of {self.text}", f"{formula(**known)}, not {count} at {known}", known)

    def _summed(self) -> ParametricCount | None:
        from layoutalg.piecewise.parametric import ParametricLayout

        try:
            text = self._factors() if self.axes and not self.is_empty() else None
            if text is not None:
                return ParametricCount(ParametricLayout(text), (), self.params)
            parts = counting.counted(self.text)
        except AdmissibilityError:
            # a bound that ISL has no expression for: an unbounded axis
            return None
        if parts is None:
            return None
        pairs = tuple((ParametricLayout(part.floors), part) for part in parts)
        return ParametricCount(None, pairs, self.params)

    def _factors(self) -> str | None:
        """Return the factors of the count of a box or a chain of digits as a function of the parameters."""
        text = relations.extents(self.text)
        if text is not None:
            return text
        fixed = relations.constant_extents(self.text)
        open_axes = [k for k, entry in enumerate(fixed) if entry is None]
        if len(open_axes) > 1 or len(fixed) > CHAIN_AXES:
            return None
        lows = {k: entry for k, entry in enumerate(fixed) if entry is not None}
        for order in permutations(range(len(fixed))):
            if open_axes and order[-1] != open_axes[0]:
                continue
            weight, terms = 1, []
            for k in order:
                low, high = lows.get(k, (0, 0))
                terms.append(f"{weight}*(x{k} - ({low}))")
                weight *= high - low + 1
            names = [f"x{k}" for k in range(len(fixed))]
            text = relations.flat_extents(self.text, " + ".join(terms), names)
            if text is not None:
                return text
        return None

    def _extreme(self, largest: bool) -> ParametricLayout:
        from layoutalg.piecewise.parametric import ParametricLayout

        found = relations.extreme(self.text, largest, self.axes)
        if isinstance(found, str):
            return ParametricLayout(found, outputs=self.axes)
        raise AdmissibilityError(
            Diagnostic(
                code="LA786",
                what="this set has no lexicographic optimum",
                where=(f"{'lexmax' if largest else 'lexmin'}({self.text[:200]})",),
                because=f"it is unbounded {'above' if largest else 'below'}",
                witness={"point": found},
            )
        )

    def _same(self, other: ParametricSet) -> ParametricSet:
        if not isinstance(other, ParametricSet) or len(other.axes) != len(self.axes):
            raise malformed("LA785", "the sets have different axes", other, f"the axes are {list(self.axes)}")
        return other

    def _unbounded(self, axis: str, here: str) -> AdmissibilityError:
        return AdmissibilityError(
            Diagnostic(
                code="LA786",
                what="this set has infinitely many points",
                where=(here[:200],),
                because=f"the axis {axis} is unbounded",
                witness={"axis": axis, "point": relations.sample(here, self.axes)},
            )
        )


@dataclass(frozen=True, slots=True)
class ParametricCount:
    """A number of points as a function of the parameters: a product of affine functions, or a sum of polynomials.

    Args:
        factors: A layout without inputs whose outputs are the factors, 0 where it is undefined; None for a sum.
        parts: The summands, each with the layout that gives its floors where its guard holds.
        params: All parameters of the set.
    """

    factors: ParametricLayout | None
    parts: tuple[tuple[ParametricLayout, counting.Part], ...]
    params: tuple[str, ...]

    def __call__(self, **values: int) -> int:
        """Return the count at parameter values."""
        known = checked_values(values, self.params, str(self), complete=True)

        def floors(layout: ParametricLayout) -> tuple[int, ...] | None:
            own = {name: value for name, value in known.items() if name in layout.params}
            return layout.at(**own) if layout.contains({}, **own).item() else None

        if self.factors is not None:
            found = floors(self.factors)
            return 0 if found is None else prod(found)
        total = Fraction(0)
        for layout, part in self.parts:
            here = floors(layout)
            if here is not None:
                total += part.value(here, known)
        return int(total)

    def __str__(self) -> str:
        if self.factors is not None:
            return str(self.factors)
        return " + ".join(f"({part})" for _, part in self.parts) or "0"


def checked_values(
    values: Mapping[str, object], params: tuple[str, ...], where: str, complete: bool = False
) -> dict[str, int]:
    """Return parameter values as ints.

    Raises: MalformedError: LA785.
    """
    unknown = sorted(set(values) - set(params))
    missing = [name for name in params if name not in values] if complete else []
    if unknown or missing:
        because = f"the parameters are {list(params)}, not {sorted(values)}"
        witness: dict[str, object] = {"unknown": unknown, "missing": missing}
        raise malformed("LA785", "these are not the parameters", where, because, witness)
    for name, value in values.items():
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            because = f"{name} must be an integer, not {shown(value)}"
            raise malformed("LA785", "a parameter value is no integer", where, because, {name: value})
        if abs(int(value)).bit_length() > VALUE_BITS:
            because = f"{name} must have a magnitude below 2**{VALUE_BITS}"
            raise malformed("LA785", "a parameter value is too large", where, because)
    return {name: int(value) for name, value in values.items()}  # type: ignore[call-overload]


def point_arrays(
    coords: Mapping[str, object], axes: tuple[str, ...], where: str
) -> tuple[list[npt.NDArray[np.int64]], tuple[int, ...]]:
    """Return coordinates as broadcast arrays of int64 or object, and their shape.

    Raises: MalformedError: LA785.
    """
    if not isinstance(coords, Mapping) or set(coords) != set(axes):
        names = sorted(map(shown, coords)) if isinstance(coords, Mapping) else shown(coords)
        raise malformed("LA785", "these are not the axes", where, f"the axes are {list(axes)}, not {names}")
    arrays = []
    for name in axes:
        array = integers(coords[name])
        if array is None:
            because = f"{name} must hold integers, not {shown(coords[name])}"
            raise malformed("LA785", "a coordinate is no integer", where, because)
        arrays.append(array.astype(object) if array.dtype.kind != "i" else array.astype(np.int64))
    try:
        together = np.broadcast_arrays(*arrays) if arrays else []
    except ValueError as error:
        raise malformed("LA785", "the coordinates have different shapes", where, str(error)) from None
    return list(together), np.shape(together[0]) if together else ()


def _pieces(text: str) -> tuple[isl.Piece, ...]:
    """Return the pieces of a map with its parameters as leading inputs; none for an empty map."""
    return () if text.endswith(": false }") else isl.pieces(relations.lifted(text))


def evaluated(
    text: str,
    params: tuple[str, ...],
    values: Mapping[str, int],
    arrays: list[npt.NDArray[np.int64]],
    shape: tuple[int, ...],
    outputs: int,
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
    """Return the outputs of a parametric map at points, and where it is defined."""
    pieces = _pieces(text)
    highest = [abs(values[name]) + 1 for name in params]
    for array in arrays:
        highest.append(max(abs(int(array.min())), abs(int(array.max()))) + 1 if array.size else 1)
    wide = reach(pieces, highest) >= SAFE
    kind = object if wide else np.int64
    full = [np.full(shape, values[name], dtype=kind) for name in params]
    return evaluate(pieces, [*full, *(array.astype(kind) for array in arrays)], shape, outputs, kind)
