"""Questions to ISL about functions and sets: canonical texts in, values and plain numbers out, not confirmed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.ground.lazy import later
from layoutalg.piecewise.budget import exhausted, written
from layoutalg.piecewise.pieces import Value
from layoutalg.piecewise.reading import (
    EMPTY,
    Point,
    Witness,
    a_function,
    a_map,
    a_set,
    function_of,
    function_value,
    joined,
    pairs,
    sampled,
    set_value,
)

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")


# functions


def union(context: islpy.Context, left: str, right: str) -> Value:
    return function_value(joined(a_function(context, left), a_function(context, right), f"{left} union {right}"))


def intersect(context: islpy.Context, left: str, right: str) -> Value:
    agreed = a_map(context, left).intersect(a_map(context, right)).domain()
    return function_value(a_function(context, left).intersect_domain(agreed))


def restrict(context: islpy.Context, text: str, points: str, outside: bool = False) -> Value:
    function, inside = a_function(context, text), a_set(context, points)
    return function_value(function.subtract_domain(inside) if outside else function.intersect_domain(inside))


def within(context: islpy.Context, text: str, values: str) -> Value:
    function = a_function(context, text)
    return function_value(function.intersect_domain(a_set(context, values).preimage_pw_multi_aff(function)))


def after(context: islpy.Context, outer: str, inner: str) -> Value:
    return function_value(a_function(context, outer).pullback_pw_multi_aff(a_function(context, inner)))


def composed(context: islpy.Context, steps: Sequence[str]) -> Value | tuple[Witness, Point]:
    """Return a chain of functions, first one first; or parameter values and a point of the first one outside it."""
    below = total = a_function(context, steps[0])
    for step in steps[1:]:
        total = a_function(context, step).pullback_pw_multi_aff(total)
    outside = below.domain().subtract(total.domain())
    return function_value(total) if outside.is_empty() else sampled(outside)


def chain(context: islpy.Context, stages: Sequence[str], points: str) -> Value:
    """Return a chain of one-piece functions in user's text, first one first, on the points of a set."""
    total = islpy.PwMultiAff.read_from_str(context, stages[0])
    for stage in stages[1:]:
        total = islpy.PwMultiAff.read_from_str(context, stage).pullback_pw_multi_aff(total)
    return function_value(total.intersect_domain(a_set(context, points)))


def substitute(context: islpy.Context, text: str, values: Mapping[str, int]) -> Value:
    """Return a function with numbers for some parameters: they become inputs, and numbers are put into these."""
    if text.endswith(EMPTY):
        return function_value(_fixed(islpy.Map.read_from_str(context, text), values))
    function = a_function(context, text)
    kinds = islpy.dim_type
    params, axes = (
        [str(function.get_dim_name(kind, i)) for i in range(function.dim(kind))] for kind in (kinds.param, kinds.in_)
    )
    free = [name for name in params if name not in values]
    entries = [str(values.get(name, name)) for name in params]
    inner = f"[{', '.join(free)}] -> {{ [{', '.join(axes)}] -> [{', '.join([*entries, *axes])}] }}"
    outer = islpy.PwMultiAff.read_from_str(context, lifted(text, params))
    return function_value(outer.pullback_pw_multi_aff(islpy.PwMultiAff.read_from_str(context, inner)))


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


def domain(context: islpy.Context, text: str) -> Value:
    return set_value(a_function(context, text).domain())


def image(context: islpy.Context, text: str) -> Value:
    # through text, for ISL prints names for axes that have none
    return set_value(islpy.Set.read_from_str(context, written(a_map(context, text).range())))


def collision(context: islpy.Context, text: str, axes: Sequence[str]) -> Witness | None:
    relation = a_map(context, text)
    if relation.is_injective():
        return None
    params, found = sampled(pairs(relation.reverse()))
    width, size = relation.dim(islpy.dim_type.out), len(axes)
    first, second = found[width : width + size], found[width + size :]
    points = (dict(zip(axes, first, strict=True)), dict(zip(axes, second, strict=True)))
    return {"params": params, "points": points, "value": found[:width]}


def difference(context: islpy.Context, left: str, right: str, links: Sequence[str]) -> tuple[Witness, Point] | None:
    """Return parameter values and a point of the common digits where two functions differ or only one is defined."""
    first, second, *ties = [a_function(context, text) for text in (left, right, *links)]
    if ties:
        first, second = first.pullback_pw_multi_aff(ties[0]), second.pullback_pw_multi_aff(ties[1])
    domains = first.domain(), second.domain()
    parts = [domains[0].subtract(domains[1]), domains[1].subtract(domains[0])]
    for position in range(first.dim(islpy.dim_type.out)):
        parts.append(first.get_pw_aff(position).ne_set(second.get_pw_aff(position)))
    return next((sampled(part) for part in parts if not part.is_empty()), None)


def box(context: islpy.Context, text: str) -> tuple[Point | None, str, Point]:
    """Return the extents of a domain that is a box from the origin; else None, why not, and a hole."""
    inside = a_function(context, text).domain()
    if inside.is_empty() or not inside.is_bounded():
        return None, "empty" if inside.is_empty() else "unbounded", ()
    count = inside.dim(islpy.dim_type.set)
    sides = [(inside.dim_min_val(k).to_python(), int(inside.dim_max_val(k).to_python()) + 1) for k in range(count)]
    late = next((k for k, (low, _) in enumerate(sides) if low != 0), None)
    if late is not None:
        return None, "late", (late,)
    extents = tuple(extent for _, extent in sides)
    names = [f"x{k}" for k in range(count)]
    bounds = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, n in zip(names, extents, strict=True))])
    holes = a_set(context, f"{{ [{', '.join(names)}] : {bounds} }}").subtract(inside)
    return (extents, "", ()) if holes.is_empty() else (None, "hole", (*extents, *sampled(holes)[1]))


