"""The core's door to ISL for total functions on a box: texts in, plain Python values out.

Main definitions: ``read_function`` (canonical text of a total function on a box), ``pieces`` (its pieces as plain
numbers), ``first_difference`` (do two maps agree, and where not), ``Form``, ``Region``, ``Piece``.

Implementation notes: every question is asked within ``budget``, and every answer is judged (``confirm``) before it is
used. ``is_bijective`` and ``is_single_valued`` of ISL ignore the codomain: only single-valuedness is taken from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.cache import kept
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.piecewise import confirm, judges, small
from layoutalg.piecewise.budget import exhausted, says, solve, written
from layoutalg.piecewise.clouds import Cloud
from layoutalg.piecewise.confirm import Judged, held, judged, moved, valued
from layoutalg.piecewise.explicit import a_function, a_map, explicit, settled
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read
from layoutalg.piecewise.piece import Form, Piece, Region, pieces

if TYPE_CHECKING:
    import islpy

__all__ = [
    "Compared",
    "Form",
    "Function",
    "Piece",
    "Region",
    "chain",
    "compared",
    "first_difference",
    "left_inverse",
    "pieces",
    "pullback",
    "read_function",
]


@dataclass(frozen=True, slots=True)
class Function:
    """A total function on a box in canonical form.

    Args:
        text: ISL text of the piecewise quasi-affine function.
        inputs: Axes of the box: (name, extent).
        outputs: Names of the outputs.
    """

    text: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[str, ...]


def _not_a_layout(text: str, because: str, witness: dict[str, object] | None = None) -> MalformedError:
    return MalformedError(
        Diagnostic(
            code="LA221",
            what="this ISL map is not a total function on a box",
            where=(text[:200],),
            because=because,
            witness=witness,
        )
    )


def read_function(text: str, operations: int | None = None) -> Function:
    """Read an ISL map and return it as a total function on a box, in canonical text.

    Args:
        text: ISL map text without parameters. Input axes keep the names they have, others become ``c0``, ``c1``, ...
        operations: ISL operation quota; None for time alone.

    Raises: MalformedError: LA220, LA221. BudgetError: LA222, LA793, LA794.
    """
    if "->" not in text.partition("{")[2]:
        raise _not_a_layout(text, "it has no arrow from inputs to outputs")
    return _read_function(text, operations)


@kept(limits.ISL_CACHE_BYTES)
def _read_function(text: str, operations: int | None) -> Function:
    def judge(found: Function) -> None:
        confirm.function_of(found.text, confirm.meant(text))
        judges.total_on(found.text, [extent for _, extent in found.inputs])

    return confirm.plainly(text, lambda plain: solve(text, _function, operations, text, plain), judge)


def _function(context: islpy.Context, text: str, plain: bool) -> Function:
    import islpy

    kinds = islpy.dim_type
    function, relation = _read(context, text)
    if relation.dim(kinds.param):
        raise _not_a_layout(text, f"it has the parameter {relation.get_dim_name(kinds.param, 0)}")
    domain = relation.domain()
    if domain.is_empty() or not domain.is_bounded():
        raise _not_a_layout(text, "its domain is empty or unbounded")
    extents = []
    for position in range(domain.dim(kinds.set)):
        if domain.dim_min_val(position).to_python() != 0:
            raise _not_a_layout(text, f"input {position} does not start at 0")
        extents.append(int(domain.dim_max_val(position).to_python()) + 1)
    space = relation.get_space()
    names = [_name(space, kinds.in_, i, "c") for i in range(len(extents))]
    outputs = [_name(space, kinds.out, i, "y") for i in range(space.dim(kinds.out))]
    if len(set(names)) < len(names) or len(set(outputs)) < len(outputs):
        raise _not_a_layout(text, f"axis names must be distinct, not {names} -> {outputs}")
    bounds = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, n in zip(names, extents, strict=True))])
    box = islpy.Set.read_from_str(context, f"{{ [{', '.join(names)}] : {bounds} }}")
    holes = box.subtract(domain.reset_tuple_id() if domain.has_tuple_id() else domain)
    if not holes.is_empty():
        raise _not_a_layout(text, f"it has no value everywhere in the box {tuple(extents)}", {"at": _point(holes)})
    if function is None:
        if not relation.is_single_valued():
            raise _not_a_layout(text, "it has two values at one point", {"at": _point(_ambiguous(relation))})
        function = a_function(relation)
    for position, name in enumerate(names):
        function = function.set_dim_id(kinds.in_, position, islpy.Id.read_from_str(context, name))
    for kind in (kinds.in_, kinds.out):
        if function.has_tuple_id(kind):
            function = function.reset_tuple_id(kind)
    return Function(settled(function, plain), tuple(zip(names, extents, strict=True)), tuple(outputs))


def _read(context: islpy.Context, text: str) -> tuple[Any, Any]:
    """Return the function of a text, where it is written as one, and its graph."""
    import islpy

    try:
        function = explicit(context, text)
    except MalformedError as error:
        found: Any = (error.diagnostic.witness or {})["at"]
        raise _not_a_layout(text, "it has two values at one point", {"at": tuple(found.values())}) from None
    if function is not None:
        return function, function.as_map()
    try:
        return None, islpy.Map.read_from_str(context, text)
    except islpy.Error as error:
        if exhausted(context):
            raise
        because = f"ISL says: {says(error)}"
        raise MalformedError(
            Diagnostic(code="LA220", what="this is not the text of an ISL map", where=(text[:200],), because=because)
        ) from None


def chain(stages: Sequence[str], domain: str, operations: int | None = None) -> str:
    """Return the text of a chain of functions, the first stage applied first, restricted to a domain.

    Args:
        stages: ISL texts of single-piece functions; each takes what the one before returns.
        domain: ISL text of the set of inputs.
        operations: ISL operation quota; None for time alone.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> chain(["{ [i] -> [3i + 1] }", "{ [v] -> [v - v mod 3] }"], "{ [i] : 0 <= i < 4 }")
        '{ [i] -> [(3i)] : 0 <= i <= 3 }'
    """
    found = solve("a chain of functions", _chain, operations, tuple(stages), domain)

    def judge() -> None:
        inside, steps = read(domain), [read(stage) for stage in stages]

        def wanted(cloud: Cloud) -> confirm.Values:
            covered = held(inside, cloud)
            values = list(cloud.places)
            for step in steps:
                values, defined = valued(step, moved(cloud, values, covered))
                covered = covered & defined
            return values, covered

        confirm.function_like(found, wanted, [confirm.as_inputs(inside)])

    judged("a chain of functions", judge)
    return found


def _chain(context: islpy.Context, stages: Sequence[str], domain: str) -> str:
    import islpy

    total = islpy.PwMultiAff.read_from_str(context, stages[0])
    for stage in stages[1:]:
        total = islpy.PwMultiAff.read_from_str(context, stage).pullback_pw_multi_aff(total)
    return written(total.intersect_domain(islpy.Set.read_from_str(context, domain)).coalesce())


def pullback(outer: str, link: str | None, inner: str, operations: int | None = None) -> str | tuple[int, ...]:
    """Return the text of ``outer`` after ``link`` after ``inner``, or an input that ``outer`` has no value for.

    Args:
        outer: ISL text of a function.
        link: ISL text from the outputs of ``inner`` to the inputs of ``outer``; None where they are the same.
        inner: ISL text of a function; the answer has its domain.
        operations: ISL operation quota; None for time alone.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> pullback("{ [x] -> [2x] : 0 <= x < 9 }", None, "{ [i] -> [3i] : 0 <= i < 3 }")
        '{ [i] -> [(6i)] : 0 <= i <= 2 }'
        >>> pullback("{ [x] -> [2x] : 0 <= x < 6 }", None, "{ [i] -> [3i] : 0 <= i < 3 }")
        (2,)
    """
    found = solve("a composition of two functions", _pullback, operations, outer, link, inner)

    def judge() -> None:
        below, above = read(inner), read(outer)
        middle = None if link is None else read(link)

        def wanted(cloud: Cloud) -> confirm.Values:
            values, covered = valued(below, cloud)
            if middle is not None:
                values, _ = valued(middle, moved(cloud, values, covered))
            values, defined = valued(above, moved(cloud, values, covered))
            return values, covered & defined

        if isinstance(found, str):
            confirm.function_like(found, wanted, [below])
            confirm.no_point(lambda cloud: valued(below, cloud)[1] & ~wanted(cloud)[1], [below], below.inputs)
        else:
            here = confirm.single({}, found)
            if not valued(below, here)[1].all() or wanted(here)[1].any():
                raise confirm.DisagreementError("no point that leaves", {"at": found})

    judged("a composition of two functions", judge)
    return found


def _pullback(context: islpy.Context, outer: str, link: str | None, inner: str) -> str | tuple[int, ...]:
    import islpy

    below, above = (islpy.PwMultiAff.read_from_str(context, text) for text in (inner, outer))
    if link is not None:
        below = islpy.PwMultiAff.read_from_str(context, link).pullback_pw_multi_aff(below)
    outside = below.domain().subtract(above.domain().preimage_pw_multi_aff(below))
    if not outside.is_empty():
        return _point(outside)
    return written(above.pullback_pw_multi_aff(below).coalesce())


def left_inverse(text: str, extents: Sequence[int], operations: int | None = None) -> str:
    """Return the text of the function from values to the flat index of their only input, 0 between the values.

    Args:
        text: ISL text of an injective function with one output, none negative, on the box of ``extents``.
        extents: Extents of the box, fastest first.
        operations: ISL operation quota; None for time alone.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> left_inverse("{ [a] -> [2a] : 0 <= a < 4 }", (4,)).split(";")[0]
        '{ [v] -> [(0)] : (1 + v) mod 2 = 0 and 0 < v <= 5'
    """
    found = solve("the inverse of a function", _left_inverse, operations, text, tuple(extents))
    judged("the inverse of a function", lambda: judges.left_inverse_of(found, read(text), extents))
    return found


def _left_inverse(context: islpy.Context, text: str, extents: Sequence[int]) -> str:
    import islpy

    function = a_map(context, text)
    names = [f"x{position}" for position in range(len(extents))]
    weight, terms = 1, ["0"]
    for name, extent in zip(names, extents, strict=True):
        terms.append(f"{weight}*{name}")
        weight *= extent
    index = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{' + '.join(terms)}] }}")
    inverse = function.reverse().apply_range(index)
    top = int(function.range().dim_max_val(0).to_python())
    rest = islpy.Set.read_from_str(context, f"{{ [v] : 0 <= v <= {top} }}").subtract(inverse.domain())
    zero = islpy.Map.read_from_str(context, "{ [v] -> [0] }").intersect_domain(rest)
    return written(a_function(inverse.union(zero)).coalesce())


def _name(relation: Any, kind: islpy.dim_type, position: int, fallback: str) -> str:
    """Return the name of an axis, or ``fallback`` with the position where it has none."""
    name = relation.get_dim_name(kind, position) if relation.has_dim_name(kind, position) else None
    return name or f"{fallback}{position}"


def _ambiguous(relation: islpy.Map) -> islpy.Set:
    """Return the inputs with more than one value."""
    smallest, largest = relation.lexmin(), relation.lexmax()
    return smallest.subtract(largest).domain()


def _point(points: islpy.Set) -> tuple[int, ...]:
    """Return one point of a set that is not empty."""
    import islpy

    chosen = points.sample_point()
    count = points.dim(islpy.dim_type.set)
    return tuple(int(chosen.get_coordinate_val(islpy.dim_type.set, i).to_python()) for i in range(count))


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether two functions agree: an input where they do not, or None and how that was confirmed."""

    point: tuple[int, ...] | None
    confirmed: str


