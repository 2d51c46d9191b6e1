"""What is asked of ISL about relations and sets: texts in, texts and plain numbers out, nothing judged.

Main definitions: one function per question, each of a context and plain values, so that it can be asked in another
process; ``relations`` asks them and judges the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.piecewise.budget import exhausted, written
from layoutalg.piecewise.explicit import (
    EMPTY,
    Witness,
    a_function,
    a_map,
    joined,
    pairs,
    sampled,
    settled,
    written_set,
    written_text,
)

if TYPE_CHECKING:
    import islpy


def collision(context: islpy.Context, text: str, axes: Sequence[str]) -> Witness | None:
    import islpy

    relation = a_map(context, text)
    if relation.is_injective():
        return None
    params, found = sampled(pairs(relation.reverse()))
    width, size = relation.dim(islpy.dim_type.out), len(axes)
    first, second = found[width : width + size], found[width + size :]
    points = (dict(zip(axes, first, strict=True)), dict(zip(axes, second, strict=True)))
    return {"params": params, "points": points, "value": found[:width]}


def overlap(
    context: islpy.Context, texts: Sequence[str], axes: Sequence[str]
) -> tuple[int, int, Witness, Witness] | None:
    import islpy

    sets = [islpy.Set.read_from_str(context, text) for text in texts]
    for index, points in enumerate(sets):
        for before in range(index):
            both = points.intersect(sets[before])
            if not both.is_empty():
                params, point = sampled(both)
                return before, index, params, dict(zip(axes, point, strict=True))
    return None


def difference(
    context: islpy.Context, left: str, right: str, axes: Sequence[str], maps: bool
) -> tuple[Witness, Witness] | None:
    import islpy

    if maps:
        found = [a_map(context, text) for text in (left, right)]
        apart: Any = found[0].subtract(found[1])
        apart = (found[1].subtract(found[0]) if apart.is_empty() else apart).domain()
    else:
        sets = [islpy.Set.read_from_str(context, text) for text in (left, right)]
        apart = sets[0].subtract(sets[1])
        apart = sets[1].subtract(sets[0]) if apart.is_empty() else apart
    if apart.is_empty():
        return None
    params, point = sampled(apart)
    return params, dict(zip(axes, point, strict=True))


def substitute(context: islpy.Context, text: str, lifted: str, values: Mapping[str, int], plain: bool) -> str:
    import islpy

    is_map = "->" in text.split("{", 1)[1]
    kinds = islpy.dim_type
    if is_map and not text.endswith(EMPTY):
        outer = islpy.PwMultiAff.read_from_str(context, lifted)
        function = islpy.PwMultiAff.read_from_str(context, text)
        params = [str(function.get_dim_name(kinds.param, i)) for i in range(function.dim(kinds.param))]
        axes = [str(function.get_dim_name(kinds.in_, i)) for i in range(function.dim(kinds.in_))]
        free = [name for name in params if name not in values]
        entries = [str(values.get(name, name)) for name in params]
        inner = f"[{', '.join(free)}] -> {{ [{', '.join(axes)}] -> [{', '.join([*entries, *axes])}] }}"
        return written_text(outer.pullback_pw_multi_aff(islpy.PwMultiAff.read_from_str(context, inner)), plain)
    found: Any = (islpy.Map if is_map else islpy.Set).read_from_str(context, text)
    for name, value in values.items():
        position = found.find_dim_by_name(kinds.param, name)
        if position < 0:
            continue
        number = islpy.Val.read_from_str(context, str(value))
        found = found.fix_val(kinds.param, position, number)
        found = found.project_out(kinds.param, position, 1)
    return written_set(found, plain, False)


def on_maps(context: islpy.Context, operation: str, plain: bool, *texts: str) -> str:
    import islpy

    def function_text(value: Any) -> str:
        return written_text(value, plain)

    def set_text(points: Any, coalesced: bool = False) -> str:
        return written_set(points, plain, coalesced)

    def graph(position: int) -> Any:
        return a_map(context, texts[position])

    def function(position: int) -> Any:
        text = texts[position]
        if text.endswith(EMPTY):
            return islpy.PwMultiAff.from_map(islpy.Map.read_from_str(context, text))
        return islpy.PwMultiAff.read_from_str(context, text)

    def points(position: int) -> Any:
        return islpy.Set.read_from_str(context, texts[position])

    match operation:
        case "union":
            return function_text(joined(function(0), function(1), f"{texts[0]} union {texts[1]}"))
        case "intersect":
            return function_text(function(0).intersect_domain(graph(0).intersect(graph(1)).domain()))
        case "restrict":
            return function_text(function(0).intersect_domain(points(1)))
        case "remove":
            return function_text(function(0).subtract_domain(points(1)))
        case "domain":
            return set_text(graph(0).domain(), True)
        case "range":
            return set_text(graph(0).range(), True)
        case "within":
            whole = function(0)
            return function_text(whole.intersect_domain(points(1).preimage_pw_multi_aff(whole)))
        case "after":
            return function_text(function(0).pullback_pw_multi_aff(function(1)))
        case "outside":
            return set_text(graph(1).subtract_range(graph(0).domain()).domain())
        case "image":
            return set_text(points(1).apply(graph(0)))
        case "union_set":
            return set_text(points(0).union(points(1)))
        case "intersect_set":
            return set_text(points(0).intersect(points(1)))
        case "subtract_set":
            return set_text(points(0).subtract(points(1)))
        case _:
            return function_text(islpy.PwMultiAff.from_domain(points(0)))


def turned(context: islpy.Context, text: str, names: Sequence[str], least: bool, route: int, plain: bool) -> str:
    """Return the canonical text of the inverse of a function, its axes named; with ``least``, of the least points."""
    import islpy

    relation = a_map(context, text).reverse()
    link = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{', '.join(names)}] }}")
    if route:
        relation = relation.coalesce()
    if least:
        relation = relation.lexmin()
    # by way of its text, in which ISL finds floors anew: the relation itself may carry hundreds of them
    relation = islpy.Map.read_from_str(context, written(link.apply_range(relation)))
    return settled(a_function(relation, route), plain) if not relation.is_empty() else written_text(relation)


def sample(context: islpy.Context, text: str) -> tuple[Witness, tuple[int, ...]] | None:
    import islpy

    points = islpy.Set.read_from_str(context, text)
    return None if points.is_empty() else sampled(points)


def bounds(context: islpy.Context, text: str) -> tuple[tuple[int, int], ...] | int | None:
    import islpy

    points = islpy.Set.read_from_str(context, text)
    if points.is_empty():
        return None
    found = []
    for position in range(points.dim(islpy.dim_type.set)):
        low, high = points.dim_min_val(position), points.dim_max_val(position)
        if not (low.is_int() and high.is_int()):
            return position
        found.append((int(low.to_python()), int(high.to_python())))
    return tuple(found)


def extreme(context: islpy.Context, text: str, largest: bool, axes: Sequence[str]) -> str | tuple[Witness, Witness]:
    import islpy

    points = islpy.Set.read_from_str(context, text)
    try:
        best = points.lexmax() if largest else points.lexmin()
    except islpy.Error as error:
        if exhausted(context) or "unbounded" not in str(error):
            raise
        params, point = sampled(points)
        return params, dict(zip(axes, point, strict=True))
    return _told(islpy.Map.from_range(best))


def _told(relation: islpy.Map) -> str:
    """Return the text of a single-valued relation, its values as expressions."""
    return written_text(relation) if relation.is_empty() else settled(a_function(relation))


def extents(context: islpy.Context, text: str) -> str | None:
    import islpy

    kinds = islpy.dim_type
    points = islpy.Set.read_from_str(context, text)
    count = points.dim(kinds.set)
    above, below = (islpy.Map.read_from_str(context, f"{{ [a] -> [x] : a {sign} x }}") for sign in ("<=", ">="))
    box: Any = None
    sizes: Any = None
    for position in range(count):
        line = points.project_out(kinds.set, position + 1, count - position - 1)
        line = line.project_out(kinds.set, 0, position)
        if not line.apply(above).intersect(line.apply(below)).is_equal(line):
            return None
        low, high = line.dim_min(0), line.dim_max(0)
        size = islpy.Set.from_pw_aff(high.sub(low).add_constant_val(islpy.Val.one(context)))
        box = line if box is None else box.flat_product(line)
        sizes = size if sizes is None else sizes.flat_product(size)
    if box is None or not box.is_equal(points):
        return None
    return _told(islpy.Map.from_range(sizes))


def flat_extents(context: islpy.Context, text: str, terms: str, names: Sequence[str]) -> str | None:
    """Return ``extents`` of the values of a sum over a set."""
    import islpy

    flat = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{terms}] }}")
    return extents(context, written(islpy.Set.read_from_str(context, text).apply(flat)))


def constant_extents(context: islpy.Context, text: str) -> tuple[tuple[int, int] | None, ...]:
    import islpy

    kinds = islpy.dim_type
    points = islpy.Set.read_from_str(context, text)
    points = points.project_out(kinds.param, 0, points.dim(kinds.param))
    found: list[tuple[int, int] | None] = []
    for position in range(points.dim(kinds.set)):
        low, high = points.dim_min_val(position), points.dim_max_val(position)
        known = low.is_int() and high.is_int()
        found.append((int(low.to_python()), int(high.to_python())) if known else None)
    return tuple(found)


def partial_tiles(context: islpy.Context, text: str, position: int, tile: int, plain: bool) -> str:
    import islpy

    points = islpy.Set.read_from_str(context, text)
    count = points.dim(islpy.dim_type.set)
    names = [f"x{i}" for i in range(count)]
    inner = f"0 <= x{position} < {tile}"
    box = islpy.Set.read_from_str(context, f"{{ [{', '.join(names)}] : {inner} }}")
    free = [*names[:position], "z", *names[position + 1 :]]
    spread = islpy.Map.read_from_str(
        context, f"{{ [{', '.join(names)}] -> [{', '.join(free)}] : {inner} and 0 <= z < {tile} }}"
    )
    missing = points.apply(spread).intersect(box).subtract(points)
    return written_set(points.intersect(missing.apply(spread)), plain, False)
