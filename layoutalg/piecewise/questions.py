"""Questions to ISL about functions and sets: text in, text and plain numbers out; answers are not checked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.ground.lazy import later
from layoutalg.piecewise.budget import exhausted, written
from layoutalg.piecewise.explicit import (
    EMPTY,
    Witness,
    a_function,
    a_map,
    a_set,
    explicit,
    function_of,
    joined,
    pairs,
    sampled,
    settled,
    written_set,
    written_text,
)

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")


def collision(context: islpy.Context, text: str, axes: Sequence[str]) -> Witness | None:
    relation = a_map(context, text)
    if relation.is_injective():
        return None
    params, found = sampled(pairs(relation.reverse()))
    width, size = relation.dim(islpy.dim_type.out), len(axes)
    first, second = found[width : width + size], found[width + size :]
    points = (dict(zip(axes, first, strict=True)), dict(zip(axes, second, strict=True)))
    return {"params": params, "points": points, "value": found[:width]}


def overlap(context: islpy.Context, texts: Sequence[str]) -> tuple[int, int, Witness, tuple[int, ...]] | None:
    sets = [a_set(context, text) for text in texts]
    for index, points in enumerate(sets):
        for before in range(index):
            both = points.intersect(sets[before])
            if not both.is_empty():
                return before, index, *sampled(both)
    return None


def difference(
    context: islpy.Context, left: str, right: str, links: tuple[str, str] | None
) -> tuple[Witness, tuple[int, ...]] | None:
    """Return parameter values and a point of the common digits where two functions differ or only one is defined.

    Functions given as explicit expressions are compared by these, others as relations.
    """
    found: list[Any] = [explicit(context, text) for text in (left, right, *(links or ()))]
    if any(function is None for function in found):
        maps: list[Any] = [a_map(context, text) for text in (left, right)]
        if links is not None:
            ties = [islpy.Map.read_from_str(context, link) for link in links]
            maps = [tie.apply_range(side) for tie, side in zip(ties, maps, strict=True)]
        parts = [maps[0].subtract(maps[1]).domain(), maps[1].subtract(maps[0]).domain()]
    else:
        first, second, *ties = found
        if ties:
            first, second = first.pullback_pw_multi_aff(ties[0]), second.pullback_pw_multi_aff(ties[1])
        domains = first.domain(), second.domain()
        parts = [domains[0].subtract(domains[1]), domains[1].subtract(domains[0])]
        for position in range(first.dim(islpy.dim_type.out)):
            parts.append(first.get_pw_aff(position).ne_set(second.get_pw_aff(position)))
    return next((sampled(part) for part in parts if not part.is_empty()), None)


def set_difference(context: islpy.Context, left: str, right: str) -> tuple[Witness, tuple[int, ...]] | None:
    first, second = a_set(context, left), a_set(context, right)
    parts = (first.subtract(second), second.subtract(first))
    return next((sampled(part) for part in parts if not part.is_empty()), None)


def substitute(context: islpy.Context, text: str, lifted: str, values: Mapping[str, int], plain: bool) -> str:
    """Return a function with numbers for some parameters, by composing the function that has them as inputs."""
    kinds = islpy.dim_type
    if text.endswith(EMPTY):
        return written_set(_fixed(islpy.Map.read_from_str(context, text), values), plain, False)
    outer, function = (islpy.PwMultiAff.read_from_str(context, given) for given in (lifted, text))
    params = [str(function.get_dim_name(kinds.param, i)) for i in range(function.dim(kinds.param))]
    axes = [str(function.get_dim_name(kinds.in_, i)) for i in range(function.dim(kinds.in_))]
    free = [name for name in params if name not in values]
    entries = [str(values.get(name, name)) for name in params]
    inner = f"[{', '.join(free)}] -> {{ [{', '.join(axes)}] -> [{', '.join([*entries, *axes])}] }}"
    return written_text(outer.pullback_pw_multi_aff(islpy.PwMultiAff.read_from_str(context, inner)), plain)


def substitute_in_set(context: islpy.Context, text: str, values: Mapping[str, int], plain: bool) -> str:
    return written_set(_fixed(a_set(context, text), values), plain, False)


def _fixed(found: Any, values: Mapping[str, int]) -> Any:
    for name, value in values.items():
        position = found.find_dim_by_name(islpy.dim_type.param, name)
        if position >= 0:
            number = islpy.Val.read_from_str(found.get_ctx(), str(value))
            found = found.fix_val(islpy.dim_type.param, position, number)
            found = found.project_out(islpy.dim_type.param, position, 1)
    return found


def union(context: islpy.Context, left: str, right: str, plain: bool) -> str:
    found = joined(a_function(context, left), a_function(context, right), f"{left} union {right}")
    return written_text(found, plain)


def intersect(context: islpy.Context, left: str, right: str, plain: bool) -> str:
    agreed = a_map(context, left).intersect(a_map(context, right)).domain()
    return written_text(a_function(context, left).intersect_domain(agreed), plain)


def restrict(context: islpy.Context, text: str, points: str, plain: bool) -> str:
    return written_text(a_function(context, text).intersect_domain(a_set(context, points)), plain)


def remove(context: islpy.Context, text: str, points: str, plain: bool) -> str:
    return written_text(a_function(context, text).subtract_domain(a_set(context, points)), plain)


def within(context: islpy.Context, text: str, values: str, plain: bool) -> str:
    whole = a_function(context, text)
    return written_text(whole.intersect_domain(a_set(context, values).preimage_pw_multi_aff(whole)), plain)


def after(context: islpy.Context, outer: str, inner: str, plain: bool) -> str:
    return written_text(a_function(context, outer).pullback_pw_multi_aff(a_function(context, inner)), plain)


def composed(
    context: islpy.Context, outer: str, link: str | None, inner: str, plain: bool
) -> str | tuple[Witness, tuple[int, ...]]:
    """Return outer after link after inner; or parameter values and a point of ``inner`` where that is undefined."""
    below = a_function(context, inner)
    steps = [a_function(context, text) for text in (link, outer) if text is not None]
    whole = below
    for step in steps:
        whole = step.pullback_pw_multi_aff(whole)
    outside = below.domain().subtract(whole.domain())
    return written_text(whole, plain) if outside.is_empty() else sampled(outside)


def chain(context: islpy.Context, stages: Sequence[str], domain: str) -> str:
    total = islpy.PwMultiAff.read_from_str(context, stages[0])
    for stage in stages[1:]:
        total = islpy.PwMultiAff.read_from_str(context, stage).pullback_pw_multi_aff(total)
    return written(total.intersect_domain(a_set(context, domain)).coalesce())


def domain(context: islpy.Context, text: str, plain: bool) -> str:
    return written_set(a_map(context, text).domain(), plain)


def image(context: islpy.Context, text: str, plain: bool) -> str:
    return written_set(a_map(context, text).range(), plain)


def union_sets(context: islpy.Context, left: str, right: str, plain: bool) -> str:
    return written_set(a_set(context, left).union(a_set(context, right)), plain, False)


def intersect_sets(context: islpy.Context, left: str, right: str, plain: bool) -> str:
    return written_set(a_set(context, left).intersect(a_set(context, right)), plain, False)


def subtract_sets(context: islpy.Context, left: str, right: str, plain: bool) -> str:
    return written_set(a_set(context, left).subtract(a_set(context, right)), plain, False)


def indicator(context: islpy.Context, points: str, plain: bool) -> str:
    """Return a set as a function without outputs."""
    return written_text(islpy.PwMultiAff.from_domain(a_set(context, points)), plain)


def box(context: islpy.Context, text: str) -> tuple[tuple[int, ...] | None, str, tuple[int, ...]]:
    """Return the extents of a domain that is a box from the origin; else None, why not, and a hole."""
    inside = a_map(context, text).domain()
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


def left_inverse(context: islpy.Context, text: str, extents: Sequence[int]) -> str:
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
    return written(function_of(inverse.union(zero)).coalesce())


def turned(context: islpy.Context, text: str, names: Sequence[str], least: bool, route: int, plain: bool) -> str:
    """Return the canonical text of the inverse of a function; with ``least``, to the least point of each value."""
    relation = a_map(context, text).reverse()
    link = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{', '.join(names)}] }}")
    if route:
        relation = relation.coalesce()
    if least:
        relation = relation.lexmin()
    # via text, so that ISL finds the floors afresh: the relation itself may carry hundreds of them
    relation = islpy.Map.read_from_str(context, written(link.apply_range(relation)))
    return settled(function_of(relation, route), plain) if not relation.is_empty() else written_text(relation)


def sample(context: islpy.Context, text: str) -> tuple[Witness, tuple[int, ...]] | None:
    points = a_set(context, text)
    return None if points.is_empty() else sampled(points)


def bounds(context: islpy.Context, text: str) -> tuple[tuple[int, int], ...] | int | None:
    points = a_set(context, text)
    if points.is_empty():
        return None
    found = []
    for position in range(points.dim(islpy.dim_type.set)):
        low, high = points.dim_min_val(position), points.dim_max_val(position)
        if not (low.is_int() and high.is_int()):
            return position
        found.append((int(low.to_python()), int(high.to_python())))
    return tuple(found)


def extreme(context: islpy.Context, text: str, largest: bool) -> str | tuple[Witness, tuple[int, ...]]:
    points = a_set(context, text)
    try:
        best = points.lexmax() if largest else points.lexmin()
    except islpy.Error as error:
        if exhausted(context) or "unbounded" not in str(error):
            raise
        return sampled(points)
    return _told(islpy.Map.from_range(best))


def _told(relation: islpy.Map) -> str:
    """Return the text of a single-valued relation with its values as expressions."""
    return written_text(relation) if relation.is_empty() else settled(function_of(relation))


def extents(context: islpy.Context, text: str) -> str | None:
    kinds = islpy.dim_type
    points = a_set(context, text)
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
    flat = islpy.Map.read_from_str(context, f"{{ [{', '.join(names)}] -> [{terms}] }}")
    return extents(context, written(a_set(context, text).apply(flat)))


def constant_extents(context: islpy.Context, text: str) -> tuple[tuple[int, int] | None, ...]:
    kinds = islpy.dim_type
    points = a_set(context, text)
    points = points.project_out(kinds.param, 0, points.dim(kinds.param))
    found: list[tuple[int, int] | None] = []
    for position in range(points.dim(kinds.set)):
        low, high = points.dim_min_val(position), points.dim_max_val(position)
        known = low.is_int() and high.is_int()
        found.append((int(low.to_python()), int(high.to_python())) if known else None)
    return tuple(found)


def partial_tiles(context: islpy.Context, text: str, position: int, tile: int, plain: bool) -> str:
    points = a_set(context, text)
    count = points.dim(islpy.dim_type.set)
    names = [f"x{i}" for i in range(count)]
    inner = f"0 <= x{position} < {tile}"
    box = a_set(context, f"{{ [{', '.join(names)}] : {inner} }}")
    free = [*names[:position], "z", *names[position + 1 :]]
    spread = islpy.Map.read_from_str(
        context, f"{{ [{', '.join(names)}] -> [{', '.join(free)}] : {inner} and 0 <= z < {tile} }}"
    )
    missing = points.apply(spread).intersect(box).subtract(points)
    return written_set(points.intersect(missing.apply(spread)), plain, False)
