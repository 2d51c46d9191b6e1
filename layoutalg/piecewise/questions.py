"""Questions to ISL about values: ISL objects and plain numbers out, not confirmed here; see ``value.answer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.ground.errors import BudgetError
from layoutalg.ground.lazy import later
from layoutalg.piecewise.budget import exhausted, renew, written
from layoutalg.piecewise.reading import Point, Witness, a_map, a_set, function_of, joined, pairs, sampled
from layoutalg.piecewise.value import EMPTY, Value, held

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")


FLOORS = 4
"""Floors of a part of a relation up to which its inverse is not read again from its text."""

# functions


def union(context: islpy.Context, left: Value, right: Value) -> Any:
    return joined(held(context, left), held(context, right), f"{left.told()} union {right.told()}")


def intersect(context: islpy.Context, left: Value, right: Value) -> Any:
    agreed = a_map(context, left).intersect(a_map(context, right)).domain()
    return held(context, left).intersect_domain(agreed)


def restrict(context: islpy.Context, function: Value, points: Value, outside: bool = False) -> Any:
    held_function, inside = held(context, function), held(context, points)
    return held_function.subtract_domain(inside) if outside else held_function.intersect_domain(inside)


def within(context: islpy.Context, function: Value, values: Value) -> Any:
    found = held(context, function)
    return found.intersect_domain(held(context, values).preimage_pw_multi_aff(found))


def after(context: islpy.Context, outer: Value, inner: Value) -> Any:
    return held(context, outer).pullback_pw_multi_aff(held(context, inner))


def composed(context: islpy.Context, *steps: Value) -> Any:
    """Return a chain of functions, first one first; or parameter values and a point of the first one outside it."""
    below = total = held(context, steps[0])
    for step in steps[1:]:
        total = held(context, step).pullback_pw_multi_aff(total)
    outside = below.domain().subtract(total.domain())
    return total if outside.is_empty() else sampled(outside)


def chain(context: islpy.Context, points: str, *stages: str) -> Any:
    """Return a chain of one-piece functions in user's text, first one first, on the points of a set."""
    total = islpy.PwMultiAff.read_from_str(context, stages[0])
    for stage in stages[1:]:
        total = islpy.PwMultiAff.read_from_str(context, stage).pullback_pw_multi_aff(total)
    return total.intersect_domain(a_set(context, points))


def substitute(context: islpy.Context, value: Value, values: Mapping[str, int]) -> Any:
    """Return a function or set with numbers for some parameters.

    The parameters of a function become inputs, and numbers are put into these.
    """
    if value.is_set:
        return _fixed(held(context, value), values)
    if value.text.endswith(EMPTY):
        return _fixed(islpy.Map.read_from_str(context, value.text), values)
    params, axes = value.params, value.axes
    free = [name for name in params if name not in values]
    entries = [str(values.get(name, name)) for name in params]
    inner = f"[{', '.join(free)}] -> {{ [{', '.join(axes)}] -> [{', '.join([*entries, *axes])}] }}"
    outer = islpy.PwMultiAff.read_from_str(context, lifted(value.text, params))
    return outer.pullback_pw_multi_aff(islpy.PwMultiAff.read_from_str(context, inner))


def lifted(text: str, params: Sequence[str]) -> str:
    """Return the canonical text of a function with its parameters as leading inputs.

    Example:
        >>> lifted("[N] -> { [i] -> [(i)] : 0 <= i < N; [i] -> [(N)] : i >= N }", ["N"])
        '{ [N, i] -> [(i)] : 0 <= i < N; [N, i] -> [(N)] : i >= N }'
    """
    parts = []
    for piece in text.partition("{")[2].rpartition("}")[0].split(";"):
        axes, _, rest = piece.strip().partition("]")
        inside = axes.strip("[ ")
        parts.append(f"[{', '.join([*params, *([inside] if inside else [])])}]{rest.rstrip()}")
    return f"{{ {'; '.join(parts)} }}"


def domain(context: islpy.Context, function: Value) -> Any:
    return held(context, function).domain()


def image(context: islpy.Context, function: Value) -> Any:
    return _printed(a_map(context, function).range())


