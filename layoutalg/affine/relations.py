"""Parametric relations and sets in ISL: texts in, texts and plain numbers out.

Main definitions: ``read_function``, ``read_set`` (canonical texts), ``collision`` (two points with one value),
``difference``, ``substitute``, ``on_maps`` (operations of functions and sets), ``extents``, ``partial_tiles``.

Implementation notes: every question is asked within ``budget``. ISL's own count is not used: it answers 0 on parametric
and on unbounded sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.affine.budget import exhausted, solve, written
from layoutalg.affine.explicit import Witness, a_map, joined, sampled, written_text
from layoutalg.affine.reading import pairs

if TYPE_CHECKING:
    import islpy


def collision(text: str, axes: Sequence[str]) -> Witness | None:
    """Return two points with one value, or None where the function is injective.

    Example:
        >>> collision("{ [i] -> [floor(i/2)] : 0 <= i < 4 }", ("i",))
        {'params': {}, 'points': ({'i': 2}, {'i': 3}), 'value': (1,)}
    """
    import islpy

    def ask(context: islpy.Context) -> Witness | None:
        relation = a_map(context, text)
        if relation.is_injective():
            return None
        params, found = sampled(pairs(relation.reverse()))
        width, size = relation.dim(islpy.dim_type.out), len(axes)
        first, second = found[width : width + size], found[width + size :]
        points = (dict(zip(axes, first, strict=True)), dict(zip(axes, second, strict=True)))
        return {"params": params, "points": points, "value": found[:width]}

    return solve(f"is this injective: {text}", ask)


def overlap(texts: Sequence[str], axes: Sequence[str]) -> tuple[int, int, Witness] | None:
    """Return the positions of two sets that overlap, with a common point; None where all are disjoint.

    Example:
        >>> overlap(["{ [i] : i < 3 }", "{ [i] : i > 5 }", "{ [i] : 2 <= i < 4 }"], ("i",))
        (0, 2, {'i': 2})
    """
    import islpy

    def ask(context: islpy.Context) -> tuple[int, int, Witness] | None:
        sets = [islpy.Set.read_from_str(context, text) for text in texts]
        for index, points in enumerate(sets):
            for before in range(index):
                both = points.intersect(sets[before])
                if not both.is_empty():
                    params, point = sampled(both)
                    return before, index, {**params, **dict(zip(axes, point, strict=True))}
        return None

    return solve("do two guards overlap", ask)


def difference(left: str, right: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point where two relations (or sets) differ; None where they agree."""
    import islpy

    def ask(context: islpy.Context) -> Witness | None:
        if "->" in left.split("{", 1)[1]:
            maps = [a_map(context, text) for text in (left, right)]
            apart: Any = maps[0].subtract(maps[1])
            apart = (maps[1].subtract(maps[0]) if apart.is_empty() else apart).domain()
        else:
            sets = [islpy.Set.read_from_str(context, text) for text in (left, right)]
            apart = sets[0].subtract(sets[1])
            apart = sets[1].subtract(sets[0]) if apart.is_empty() else apart
        if apart.is_empty():
            return None
        params, point = sampled(apart)
        return {**params, **dict(zip(axes, point, strict=True))}

    return solve("equality of two relations", ask)


def substitute(text: str, values: Mapping[str, int]) -> str:
    """Return the text of a map or set with numbers for some parameters, which then are gone."""
    import islpy

    def ask(context: islpy.Context) -> str:
        is_map = "->" in text.split("{", 1)[1]
        if is_map and not text.endswith(": false }"):
            outer = islpy.PwMultiAff.read_from_str(context, lifted(text))
            function = islpy.PwMultiAff.read_from_str(context, text)
            kinds = islpy.dim_type
            params = [str(function.get_dim_name(kinds.param, i)) for i in range(function.dim(kinds.param))]
            axes = [str(function.get_dim_name(kinds.in_, i)) for i in range(function.dim(kinds.in_))]
            free = [name for name in params if name not in values]
            entries = [str(values.get(name, name)) for name in params]
            inner = f"[{', '.join(free)}] -> {{ [{', '.join(axes)}] -> [{', '.join([*entries, *axes])}] }}"
            return written_text(outer.pullback_pw_multi_aff(islpy.PwMultiAff.read_from_str(context, inner)))
        found: Any = (islpy.Map if is_map else islpy.Set).read_from_str(context, text)
        for name, value in values.items():
            position = found.find_dim_by_name(islpy.dim_type.param, name)
            if position < 0:
                continue
            number = islpy.Val.read_from_str(context, str(value))
            found = found.fix_val(islpy.dim_type.param, position, number)
            found = found.project_out(islpy.dim_type.param, position, 1)
        return written(found)

    return solve(f"substitution in {text}", ask)


