"""Hierarchical layouts: exact bijections between named boxes, whole or guarded.

Main definitions: ``HierarchicalLayout``, ``Guard``, ``solve_conversion``, ``solve_linear``.

Notation: ``register 2:1, lane (4,2):(8,2) -> row:4, col:4`` lists, for every axis of the source, its digits as
extents:strides into the flat index of the target; a trailing ``-`` marks a reversed digit. Maps over F2 and tables, and
digits that straddle two axes, print as such.

Main statements: the value is canonical (digits before bits before table), so on equal boxes two layouts without guards
are the same function exactly when they are equal.

Implementation notes: a partial tile is a bijection of the padded boxes with guards. A guard says that the image of the
source under a bijection stays inside bounds, so guards survive composition and inversion exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.errors import AdmissibilityError, Diagnostic
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import BitMap, DigitMap, TableMap
from layoutalg.hierarchy.levels import Box, block_size, integer, malformed, same_levels

Bijection: TypeAlias = maps.Bijection


@dataclass(frozen=True, slots=True)
class Guard:
    """A predicate on the points of a box: their image under ``map`` stays inside ``bounds`` of another box.

    Args:
        map: Bijection from the flat index of the guarded box to that of ``box``.
        box: The box of the images.
        bounds: Per axis of ``box``, the number of allowed coordinates, from 0 to the extent.

    Raises:
        MalformedError: LA750, with the argument, the rule and the value.
    """

    map: Bijection
    box: Box
    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.map, DigitMap | BitMap | TableMap) or not isinstance(self.box, Box):
            raise malformed("guard", "must be a bijection and a box", (self.map, self.box))
        if self.map.size != self.box.size:
            raise malformed("guard.map", f"must have the {self.box.size} points of its box", self.map.size)
        if not isinstance(self.bounds, tuple) or len(self.bounds) != len(self.box.axes):
            raise malformed("guard.bounds", f"must be a tuple of {len(self.box.axes)} integers", self.bounds)
        bounds = tuple(
            integer(bound, f"bounds[{name!r}]", 0, extent + 1)
            for bound, (name, extent) in zip(self.bounds, self.box.axes, strict=True)
        )
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "map", maps.canonical(self.map))

    @property
    def count(self) -> int:
        """Number of points that satisfy the predicate."""
        answer = 1
        for bound in self.bounds:
            answer *= bound
        return answer

    def holds(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return the predicate at an array of flat indices, each inside the guarded box."""
        rest = self.map.apply(index)
        inside = np.ones(index.shape, dtype=bool)
        for bound, (_, extent) in zip(self.bounds, self.box.axes, strict=True):
            rest, coordinate = np.divmod(rest, extent)
            inside &= coordinate < bound
        return inside

    def holds_at(self, index: int) -> bool:
        """Return the predicate at one flat index inside the guarded box."""
        coordinates = self.box.point(self.map.at(index)).values()
        return all(value < bound for value, bound in zip(coordinates, self.bounds, strict=True))