def _printed(points: islpy.Set) -> islpy.Set:
    """Return a set through its text, in which ISL names the axes that have no names."""
    return a_set(points.get_ctx(), written(points))


def collision(context: islpy.Context, function: Value) -> Witness | None:
    relation, axes = a_map(context, function), function.axes
    if relation.is_injective():
        return None
    params, found = sampled(pairs(relation.reverse()))
    width, size = relation.dim(islpy.dim_type.out), len(axes)
    first, second = found[width : width + size], found[width + size :]
    points = (dict(zip(axes, first, strict=True)), dict(zip(axes, second, strict=True)))
    return {"params": params, "points": points, "value": found[:width]}


def difference(context: islpy.Context, left: Value, right: Value, *ties: Value) -> tuple[Witness, Point] | None:
    """Return parameter values and a point of the common digits where two functions differ or only one is defined."""
    first, second = held(context, left), held(context, right)
    if ties:
        first, second = (
            side.pullback_pw_multi_aff(held(context, tie)) for side, tie in zip((first, second), ties, strict=True)
        )
    domains = first.domain(), second.domain()
    parts = [domains[0].subtract(domains[1]), domains[1].subtract(domains[0])]
    for position in range(first.dim(islpy.dim_type.out)):
        parts.append(first.get_pw_aff(position).ne_set(second.get_pw_aff(position)))
    return next((sampled(part) for part in parts if not part.is_empty()), None)


def left_inverse(context: islpy.Context, function: Value, *extents: int) -> Any:
    names = [f"x{position}" for position in range(len(extents))]
    weight, terms = 1, ["0"]
    for name, extent in zip(names, extents, strict=True):
        terms.append(f"{weight}*{name}")
        weight *= extent
    index = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{' + '.join(terms)}] }}")
    relation = a_map(context, function)
    inverse = relation.reverse().apply_range(index)
    top = int(relation.range().dim_max_val(0).to_python())
    rest = a_set(context, f"{{ [v] : 0 <= v <= {top} }}").subtract(inverse.domain())
    zero = islpy.Map.read_from_str(context, "{ [v] -> [0] }").intersect_domain(rest)
    # through text, for ISL prints names for axes that have none
    return islpy.PwMultiAff.read_from_str(context, written(function_of(inverse.union(zero)).coalesce()))


def turned(context: islpy.Context, function: Value, least: bool, route: int, *names: str) -> Any:
    """Return the inverse of a function; with ``least``, to the least point of each value, else () if it has none."""
    relation = a_map(context, function).reverse()
    if route:
        relation = relation.coalesce()
    is_least = least and not relation.is_single_valued()
    relation = relation.lexmin() if is_least else relation
    for position, name in enumerate(names):
        relation = relation.set_dim_name(islpy.dim_type.in_, position, name)
    if is_least or any(part.dim(islpy.dim_type.div) > FLOORS for part in relation.get_basic_maps()):
        # via text, so that ISL finds the floors afresh: the relation itself may carry hundreds of them
        renew(context)
        relation = islpy.Map.read_from_str(context, written(relation))
    renew(context)
    try:
        return relation if relation.is_empty() else function_of(relation, route)
    except BudgetError:
        if exhausted(context) or least or relation.is_single_valued():
            raise
        return ()


# sets


def combined_sets(context: islpy.Context, left: Value, right: Value, operation: str) -> Any:
    """Return the union, intersect or subtract of two sets."""
    return getattr(held(context, left), operation)(held(context, right))


def set_difference(context: islpy.Context, left: Value, right: Value) -> tuple[Witness, Point] | None:
    first, second = held(context, left), held(context, right)
    parts = (first.subtract(second), second.subtract(first))
    return next((sampled(part) for part in parts if not part.is_empty()), None)


def overlap(context: islpy.Context, *guards: Value) -> tuple[int, int, Witness, Point] | None:
    sets = [held(context, guard) for guard in guards]
    for index, points in enumerate(sets):
        for before in range(index):
            both = points.intersect(sets[before])
            if not both.is_empty():
                return before, index, *sampled(both)
    return None


def sample(context: islpy.Context, points: Value) -> tuple[Witness, Point] | None:
    found = held(context, points)
    return None if found.is_empty() else sampled(found)