def parameters(text: str) -> tuple[str, ...]:
    """Return the parameters of a canonical text, in its order.

    Example:
        >>> parameters("[N, M] -> { [i] -> [(i)] : 0 <= i < N }")
        ('N', 'M')
    """
    head = text.partition("{")[0].replace("->", "").strip().strip("[]")
    return tuple(name.strip() for name in head.split(",") if name.strip())


def lifted(text: str) -> str:
    """Return the canonical text of a function with its parameters as leading inputs.

    Example:
        >>> lifted("[N] -> { [i] -> [(i)] : 0 <= i < N; [i] -> [(N)] : i >= N }")
        '{ [N, i] -> [(i)] : 0 <= i < N; [N, i] -> [(N)] : i >= N }'
    """
    head, _, body = text.partition("{")
    params = head.replace("->", "").strip().strip("[]").strip()
    if not params:
        return text
    parts = []
    for piece in body.rpartition("}")[0].split(";"):
        axes = piece.strip().partition("]")
        inside = axes[0].strip().strip("[").strip()
        parts.append(f"[{params}{', ' if inside else ''}{inside}]{axes[2].rstrip()}")
    return f"{{ {'; '.join(parts)} }}"


def on_maps(operation: str, *texts: str) -> str:
    """Return the text of an operation on maps and sets, the first of which is a map unless the name ends in ``_set``.

    Args:
        operation: One of ``union``, ``intersect``, ``restrict`` and ``remove`` (map, set), ``domain``, ``range``,
            ``reverse``, ``first`` (the least point of every value), ``within`` (map, set: where its values lie
            in the set), ``after`` (outer, inner), ``renamed`` (the same
            for relations), ``outside`` (outer, inner: points whose value the outer map does not take), ``image`` and
            ``preimage`` (map, set), ``union_set``, ``intersect_set``, ``subtract_set``, ``constant_set`` (a set as a
            map without outputs), ``index`` (a set as a map without inputs).
        texts: The operands.
    """
    import islpy

    def ask(context: islpy.Context) -> str:

        def graph(position: int) -> Any:
            return a_map(context, texts[position])

        def a_function(position: int) -> Any:
            text = texts[position]
            if text.endswith(": false }"):
                return islpy.PwMultiAff.from_map(islpy.Map.read_from_str(context, text))
            return islpy.PwMultiAff.read_from_str(context, text)

        def a_set(position: int) -> Any:
            return islpy.Set.read_from_str(context, texts[position])

        match operation:
            case "union":
                return written_text(joined(a_function(0), a_function(1), f"{texts[0]} union {texts[1]}"))
            case "intersect":
                return written_text(a_function(0).intersect_domain(graph(0).intersect(graph(1)).domain()))
            case "restrict":
                return written_text(a_function(0).intersect_domain(a_set(1)))
            case "remove":
                return written_text(a_function(0).subtract_domain(a_set(1)))
            case "domain":
                return written(graph(0).domain().coalesce())
            case "range":
                return written(graph(0).range().coalesce())
            case "reverse":
                return written(graph(0).reverse())
            case "first":
                return written(graph(0).reverse().lexmin())
            case "within":
                function = a_function(0)
                return written_text(function.intersect_domain(a_set(1).preimage_pw_multi_aff(function)))
            case "after":
                return written_text(a_function(0).pullback_pw_multi_aff(a_function(1)))
            case "renamed":
                return written(graph(1).apply_range(graph(0)))
            case "outside":
                return written(graph(1).subtract_range(graph(0).domain()).domain())
            case "image":
                return written(a_set(1).apply(graph(0)))
            case "preimage":
                return written(a_set(1).apply(graph(0).reverse()))
            case "union_set":
                return written(a_set(0).union(a_set(1)))
            case "intersect_set":
                return written(a_set(0).intersect(a_set(1)))
            case "subtract_set":
                return written(a_set(0).subtract(a_set(1)))
            case "constant_set":
                return written_text(islpy.PwMultiAff.from_domain(a_set(0)))
            case _:
                return written(islpy.Map.from_range(a_set(0)))

    return solve(operation, ask)