def left_inverse(context: islpy.Context, text: str, extents: Sequence[int]) -> Value:
    names = [f"x{position}" for position in range(len(extents))]
    weight, terms = 1, ["0"]
    for name, extent in zip(names, extents, strict=True):
        terms.append(f"{weight}*{name}")
        weight *= extent
    index = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{' + '.join(terms)}] }}")
    function = a_map(context, text)
    inverse = function.reverse().apply_range(index)
    top = int(function.range().dim_max_val(0).to_python())
    rest = a_set(context, f"{{ [v] : 0 <= v <= {top} }}").subtract(inverse.domain())
    zero = islpy.Map.read_from_str(context, "{ [v] -> [0] }").intersect_domain(rest)
    # through text, for ISL prints names for axes that have none
    found = written(function_of(inverse.union(zero)).coalesce())
    return function_value(islpy.PwMultiAff.read_from_str(context, found))


def turned(context: islpy.Context, text: str, names: Sequence[str], least: bool, route: int) -> Value:
    """Return the inverse of a function; with ``least``, to the least point of each value."""
    relation = a_map(context, text).reverse()
    link = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{', '.join(names)}] }}")
    if route:
        relation = relation.coalesce()
    if least:
        relation = relation.lexmin()
    # via text, so that ISL finds the floors afresh: the relation itself may carry hundreds of them
    relation = islpy.Map.read_from_str(context, written(link.apply_range(relation)))
    return function_value(relation if relation.is_empty() else function_of(relation, route))


# sets


def combined_sets(context: islpy.Context, left: str, right: str, operation: str) -> Value:
    """Return the union, intersect or subtract of two sets."""
    return set_value(getattr(a_set(context, left), operation)(a_set(context, right)))


def substitute_in_set(context: islpy.Context, text: str, values: Mapping[str, int]) -> Value:
    return set_value(_fixed(a_set(context, text), values))


def set_difference(context: islpy.Context, left: str, right: str) -> tuple[Witness, Point] | None:
    first, second = a_set(context, left), a_set(context, right)
    parts = (first.subtract(second), second.subtract(first))
    return next((sampled(part) for part in parts if not part.is_empty()), None)


def overlap(context: islpy.Context, texts: Sequence[str]) -> tuple[int, int, Witness, Point] | None:
    sets = [a_set(context, text) for text in texts]
    for index, points in enumerate(sets):
        for before in range(index):
            both = points.intersect(sets[before])
            if not both.is_empty():
                return before, index, *sampled(both)
    return None


def sample(context: islpy.Context, text: str) -> tuple[Witness, Point] | None:
    points = a_set(context, text)
    return None if points.is_empty() else sampled(points)


def bounds(context: islpy.Context, text: str) -> tuple[tuple[int, int] | None, ...] | None:
    """Return the inclusive bounds per axis for all parameter values, None for an axis without; None for no points."""
    points = a_set(context, text)
    points = points.project_out(islpy.dim_type.param, 0, points.dim(islpy.dim_type.param))
    if points.is_empty():
        return None
    found: list[tuple[int, int] | None] = []
    for position in range(points.dim(islpy.dim_type.set)):
        low, high = points.dim_min_val(position), points.dim_max_val(position)
        found.append((low.to_python(), high.to_python()) if low.is_int() and high.is_int() else None)
    return tuple(found)


def extreme(context: islpy.Context, text: str, largest: bool) -> Value | tuple[Witness, Point]:
    """Return the lexicographic optimum as a function without inputs; a point of the set if it is unbounded."""
    points = a_set(context, text)
    try:
        best = points.lexmax() if largest else points.lexmin()
    except islpy.Error as error:
        if exhausted(context) or "unbounded" not in str(error):
            raise
        return sampled(points)
    return _constants(islpy.Map.from_range(best))


def extents(context: islpy.Context, text: str) -> Value | None:
    """Return the extents of a parametric box as a function without inputs; None if it is not a box."""
    return _extents(context, a_set(context, text))


def flat_extents(context: islpy.Context, text: str, terms: str, names: Sequence[str]) -> Value | None:
    """Return ``extents`` of the values of a sum over a set."""
    flat = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{terms}] }}")
    return _extents(context, islpy.Set.read_from_str(context, written(a_set(context, text).apply(flat))))


def _extents(context: islpy.Context, points: Any) -> Value | None:
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


def partial_tiles(context: islpy.Context, text: str, position: int, tile: int) -> Value:
    points = a_set(context, text)
    names = [f"x{i}" for i in range(points.dim(islpy.dim_type.set))]
    inner = f"0 <= x{position} < {tile}"
    box = a_set(context, f"{{ [{', '.join(names)}] : {inner} }}")
    free = [*names[:position], "z", *names[position + 1 :]]
    spread = islpy.Map.read_from_str(
        context, f"{{ [{', '.join(names)}] -> [{', '.join(free)}] : {inner} and 0 <= z < {tile} }}"
    )
    missing = points.apply(spread).intersect(box).subtract(points)
    return set_value(points.intersect(missing.apply(spread)))


# shared


def _constants(relation: islpy.Map) -> Value:
    """Return a single-valued relation without inputs as a function."""
    return function_value(relation if relation.is_empty() else function_of(relation))


def _fixed(found: Any, values: Mapping[str, int]) -> Any:
    """Return a set or relation with numbers for some parameters."""
    for name, value in values.items():
        position = found.find_dim_by_name(islpy.dim_type.param, name)
        if position >= 0:
            number = islpy.Val.read_from_str(found.get_ctx(), str(value))
            found = found.fix_val(islpy.dim_type.param, position, number)
            found = found.project_out(islpy.dim_type.param, position, 1)
    return found