def bounds(context: islpy.Context, points: Value) -> tuple[tuple[int, int] | None, ...] | None:
    return spans(held(context, points))


def spans(points: Any) -> tuple[tuple[int, int] | None, ...] | None:
    """Return the inclusive bounds per axis for all parameter values, None for an axis without; None for no points."""
    points = points.project_out(islpy.dim_type.param, 0, points.dim(islpy.dim_type.param))
    if points.is_empty():
        return None
    found: list[tuple[int, int] | None] = []
    for position in range(points.dim(islpy.dim_type.set)):
        low, high = points.dim_min_val(position), points.dim_max_val(position)
        found.append((low.to_python(), high.to_python()) if low.is_int() and high.is_int() else None)
    return tuple(found)


def extreme(context: islpy.Context, points: Value, largest: bool) -> Any:
    """Return the lexicographic optimum as a function without inputs; a point of the set if it is unbounded."""
    found = held(context, points)
    try:
        best = found.lexmax() if largest else found.lexmin()
    except islpy.Error as error:
        if exhausted(context) or "unbounded" not in str(error):
            raise
        return sampled(found)
    return _constants(islpy.Map.from_range(best))


def extents(context: islpy.Context, points: Value) -> Any:
    """Return the extents of a parametric box as a function without inputs; None if it is not a box."""
    return _extents(context, held(context, points))


def flat_extents(context: islpy.Context, points: Value, terms: str, *names: str) -> Any:
    """Return ``extents`` of the values of a sum over a set."""
    flat = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{terms}] }}")
    return _extents(context, _printed(held(context, points).apply(flat)))


def _extents(context: islpy.Context, points: Any) -> Any:
    kinds = islpy.dim_type
    count = points.dim(kinds.set)
    box: Any = None
    sizes: Any = None
    for position in range(count):
        line = points.project_out(kinds.set, position + 1, count - position - 1)
        line = line.project_out(kinds.set, 0, position)
        if not is_interval(line):
            return None
        low, high = line.dim_min(0), line.dim_max(0)
        size = islpy.Set.from_pw_aff(high.sub(low).add_constant_val(islpy.Val.one(context)))
        box = line if box is None else box.flat_product(line)
        sizes = size if sizes is None else sizes.flat_product(size)
    if box is None or not box.is_equal(points):
        return None
    return _constants(islpy.Map.from_range(sizes))


def is_interval(line: Any) -> bool:
    """Return whether a set on one axis has all integers between any two, for all parameters."""
    ctx = line.get_ctx()
    above, below = (islpy.Map.read_from_str(ctx, f"{{ [a] -> [x] : a {sign} x }}") for sign in ("<=", ">="))
    return bool(line.apply(above).intersect(line.apply(below)).is_equal(line))


def partial_tiles(context: islpy.Context, points: Value, position: int, tile: int) -> Any:
    found = held(context, points)
    names = [f"x{i}" for i in range(found.dim(islpy.dim_type.set))]
    inner = f"0 <= x{position} < {tile}"
    box = a_set(context, f"{{ [{', '.join(names)}] : {inner} }}")
    free = [*names[:position], "z", *names[position + 1 :]]
    spread = islpy.Map.read_from_str(
        context, f"{{ [{', '.join(names)}] -> [{', '.join(free)}] : {inner} and 0 <= z < {tile} }}"
    )
    missing = found.apply(spread).intersect(box).subtract(found)
    return found.intersect(missing.apply(spread))


# shared


def _constants(relation: islpy.Map) -> Any:
    """Return a single-valued relation without inputs as a function."""
    return relation if relation.is_empty() else function_of(relation)


def _fixed(found: Any, values: Mapping[str, int]) -> Any:
    """Return a set or relation with numbers for some parameters."""
    for name, value in values.items():
        position = found.find_dim_by_name(islpy.dim_type.param, name)
        if position >= 0:
            number = islpy.Val.read_from_str(found.get_ctx(), str(value))
            found = found.fix_val(islpy.dim_type.param, position, number)
            found = found.project_out(islpy.dim_type.param, position, 1)
    return found