def is_empty(text: str) -> bool:
    """Return whether a set has no point for any parameter values."""
    import islpy

    def ask(context: islpy.Context) -> bool:
        return bool(islpy.Set.read_from_str(context, text).is_empty())

    return solve(f"is this empty: {text}", ask)


def sample(text: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point of a set, or None where it is empty."""
    import islpy

    def ask(context: islpy.Context) -> Witness | None:
        points = islpy.Set.read_from_str(context, text)
        if points.is_empty():
            return None
        params, point = sampled(points)
        return {**params, **dict(zip(axes, point, strict=True))}

    return solve(f"a point of {text}", ask)


def bounds(text: str) -> tuple[tuple[int, int], ...] | int | None:
    """Return the inclusive bounds of a set without parameters, None where it is empty, an unbounded axis's position."""
    import islpy

    kinds = islpy.dim_type

    def ask(context: islpy.Context) -> tuple[tuple[int, int], ...] | int | None:
        points = islpy.Set.read_from_str(context, text)
        if points.is_empty():
            return None
        found = []
        for position in range(points.dim(kinds.set)):
            low, high = points.dim_min_val(position), points.dim_max_val(position)
            if not (low.is_int() and high.is_int()):
                return position
            found.append((int(low.to_python()), int(high.to_python())))
        return tuple(found)

    return solve(f"the bounds of {text}", ask)


def extreme(text: str, largest: bool, axes: Sequence[str]) -> str | Witness:
    """Return the lexicographic optimum of a set as a map from no inputs, or where there is none.

    The witness, where the set is unbounded in the wanted direction, is a point of the set.
    """
    import islpy

    def ask(context: islpy.Context) -> str | Witness:
        points = islpy.Set.read_from_str(context, text)
        try:
            best = points.lexmax() if largest else points.lexmin()
        except islpy.Error as error:
            if exhausted(context) or "unbounded" not in str(error):
                raise
            params, point = sampled(points)
            return {**params, **dict(zip(axes, point, strict=True))}
        return written(islpy.Map.from_range(best))

    return solve(f"the optimum of {text}", ask)


def extents(text: str) -> str | None:
    """Return the extents of a parametric interval or box as a map from no inputs; None where the set is no box."""
    import islpy

    kinds = islpy.dim_type

    def ask(context: islpy.Context) -> str | None:
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
        return written(islpy.Map.from_range(sizes))

    return solve(f"the extents of {text}", ask)


def constant_extents(text: str) -> tuple[tuple[int, int] | None, ...]:
    """Return, per axis, the bounds that hold for all parameter values, or None where there are none."""
    import islpy

    kinds = islpy.dim_type

    def ask(context: islpy.Context) -> tuple[tuple[int, int] | None, ...]:
        points = islpy.Set.read_from_str(context, text)
        points = points.project_out(kinds.param, 0, points.dim(kinds.param))
        found: list[tuple[int, int] | None] = []
        for position in range(points.dim(kinds.set)):
            low, high = points.dim_min_val(position), points.dim_max_val(position)
            known = low.is_int() and high.is_int()
            found.append((int(low.to_python()), int(high.to_python())) if known else None)
        return tuple(found)

    return solve(f"the bounds of {text}", ask)


def partial_tiles(text: str, position: int, tile: int) -> str:
    """Return the points of a digit set whose tile (all values of one axis in [0, tile)) is not whole.

    Args:
        text: A set.
        position: Position of the axis within the tile.
        tile: Its extent.
    """
    import islpy

    kinds = islpy.dim_type

    def ask(context: islpy.Context) -> str:
        points = islpy.Set.read_from_str(context, text)
        count = points.dim(kinds.set)
        names = [f"x{i}" for i in range(count)]
        inner = f"0 <= x{position} < {tile}"
        box = islpy.Set.read_from_str(context, f"{{ [{', '.join(names)}] : {inner} }}")
        free = [*names[:position], "z", *names[position + 1 :]]
        spread = islpy.Map.read_from_str(
            context, f"{{ [{', '.join(names)}] -> [{', '.join(free)}] : {inner} and 0 <= z < {tile} }}"
        )
        missing = points.apply(spread).intersect(box).subtract(points)
        return written(points.intersect(missing.apply(spread)))

    return solve("full tiles", ask)
