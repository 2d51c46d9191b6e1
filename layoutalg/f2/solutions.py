"""Equations between linear layouts: all solutions, and named choices among them.

*Solutions.* If ``A @ C0 == B``, the solutions of ``A @ C == B`` are ``C0 xor D`` with D any affine map into the kernel
of the linear part of A: each column of C and its constant vary independently, each in its own coset.

*Staying in place.* For an output axis a of C let ``d(x) = C(x)[a] xor x[a]`` be the displacement, and W the projection
of the kernel onto a. Replacing each column of d (and its constant) by its remainder modulo a reduced basis of W is
linear, so it lifts the map that d induces modulo W. Every solution induces the same map modulo W, so no displacement
has smaller rank, vanishes at more points or has more zero columns. The part of the kernel with zero projection remains
free for the next axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutalg.f2 import matrix
from layoutalg.f2.axes import (
    AxisBits,
    as_names,
    bad_argument,
    field,
    fields,
    misfit,
    move,
    moves,
    packed_point,
    place,
    unpack,
)
from layoutalg.f2.divide import is_trivial_over, quotient
from layoutalg.f2.layout import LinearLayout, bit_name, linear, trusted
from layoutalg.f2.reshape import check_surjective
from layoutalg.ground.check import refuse

OBJECTIVES: Mapping[str, tuple[str, ...]] = {
    "smallest": (),
    "local": ("block", "warp", "lane", "register"),
}
"""Objective -> axes to keep in place, most important first; ties go to the smallest packed values."""


@dataclass(frozen=True, slots=True)
class SolutionSet:
    """All linear layouts C with ``A @ C == B``: a particular solution and the kernel of A.

    Args:
        particular: The solution with the smallest packed columns and constant.
        kernel: Reduced basis of the kernel of A, ascending, as packed points of the output axes of ``particular``.

    Example:
        >>> A = LinearLayout.from_bases({"lane": [(1,), (1,)]}, {"o": 2})
        >>> found = solve(A, LinearLayout.identity({"o": 2}))
        >>> str(found.particular), found.kernel, found.freedom
        ('F2[o=(1) -> lane:4]', (3,), 2)
    """

    particular: LinearLayout
    kernel: tuple[int, ...]

    def __post_init__(self) -> None:
        linear(self.particular, "particular")
        if not isinstance(self.kernel, tuple):
            raise bad_argument("kernel", "must be a tuple of integers", self.kernel)
        for vector in self.kernel:
            if type(vector) is not int or not 0 < vector < 1 << self.particular.out_bits:
                raise bad_argument("kernel", f"must contain integers in [1, 2**{self.particular.out_bits})", vector)
        tops = [1 << vector.bit_length() - 1 for vector in self.kernel]
        seen = sum(set(tops))
        if tops != sorted(set(tops)) or any(
            vector & seen != top for vector, top in zip(self.kernel, tops, strict=True)
        ):
            raise bad_argument("kernel", "must be reduced and ascending", self.kernel)
        for value in (*self.particular.columns, self.particular.constant):
            if value & seen:
                raise bad_argument("particular", "must have the smallest columns and constant", self.particular)

    @property
    def freedom(self) -> int:
        """Number of free bits: there are ``2 ** freedom`` solutions."""
        return len(self.kernel) * (self.particular.in_bits + 1)

    @property
    def is_unique(self) -> bool:
        """Whether there is only one solution."""
        return not self.kernel

    @property
    def directions(self) -> tuple[dict[str, int], ...]:
        """The kernel basis by axis name."""
        return tuple(unpack(vector, self.particular.out_axes) for vector in self.kernel)

    def contains(self, candidate: LinearLayout) -> bool:
        """Whether ``candidate`` is one of the solutions."""
        linear(candidate, "candidate")
        one = self.particular
        if candidate.in_axes != one.in_axes or candidate.out_axes != one.out_axes:
            return False
        values = zip((*candidate.columns, candidate.constant), (*one.columns, one.constant), strict=True)
        return all(matrix.remainder(self.kernel, value) == least for value, least in values)

    def choose(self, objective: str | Sequence[str] = "smallest") -> LinearLayout:
        """Return the best solution for an objective.

        Mathematically: for each axis of the objective in turn, among the remaining solutions, the displacement
        ``C(x)[axis] xor x[axis]`` (``C(x)[axis]`` if C has no such input) has the smallest rank, the most zeros and the
        fewest nonzero columns; then the smallest packed values are chosen. This is exact for the first axis, and for
        each further one if the axes before it stay in place.

        Args:
            objective: ``"smallest"``; ``"local"`` keeps block, warp, lane, register in place, in this order of
                priority, ignoring axes that C lacks; or a sequence of output axes of C.

        Example:
            >>> A = LinearLayout.from_bases({"lane": [(1,)], "warp": [(1,)]}, {"o": 2})
            >>> B = LinearLayout.from_bases({"lane": [(0,)], "warp": [(1,)]}, {"o": 2})
            >>> [str(solve(A, B).choose(way)) for way in ("smallest", "local")]
            ['F2[lane=(0,0), warp=(1,0) -> lane:2, warp:2]', 'F2[lane=(0,0), warp=(0,1) -> lane:2, warp:2]']
        """
        if isinstance(objective, str):
            if objective not in OBJECTIVES:
                raise bad_argument(
                    "objective", f"must be one of {sorted(OBJECTIVES)}, or a sequence of axes", objective
                )
            known = dict(self.particular.out_axes)
            return self._keep_in_place([name for name in OBJECTIVES[objective] if name in known])
        order = as_names(objective, "objective", ordered=True)
        for name in order:
            place(self.particular.out_axes, name, "objective")
        return self._keep_in_place(order)

    def _keep_in_place(self, order: Sequence[str]) -> LinearLayout:
        one = self.particular
        if not self.kernel or not order:
            return one
        values = [*one.columns, one.constant]
        kernel: Sequence[int] = self.kernel
        for name in order:
            where = place(one.out_axes, name, "objective")
            wanted = [*_targets(one.in_axes, name, where[1]), 0]
            reduced = matrix.eliminate([field(vector, where) for vector in kernel])
            for index, value in enumerate(values):
                used = reduced.reduce(field(value, where) ^ wanted[index])[1]
                values[index] = value ^ matrix.apply(kernel, used)
            kernel = [matrix.apply(kernel, null) for null in reduced.null]
        # a null set is one vector plus earlier ones, and no step uses that vector: the rest of the kernel is again
        # ascending and reduced, and the values are still smallest modulo it
        return trusted(one.in_axes, one.out_axes, tuple(values[:-1]), values[-1])


def _targets(inputs: AxisBits, name: str, bits: int) -> list[int]:
    """Return, per input bit, the value of output axis ``name`` that equals the input coordinate."""
    answer = []
    for axis, _, count in fields(inputs):
        answer += [1 << bit if axis == name and bit < bits else 0 for bit in range(count)]
    return answer


def solve(outer: LinearLayout, target: LinearLayout) -> SolutionSet:
    """Return all C with ``outer @ C == target``.

    C maps the input axes of ``target`` to those of ``outer``; output axes are matched by name.

    Args:
        outer: Need not be injective or surjective.
        target: The same output axes, none larger than in ``outer``.

    Complexity: one elimination of ``outer`` (cached) and O(bits) integer operations per input bit of ``target``.

    Example:
        >>> A = LinearLayout.from_bases({"lane": [(2,), (1,)]}, {"o": 4})
        >>> str(solve(A, LinearLayout.identity({"o": 4})).particular)
        'F2[o=(2)(1) -> lane:4]'

    Source: arXiv 2505.23819 (conversion maps), extended by the full solution set and the affine part.
    """
    linear(outer, "outer")
    linear(target, "target")
    columns, constant = target.columns, target.constant
    if target.out_axes != outer.out_axes:
        columns, constant = _align_outputs(outer, target)
    reduced = matrix.eliminate(outer.columns)
    answer: list[int] = []
    constant ^= outer.constant
    count, lookup = reduced.column_count, reduced.rows.get
    for index, value in enumerate((*columns, constant)):  # as ``reduced.reduce``, without its calls
        row = value << count
        while (length := row.bit_length()) > count:
            pivot = lookup(length)
            if pivot is None:
                raise _not_contained(outer, target, index, value, constant)
            row ^= pivot
        answer.append(row)
    # each kernel set has its own highest column and otherwise only pivot columns, so it is already reduced
    particular = trusted(target.in_axes, outer.in_axes, tuple(answer[:-1]), answer[-1])
    return _solutions(particular, reduced.null)


def _solutions(particular: LinearLayout, kernel: tuple[int, ...]) -> SolutionSet:
    """Return a solution set with fields that are valid by construction, unchecked."""
    found = object.__new__(SolutionSet)
    object.__setattr__(found, "particular", particular)
    object.__setattr__(found, "kernel", kernel)
    return found


def _align_outputs(outer: LinearLayout, target: LinearLayout) -> tuple[tuple[int, ...], int]:
    """Return the columns and the constant of ``target`` packed as in ``outer``."""
    name = misfit(outer.out_axes, target.out_axes)
    if name is not None:
        sizes = outer.out_dims.get(name), target.out_dims.get(name)
        because = f"output axis {name!r} has size {sizes[0]} in the outer layout and {sizes[1]} in the target"
        witness = {"axis": name, "outer": sizes[0], "target": sizes[1]}
        raise refuse("LA243", "the layouts have no common codomain", because, witness, outer, target)
    along = moves(target.out_axes, outer.out_axes)
    return tuple(move(column, along) for column in target.columns), move(target.constant, along)


def _not_contained(outer: LinearLayout, target: LinearLayout, index: int, value: int, origin: int) -> Exception:
    """Return the error for a basis vector (or the affine part) outside the image of ``outer``.

    The witness is that single input bit if the value at the origin is in the image, else the origin.
    """
    origin_ok = matrix.eliminate(outer.columns).reduce(origin)[0] == 0
    at = 1 << index if origin_ok and index < target.in_bits else 0
    name = "the affine part" if index == target.in_bits else f"the image of {bit_name(target, index)}"
    because = f"{name} is not in the image of the outer layout"
    witness = {
        "input": unpack(at, target.in_axes),
        "value": unpack(target.at(at), target.out_axes),
        "basis_vector": unpack(value, outer.out_axes),
    }
    what = "the target takes values that the outer layout does not take"
    return refuse("LA244", what, because, witness, outer, target)


def solve_outer(inner: LinearLayout, target: LinearLayout) -> LinearLayout:
    """Return an X with ``X @ inner == target``, where ``inner`` need not be invertible.

    Mathematically: X exists exactly when the kernel of ``inner`` is contained in that of ``target``. It is determined
    on the image of ``inner``; the returned one maps the unit vectors outside the pivots to 0.

    Args:
        target: Must have the same input axes.

    Example:
        >>> A = LinearLayout.from_bases({"i": [(1,), (1,)]}, {"x": 2})
        >>> B = LinearLayout.from_bases({"i": [(2,), (2,)]}, {"y": 4}, (1,))
        >>> X = solve_outer(A, B)
        >>> X.columns, X.constant, (X @ A) == B
        ((2,), 1, True)
    """
    linear(inner, "inner")
    if linear(target, "target").in_axes != inner.in_axes:
        because = f"the input axes are {inner.in_dims} and {target.in_dims}"
        witness: dict[str, object] = {"inner": inner.in_dims, "target": target.in_dims}
        raise refuse("LA751", "a conversion needs two layouts with equal input axes", because, witness, inner, target)
    reduced = matrix.eliminate(inner.columns)
    columns, values = [0] * inner.out_bits, target.columns
    for null in reduced.null:
        if matrix.apply(values, null):
            because = "two inputs share a value in the inner layout but not in the target"
            witness = {"first": 0, "second": null, "left": inner.at(0), "right": (target.at(0), target.at(null))}
            what = "the conversion equation has no solution"
            raise refuse("LA757", what, because, witness, f"X o {inner}", f"= {target}")
    for vector, used in reduced.pivots:
        columns[vector.bit_length() - 1] = matrix.apply(values, used)
    constant = target.constant ^ matrix.apply(columns, inner.constant)
    return trusted(inner.out_axes, target.out_axes, tuple(columns), constant)


def invert_and_compose(
    target: LinearLayout, outer: LinearLayout, objective: str | Sequence[str] = "smallest"
) -> LinearLayout:
    """Return ``solve(outer, target).choose(objective)``: where ``outer`` has the element of ``target`` at x.

    Example:
        >>> swap = LinearLayout.from_bases({"i": [(2,), (1,)]}, {"o": 4})
        >>> str(invert_and_compose(swap, LinearLayout.identity({"o": 4})))
        'F2[i=(2)(1) -> o:4]'
    """
    return solve(outer, target).choose(objective)


def preimages(
    layout: LinearLayout, point: Mapping[str, int] | int
) -> tuple[dict[str, int], tuple[dict[str, int], ...]]:
    """Return all inputs with a given value: the smallest one and a basis of the differences.

    Args:
        point: The value, per output axis or packed.

    Example:
        >>> preimages(LinearLayout.from_bases({"i": [(1,), (1,)]}, {"o": 2}), {"o": 1})
        ({'i': 1}, ({'i': 3},))
    """
    packed = packed_point(linear(layout, "layout").out_axes, point, "point", complete=True, flat=True)
    reduced = matrix.eliminate(layout.columns)
    rest, used = reduced.reduce(packed ^ layout.constant)
    if rest:
        value = unpack(packed, layout.out_axes)
        raise refuse(
            "LA244", "the layout does not take this value", f"{value} is not reached", {"value": value}, layout
        )
    return unpack(used, layout.in_axes), tuple(unpack(vector, layout.in_axes) for vector in reduced.null)


def minimal_conversion(source: LinearLayout, destination: LinearLayout) -> LinearLayout:
    """Return where each element of ``destination`` is found in ``source``, without the axes that stay in place.

    Mathematically: the C with ``source @ C == destination`` that keeps block, warp, lane and register in place as far
    as possible (``"local"``), then its quotient by block, warp, lane, register, in this order, up to the first that
    moves. No axes left means no data movement, only register left means moves within a lane, lane left means moves
    between lanes, and so on.

    Args:
        source: Present layout of the values.
        destination: Required layout, over the same output axes.

    Example:
        >>> one = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,)], "warp": [(4,)]}, {"o": 8})
        >>> two = LinearLayout.from_bases({"register": [(2,)], "lane": [(1,)], "warp": [(4,)]}, {"o": 8})
        >>> str(minimal_conversion(one, two))
        'F2[register=(0,1), lane=(1,0) -> register:2, lane:2]'
    """
    linear(source, "source")
    linear(destination, "destination")
    answer = solve(source, destination).choose("local")
    for name in OBJECTIVES["local"]:
        if name not in dict(answer.in_axes) and name not in dict(answer.out_axes):
            continue
        if not is_trivial_over(answer, name):
            break
        answer = quotient(answer, name)
    return answer


def right_inverse(layout: LinearLayout, objective: str | Sequence[str] = "smallest") -> LinearLayout:
    """Return R with ``layout @ R == identity``, for a surjective layout; ``objective`` as in ``SolutionSet.choose``.

    Example:
        >>> str(right_inverse(LinearLayout.from_bases({"i": [(1,), (1,), (2,)]}, {"o": 4})))
        'F2[o=(1)(4) -> i:8]'
    """
    linear(layout, "layout")
    check_surjective(layout)
    bits = layout.out_bits
    one = trusted(layout.out_axes, layout.out_axes, tuple(1 << bit for bit in range(bits)), 0)
    return solve(layout, one).choose(objective)


def left_inverse(layout: LinearLayout) -> LinearLayout:
    """Return L with ``L @ layout == identity``, for an injective layout.

    Mathematically: L inverts the layout on its image and maps the unit vectors outside the pivot rows to 0.

    Example:
        >>> str(left_inverse(LinearLayout.from_bases({"i": [(2,)]}, {"o": 4})))
        'F2[o=(0)(1) -> i:2]'
    """
    linear(layout, "layout")
    reduced = matrix.eliminate(layout.columns)
    if reduced.null:
        because = f"rank {reduced.rank} is less than the {layout.in_bits} input bits"
        witness = {"kernel": unpack(reduced.null[0], layout.in_axes)}
        raise refuse("LA246", "the linear layout is not injective", because, witness, layout)
    columns = tuple(reduced.reduce(1 << bit)[1] for bit in range(layout.out_bits))
    return trusted(layout.out_axes, layout.in_axes, columns, matrix.apply(columns, layout.constant))


def free_variable_masks(layout: LinearLayout) -> dict[str, int]:
    """Return the redundant bits per input axis: with them at 0 the layout takes the same values, once each.

    Mathematically: bit j is redundant exactly when column j depends linearly on the columns before it.

    Example:
        >>> free_variable_masks(LinearLayout.from_bases({"reg": [(1,), (1,)], "lane": [(2,)]}, {"o": 4}))
        {'reg': 2, 'lane': 0}
    """
    linear(layout, "layout")
    packed = sum(1 << null.bit_length() - 1 for null in matrix.eliminate(layout.columns).null)
    return unpack(packed, layout.in_axes)
