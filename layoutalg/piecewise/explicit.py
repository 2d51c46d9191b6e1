"""Functions that ISL parses piece by piece, each output an integer expression, and their canonical text.

Implementation notes: a function parsed as expressions keeps them, and building its graph costs ISL a thousandth of
parsing the same text as a relation: 1 ms against 4 s for a dense map over 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.lazy import later
from layoutalg.piecewise.budget import exhausted, written
from layoutalg.piecewise.notation import malformed

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

Witness: TypeAlias = dict[str, object]
SETTLING_ROUNDS = 8
EMPTY = ": false }"
QUOTIENTS = 26
_QUOTIENT = re.compile(r"\bfloor\b|\bmod\b|//|%")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def explicit(context: islpy.Context, text: str) -> islpy.PwMultiAff | None:
    """Return the function of a text whose outputs are integer expressions; None for other texts.

    ISL adds the values of overlapping pieces, so each piece is parsed alone. A quotient outside a floor is left to the
    relation parser, which treats it as a condition.
    """
    head, _, rest = text.partition("{")
    total: Any = None
    for piece in rest.rpartition("}")[0].split(";"):
        within_reach(piece)
        try:
            part: Any = islpy.PwMultiAff.read_from_str(context, f"{head}{{{piece}}}")
            relation = part.get_space()
            if relation.domain_is_wrapping() or relation.range_is_wrapping():
                return None
            for kind in (islpy.dim_type.in_, islpy.dim_type.out):
                if part.has_tuple_id(kind):
                    part = part.reset_tuple_id(kind)
            if not _integral(part):
                return None
            total = part if total is None else joined(total, part, text)
        except islpy.Error:
            if exhausted(context):
                raise
            return None
    return total  # type: ignore[no-any-return]


def within_reach(piece: str) -> None:
    """Raise on a piece with more dense quotients than ISL can handle; its operation count does not see that time.

    24 parities of 24 bits take it 0.1 s, 28 take 10 s, 32 a minute.

    Raises: BudgetError: LA222.
    """
    quotients = len(_QUOTIENT.findall(piece))
    if quotients > QUOTIENTS and piece.partition("]")[0].count(",") >= QUOTIENTS:
        because = f"{quotients} quotients over more than {QUOTIENTS} axes; the limit is {QUOTIENTS} quotients"
        witness: Witness = {"quotients": quotients}
        raise BudgetError(
            Diagnostic(code="LA222", what="ISL gave up", where=(piece[:200],), because=because, witness=witness)
        )


def _integral(function: Any) -> bool:
    """Return whether every expression of a function is integral at all points of its piece."""
    found: list[tuple[Any, Any]] = []
    function.foreach_piece(lambda domain, value: found.append((domain, value)))
    for domain, value in found:
        for position in range(value.dim(islpy.dim_type.out)):
            part = value.get_at(position)
            whole = bool(part.get_denominator_val().is_one())
            if not whole and not part.ne_set(part.floor()).intersect(domain).is_empty():
                return False
    return True


def joined(left: Any, right: Any, text: str) -> Any:
    """Return the union of two functions; raise if they differ where both are defined."""
    shared = left.domain().intersect(right.domain())
    if shared.is_empty():
        return left.union_add(right)
    first, second = (f.intersect_domain(shared).as_map() for f in (left, right))
    apart = first.subtract(second).domain()
    if not apart.is_empty():
        kinds = islpy.dim_type
        chosen = islpy.Set.from_point(apart.sample_point())
        params, point = sampled(chosen)
        names = axis_names(left.get_space(), kinds.in_, len(point), "c", (), text)
        values = tuple(sampled(f.intersect_domain(chosen).range())[1] for f in (first, second))
        witness: Witness = {"at": {**params, **dict(zip(names, point, strict=True))}, "values": values}
        because = f"at {witness['at']} it has the values {values}"
        raise malformed("LA783", "two values at one point: the pieces overlap and disagree", text, because, witness)
    return left.union_add(right.subtract_domain(left.domain()))


def a_map(context: islpy.Context, text: str) -> islpy.Map:
    """Return the graph of a text, via its expressions if it is the canonical text of a function."""
    if text.endswith(EMPTY):
        return islpy.Map.read_from_str(context, text)
    within_reach(text)
    try:
        function = islpy.PwMultiAff.read_from_str(context, text)
    except islpy.Error:
        if exhausted(context):
            raise
        return islpy.Map.read_from_str(context, text)
    return function.as_map()


def a_function(context: islpy.Context, text: str) -> islpy.PwMultiAff:
    """Return the function of a canonical text."""
    if text.endswith(EMPTY):
        return islpy.PwMultiAff.from_map(islpy.Map.read_from_str(context, text))
    return islpy.PwMultiAff.read_from_str(context, text)


def a_set(context: islpy.Context, text: str) -> islpy.Set:
    """Return the set of a text."""
    return islpy.Set.read_from_str(context, text)


def function_of(relation: islpy.Map, route: int = 0) -> islpy.PwMultiAff:
    """Return the function of a single-valued relation.

    ISL's own conversion, and its lexicographic optimum as a function, lose points of some unions: a floor defined in
    one conjunction is applied to all. So the result is compared with the relation; the second way converts one disjoint
    conjunction at a time.

    Args:
        relation: The relation, single-valued.
        route: Index of the first way to try.
    """
    ways: tuple[Any, ...] = (
        lambda: islpy.PwMultiAff.from_map(relation.coalesce().compute_divs()),
        lambda: _by_parts(relation),
    )
    for way in ways[route:]:
        try:
            function: islpy.PwMultiAff = way()
            if bool(function.as_map().is_equal(relation)):
                return function
        except islpy.Error:
            if exhausted(relation.get_ctx()):
                raise
    because = "the graph of every function that it returns differs from the relation"
    where = (written(relation)[:200],)
    raise BudgetError(Diagnostic(code="LA793", what="ISL has no correct answer", where=where, because=because))


def _by_parts(relation: islpy.Map) -> islpy.PwMultiAff:
    """Return the function of a relation, converting each disjoint conjunction separately."""
    total: Any = None
    for part in relation.compute_divs().make_disjoint().get_basic_maps():
        function = islpy.PwMultiAff.from_map(part.to_map())
        total = function if total is None else total.union_add(function)
    return islpy.PwMultiAff.from_map(relation) if total is None else total


def settled(function: Any, plain: bool = False) -> str:
    """Return the canonical text of a function, a fixed point of parsing and printing; see ``written_text``."""
    text = written_text(function, plain)
    for _ in range(0 if plain else SETTLING_ROUNDS):
        if text.endswith(EMPTY):
            break
        before, text = text, written_text(islpy.PwMultiAff.read_from_str(function.get_ctx(), text))
        if text == before:
            break
    return text


def written_text(function: Any, plain: bool = False) -> str:
    """Return the text of a function; an empty one is written as a map, which keeps its axes.

    Args:
        function: The function, or a map.
        plain: Whether to define every quantified integer of its guards as a floor.
    """
    if isinstance(function, islpy.Map):
        return written(islpy.Map.empty(function.get_space()) if function.is_empty() else function)
    function = function.coalesce()
    if function.n_piece() == 0:
        return written(islpy.Map.empty(function.get_space()))
    return written(_plain(function) if plain else function)


def _plain(function: islpy.PwMultiAff) -> islpy.PwMultiAff:
    """Return a function with all quantified integers of its guards defined."""
    found: list[tuple[Any, Any]] = []
    function.foreach_piece(lambda domain, value: found.append((domain, value)))
    total: Any = None
    for domain, value in found:
        part = islpy.PwMultiAff.alloc(domain.compute_divs(), value)
        total = part if total is None else total.union_add(part)
    return total  # type: ignore[no-any-return]


def written_set(points: Any, plain: bool = False, coalesced: bool = True) -> str:
    """Return the text of a set or relation; see ``written_text``."""
    if coalesced:
        points = points.coalesce()
    return written(points.compute_divs() if plain else points)


def parsed(context: islpy.Context, text: str, is_map: bool) -> str:
    """Return a text as ISL prints it after parsing, without simplification."""
    return written((islpy.Map if is_map else islpy.Set).read_from_str(context, text))


def pairs(relation: islpy.Map) -> islpy.Set:
    """Return the triples (x, y, z) with x -> y, x -> z and y different from z."""
    width = relation.dim(islpy.dim_type.out)
    left, right = [f"a{i}" for i in range(width)], [f"b{i}" for i in range(width)]
    apart = " or ".join(f"{a} < {b}" for a, b in zip(left, right, strict=True)) or "1 = 0"
    unequal = islpy.Set.read_from_str(relation.get_ctx(), f"{{ [{', '.join([*left, *right])}] : {apart} }}")
    both = relation.flat_range_product(relation).intersect_range(unequal)
    return both.wrap().flatten()


def axis_names(space: Any, kind: Any, count: int, fallback: str, taken: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the names of dims; raise on names that could not be printed and parsed again."""
    names = []
    for position in range(count):
        name = space.get_dim_name(kind, position) if space.has_dim_name(kind, position) else None
        names.append(name or f"{fallback}{position}")
    bad = [name for name in names if not _NAME.match(name)]
    if bad or len({*names, *taken}) < len(names) + len(taken):
        because = f"names must be distinct identifiers, not {[*taken, *names]}"
        raise malformed("LA780", "the axes of this ISL text have no usable names", text, because)
    return tuple(names)


def sampled(points: islpy.Set) -> tuple[Witness, tuple[int, ...]]:
    """Return parameter values and a point of a nonempty set."""
    kinds = islpy.dim_type
    chosen = points.sample_point()
    space = points.get_space()

    def number(kind: Any, position: int) -> int:
        return int(chosen.get_coordinate_val(kind, position).to_python())

    params = {str(space.get_dim_name(kinds.param, i)): number(kinds.param, i) for i in range(points.dim(kinds.param))}
    return {**params}, tuple(number(kinds.set, i) for i in range(points.dim(kinds.set)))