def first_difference(
    left: str, right: str, links: tuple[str, str] | None = None, operations: int | None = None
) -> tuple[int, ...] | None:
    """Return None where two functions, given as ISL maps, agree; else an input where they differ; see ``compared``.

    Example:
        >>> first_difference("{ [x] -> [2x] : 0 <= x < 4 }", "{ [x] -> [x + x] : 0 <= x < 4 }") is None
        True
        >>> first_difference("{ [x] -> [2x] : 0 <= x < 4 }", "{ [x] -> [2x + floor(x/3)] : 0 <= x < 4 }")
        (3,)
    """
    return compared(left, right, links, operations).point


def compared(left: str, right: str, links: tuple[str, str] | None = None, operations: int | None = None) -> Compared:
    """Compare two functions, given as ISL maps.

    Args:
        left: ISL map, single-valued.
        right: ISL map, single-valued.
        links: Maps from common digits to the inputs of either side, with the same domain; None where the inputs are
            the same already. The answer is a point of the common digits.
        operations: ISL operation quota; None for time alone.

    Returns:
        A point where the functions differ, evaluated there; or none, with the number of points that were compared
        besides. Of sides that give their values by conditions only, nothing is confirmed here: ``confirmed`` is empty.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> compared("{ [x] -> [2x] : 0 <= x < 4 }", "{ [x] -> [x + x] : 0 <= x < 4 }")
        Compared(point=None, confirmed='all 4 points')
    """
    question = "equality of two maps"
    try:
        sides, ties = [read(left), read(right)], [read(link) for link in links or ()]
        near = ties[:1] or sides
        cloud = small.everywhere(near, near[0].inputs)
        if cloud is not None:
            first = small.listed(cloud, _wrong(sides, ties, cloud))
            return Compared(first[0] if first else None, str(Judged(cloud.count, True)))
    except UnreadError:
        return Compared(solve(question, _difference, operations, left, right, links), "")
    point = solve(question, _difference, operations, left, right, links)
    if point is None:
        found: list[Judged] = []

        def judge() -> None:
            found.append(confirm.no_point(lambda cloud: _wrong(sides, ties, cloud), near, near[0].inputs))

        judged(question, judge)
        return Compared(None, str(found[0]))
    if not _wrong(sides, ties, confirm.single({}, point)).all():
        confirm.doubted(question, "no difference", {"at": point})
    return Compared(point, "the point")