@dataclass(frozen=True, slots=True)
class HierarchicalLayout:
    """A bijection between two named boxes, held in a normal form of digits, bits or a table; partial where guarded.

    Mathematically: a bijection ``map`` of [0, N) read through the colexicographic flat indices of both boxes,
    restricted to the points that satisfy every guard. When the source is a box of levels, blocks of a cut with B points
    and N / B blocks, the bijections that keep blocks together are the wreath product S_B wr S_(N/B); ``membership``
    tests for it and ``normal_form`` writes such an element as (f; h).

    Args:
        source: Box of the coordinates.
        target: Box of the values, of the same size.
        map: The bijection of flat indices; kept canonical.
        guards: Predicates on the source. Kept without those that always hold, those of one map joined, sorted.

    Raises:
        MalformedError: LA750, with the argument, the rule and the value.

    Example:
        >>> threads = HierarchicalLayout(Box.of(register=2, lane=8), Box.of(row=4, col=4), DigitMap(((2, 1), (8, 2))))
        >>> threads(register=1, lane=3), str(threads)
        ({'row': 3, 'col': 1}, 'register 2:1, lane 8:2 -> row:4, col:4')
        >>> (threads @ threads.inverse()).map
        DigitMap(modes=((16, 1),))

    Source: LEGO, arXiv 2505.08091 (group, order, tile, user bijections); wreath products are classical.
    """

    source: Box
    target: Box
    map: Bijection
    guards: tuple[Guard, ...] = ()

    def __post_init__(self) -> None:
        for argument, box in (("source", self.source), ("target", self.target)):
            if not isinstance(box, Box):
                raise malformed(argument, "must be a Box", box)
        if not isinstance(self.map, DigitMap | BitMap | TableMap):
            raise malformed("map", "must be a DigitMap, a BitMap or a TableMap", self.map)
        if self.source.size != self.target.size:
            rule = f"must have the {self.source.size} points of the source"
            raise malformed("target", rule, f"{self.target} with {self.target.size}")
        if self.map.size != self.source.size:
            raise malformed("map", f"must have the {self.source.size} points of the source", self.map.size)
        if not isinstance(self.guards, tuple) or not all(isinstance(guard, Guard) for guard in self.guards):
            raise malformed("guards", "must be a tuple of Guard", self.guards)
        bounds: dict[tuple[Bijection, Box], tuple[int, ...]] = {}
        for guard in self.guards:
            if guard.map.size != self.source.size:
                raise malformed("guards", f"must speak of the {self.source.size} points of the source", guard.map.size)
            key = (guard.map, guard.box)
            known = bounds.get(key, guard.bounds)
            bounds[key] = tuple(min(pair) for pair in zip(known, guard.bounds, strict=True))
        kept = [Guard(*key, limit) for key, limit in bounds.items() if limit != tuple(e for _, e in key[1].axes)]
        object.__setattr__(self, "map", maps.canonical(self.map))
        object.__setattr__(self, "guards", tuple(sorted(kept, key=repr)))

    @property
    def size(self) -> int:
        """Number of points of either box, guards aside."""
        return self.source.size

    @property
    def is_total(self) -> bool:
        """No guard restricts the layout."""
        return not self.guards

    @property
    def is_identity(self) -> bool:
        """Total, and every flat index is its own image."""
        return self.is_total and self.map == maps.identity(self.size)

    def __call__(self, **point: int) -> dict[str, int]:
        """Evaluate at one point, axes by name.

        Raises:
            MalformedError: LA750, a missing or unknown axis or a coordinate outside its axis; AdmissibilityError:
                LA753, the point is outside a guard.
        """
        return self.target.point(self.at(self.source.flat(point)))

    def at(self, index: int) -> int:
        """Return the flat value at a flat index.

        Raises:
            MalformedError: LA750, not an integer in [0, size); AdmissibilityError: LA753, outside a guard.
        """
        index = integer(index, "index", 0, self.size)
        for guard in self.guards:
            if not guard.holds_at(index):
                raise AdmissibilityError(
                    Diagnostic(
                        code="LA753",
                        what="the point is outside the partial tile",
                        where=(str(self),),
                        because=f"it lands on {guard.box.point(guard.map.at(index))}, the bounds are "
                        f"{dict(zip(guard.box.names, guard.bounds, strict=True))}",
                        witness=dict(self.source.point(index)),
                    )
                )
        return self.map.at(index)

    def holds(self, index: int) -> bool:
        """Return whether a flat index satisfies every guard.

        Raises:
            MalformedError: LA750, not an integer in [0, size).
        """
        index = integer(index, "index", 0, self.size)
        return all(guard.holds_at(index) for guard in self.guards)

    def apply(self, index: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the flat values at an array of flat indices, -1 where a guard excludes the point.

        Raises:
            MalformedError: LA750, not integers in [0, size), or a box of 2**62 points or more.
        """
        array = np.asarray(index)
        if array.dtype.kind not in "iu":
            raise malformed("index", "must be an array of integers", array.dtype)
        if self.size > maps.ARRAY_LIMIT:
            raise malformed("index", "arrays serve boxes below 2**62 points", self.size)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= self.size):
            worst = int(array.min()) if int(array.min()) < 0 else int(array.max())
            raise malformed("index", f"must be in [0, {self.size})", worst)
        array = array.astype(np.int64)
        values = self.map.apply(array)
        for guard in self.guards:
            values = np.where(guard.holds(array), values, -1)
        return values

    def table(self) -> npt.NDArray[np.int64]:
        """Return the flat values at 0, 1, ..., size - 1, -1 where a guard excludes the point.

        Raises:
            BudgetError: LA754, more than 2**20 points.
        """
        maps.check_points(self.size, "the table of a hierarchical layout")
        return self.apply(np.arange(self.size, dtype=np.int64))

    def active(self) -> int:
        """Return the number of points that satisfy every guard.

        Raises:
            BudgetError: LA754, several guards on more than 2**20 points.
        """
        if len(self.guards) <= 1:
            return self.guards[0].count if self.guards else self.size
        return int((self.table() >= 0).sum())

    def __matmul__(self, inner: HierarchicalLayout) -> HierarchicalLayout:
        """Return ``self`` after ``inner``; defined where both are.

        Raises:
            AdmissibilityError: LA751, the target of ``inner`` is not the source of ``self`` (read one of them with
                other axes first: ``regroup``); BudgetError: LA754, see ``bijection.compose``.
        """
        if not isinstance(inner, HierarchicalLayout):
            return NotImplemented
        if inner.target != self.source:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA751",
                    what="the layouts do not compose",
                    where=(str(self), f"after {inner}"),
                    because=f"the inner one ends in ({inner.target}), the outer one starts from ({self.source})",
                    witness={"inner": inner.target.dims, "outer": self.source.dims},
                )
            )
        moved = tuple(Guard(maps.compose(g.map, inner.map), g.box, g.bounds) for g in self.guards)
        guards = (*inner.guards, *moved)
        return HierarchicalLayout(inner.source, self.target, maps.compose(self.map, inner.map), guards)

    def then(self, outer: HierarchicalLayout) -> HierarchicalLayout:
        """Return ``outer`` after ``self``."""
        return outer @ self

    def inverse(self) -> HierarchicalLayout:
        """Return the inverse, guarded to the image of the guarded points; always exact."""
        back = maps.inverse(self.map)
        guards = tuple(Guard(maps.compose(g.map, back), g.box, g.bounds) for g in self.guards)
        return HierarchicalLayout(self.target, self.source, back, guards)

    def __invert__(self) -> HierarchicalLayout:
        """Return ``inverse()``."""
        return self.inverse()

    def digits(self) -> dict[str, maps.Modes] | None:
        """Return the normal form by axis: for every source axis its digits as (extent, stride into the flat target).

        None where the map is no digit permutation or a digit straddles two axes without dividing.

        Example:
            >>> HierarchicalLayout(Box.of(lane=4, warp=2), Box.of(x=8), DigitMap(((2, 1), (4, 2)))).digits()
            {'lane': ((4, 1),), 'warp': ((2, 4),)}
        """
        if not isinstance(self.map, DigitMap):
            return None
        starts = [self.source.stride(name) for name in self.source.names]
        pieces = maps.split_at(self.map.modes, starts, ())
        if pieces is None:
            return None
        answer: dict[str, maps.Modes] = {}
        rest = list(pieces)
        for name, extent in self.source.axes:
            taken: list[tuple[int, int]] = []
            covered = 1
            while covered < extent:
                taken.append(rest.pop(0))
                covered *= taken[-1][0]
            answer[name] = maps.coalesce(taken)
        return answer

    def __str__(self) -> str:
        by_axis = self.digits()
        if by_axis is not None:
            head = ", ".join(f"{name} {_modes_text(modes)}" for name, modes in by_axis.items())
        elif isinstance(self.map, DigitMap):
            head = f"[{self.source}] {_modes_text(self.map.modes)}"
        elif isinstance(self.map, BitMap):
            constant = f"^{self.map.constant}" if self.map.constant else ""
            head = f"[{self.source}] F2{{{','.join(map(str, self.map.columns))}}}{constant}"
        else:
            shown = ",".join(map(str, self.map.values[:16]))
            head = f"[{self.source}] table {shown}{',...' if self.size > 16 else ''}"
        tail = "".join(f" | {_guard_text(guard)}" for guard in self.guards)
        return f"{head} -> {self.target}{tail}"


def _modes_text(modes: maps.Modes) -> str:
    def join(values: list[str]) -> str:
        return values[0] if len(values) == 1 else f"({','.join(values)})"

    if not modes:
        return "1:0"
    return f"{join([str(extent) for extent, _ in modes])}:{join([str(stride) for _, stride in modes])}"


def _guard_text(guard: Guard) -> str:
    parts = [
        f"{name}<{bound}" for bound, (name, extent) in zip(guard.bounds, guard.box.axes, strict=True) if bound != extent
    ]
    return " and ".join(parts)


def solve_conversion(
    before: HierarchicalLayout, after: HierarchicalLayout, *, within: str | None = None
) -> HierarchicalLayout:
    """Return X with ``X @ before`` equal to ``after``: the only bijection there is.

    Args:
        before: A, from some box.
        after: B, from the same box. Guards must be the same on both sides, and then hold for X's source.
        within: A cut such as ``"lane|warp"``: X may then move data only inside the blocks of that cut, so that the
            levels above it keep their coordinates; both targets must then be the same box of levels.

    Raises:
        AdmissibilityError: LA751, the sources differ; LA756, ``within`` without equal boxes of levels; LA757, no
            solution: the guards differ, or X moves a point to another block (the witness is that point and its image).
        BudgetError: LA754, see ``bijection.compose``.

    Example:
        >>> rows = HierarchicalLayout(Box.of(i=2, j=3), Box.of(x=6), DigitMap(((2, 3), (3, 1))))
        >>> cols = HierarchicalLayout(Box.of(i=2, j=3), Box.of(x=6), DigitMap(((6, 1),)))
        >>> X = solve_conversion(rows, cols)
        >>> X @ rows == cols, X.map.modes
        (True, ((3, 2), (2, 1)))
    """
    if before.source != after.source:
        raise AdmissibilityError(
            Diagnostic(
                code="LA751",
                what="a conversion needs two layouts of one box",
                where=(str(before), str(after)),
                because=f"one starts from ({before.source}), the other from ({after.source})",
                witness={"before": before.source.dims, "after": after.source.dims},
            )
        )
    if before.guards != after.guards:
        _same_active(before, after)
    back = maps.inverse(before.map)
    guards = tuple(Guard(maps.compose(g.map, back), g.box, g.bounds) for g in before.guards)
    answer = HierarchicalLayout(before.target, after.target, maps.compose(after.map, back), guards)
    if within is not None:
        from layoutalg.hierarchy.membership import moved_point

        same_levels(before.target, after.target, (f"solve_conversion(within={within!r})",))
        point = moved_point(answer, block_size(before.target, within))
        if point is not None:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA757",
                    what=f"no conversion stays inside the blocks of {within}",
                    where=(f"X o ({before})", f"= {after}"),
                    because="the only solution moves a value to another block",
                    witness={"from": answer.source.point(point), "to": answer.target.point(answer.map.at(point))},
                )
            )
    return answer


def _same_active(before: HierarchicalLayout, after: HierarchicalLayout) -> None:
    """Refuse two layouts of one box that are not defined at the same points."""
    differs = np.flatnonzero((before.table() >= 0) != (after.table() >= 0))
    if len(differs):
        raise AdmissibilityError(
            Diagnostic(
                code="LA757",
                what="the conversion equation has no solution",
                where=(f"X o ({before})", f"= {after}"),
                because="one side is defined at a point where the other is not",
                witness=dict(before.source.point(int(differs[0]))),
            )
        )


def solve_linear(before: LinearLayout, after: LinearLayout) -> LinearLayout:
    """Return an affine X over F2 with ``X @ before`` equal to ``after``, where ``before`` need not be invertible.

    Mathematically: X exists exactly when the kernel of ``before`` lies in that of ``after``. On the image of ``before``
    it is determined up to the constants; the returned one is zero on the unit vectors outside the pivots.

    Args:
        before: A, over the same input axes as ``after``.
        after: B.

    Raises:
        AdmissibilityError: LA751, the input axes differ; LA757, two inputs share an output of A but not of B.

    Example:
        >>> A = LinearLayout.from_bases({"i": [(1,), (1,)]}, {"x": 2})
        >>> B = LinearLayout.from_bases({"i": [(2,), (2,)]}, {"y": 4}, (1,))
        >>> X = solve_linear(A, B)
        >>> X.columns, X.constant, (X @ A) == B
        ((2,), 1, True)
    """
    if before.inputs != after.inputs:
        raise AdmissibilityError(
            Diagnostic(
                code="LA751",
                what="a conversion needs two layouts of one box",
                where=(str(before), str(after)),
                because=f"one starts from {before.in_dims}, the other from {after.in_dims}",
                witness={"before": before.in_dims, "after": after.in_dims},
            )
        )
    reduced = matrix.eliminate(before.columns)
    for null in reduced.null:
        if matrix.apply(after.columns, null):
            raise AdmissibilityError(
                Diagnostic(
                    code="LA757",
                    what="the conversion equation has no solution",
                    where=(f"X o {before}", f"= {after}"),
                    because="two inputs share an output on the left but not on the right",
                    witness={
                        "first": 0,
                        "second": null,
                        "left": before.at(0),
                        "right": (after.at(0), after.at(null)),
                    },
                )
            )
    columns = [0] * before.out_bits
    for vector, used in reduced.pivots:
        columns[vector.bit_length() - 1] = matrix.apply(after.columns, used)
    constant = after.constant ^ matrix.apply(columns, before.constant)
    return LinearLayout(before.outputs, after.outputs, tuple(columns), constant)