def _wrong(sides: Sequence[Meaning], ties: Sequence[Meaning], cloud: Cloud) -> Array:
    """Return where two functions differ, each after its tie if there are ties."""
    found = []
    for place, side in enumerate(sides):
        there, inside = cloud, np.ones(cloud.shape, dtype=bool)
        if ties:
            values, inside = valued(ties[place], cloud)
            there = moved(cloud, values, inside)
        values, defined = confirm.related(side, there)
        found.append((values, defined & inside))
    (first, defined), (second, also) = found
    apart = defined != also
    for a, b in zip(first, second, strict=True):
        apart = apart | (defined & also & np.asarray(a != b, dtype=bool))
    return np.asarray(apart)


def _difference(context: islpy.Context, left: str, right: str, links: tuple[str, str] | None) -> tuple[int, ...] | None:
    import islpy

    found: list[Any] = [explicit(context, text) for text in (left, right, *(links or ()))]
    if any(function is None for function in found):
        return _apart(context, left, right, links)
    first, second, *ties = found
    if ties:
        first, second = first.pullback_pw_multi_aff(ties[0]), second.pullback_pw_multi_aff(ties[1])
    domains = first.domain(), second.domain()
    parts = [domains[0].subtract(domains[1]), domains[1].subtract(domains[0])]
    for position in range(first.dim(islpy.dim_type.out)):
        parts.append(first.get_pw_aff(position).ne_set(second.get_pw_aff(position)))
    return next((_point(part) for part in parts if not part.is_empty()), None)


def _apart(context: islpy.Context, left: str, right: str, links: tuple[str, str] | None) -> tuple[int, ...] | None:
    """Return ``first_difference`` of maps that are not written as functions."""
    import islpy

    first, second = (a_map(context, text) for text in (left, right))
    if links is not None:
        ties = [islpy.Map.read_from_str(context, link) for link in links]
        first, second = ties[0].apply_range(first), ties[1].apply_range(second)
    difference = first.subtract(second)
    if difference.is_empty():
        difference = second.subtract(first)
    return None if difference.is_empty() else _point(difference.domain())
