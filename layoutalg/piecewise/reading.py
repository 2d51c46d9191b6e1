"""Read texts with ISL to values, or raise a named error with a witness.

Implementation notes: a function whose outputs are explicit integer expressions is read piece by piece, which keeps the
expressions; building its graph costs ISL a thousandth of reading the same text as a relation: 1 ms against 4 s for a
dense map over 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.lazy import later
from layoutalg.piecewise.budget import exhausted, renew, says, solve, written
from layoutalg.piecewise.notation import WORDS, malformed, not_affine, prepared, whole
from layoutalg.piecewise.value import Value, held, listed_pieces, settled_set, value_of

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

Witness: TypeAlias = dict[str, object]
Point: TypeAlias = tuple[int, ...]
TEXTS = 512
QUOTIENTS = 26
_QUOTIENT = re.compile(r"\bfloor\b|\bmod\b|//|%")


# texts of users


def read_function(text: object, given: str = "", operations: int | None = None) -> tuple[Value, str]:
    """Read a partial function with parameters; its domain is restricted to the given constraints.

    Args:
        text: ISL map text; pieces may overlap only if they agree.
        given: Constraints on the parameters.
        operations: ISL operation quota; None for the time limit only.

    Returns:
        The function, and the canonical text of the constraints, empty if there are none.
    """
    found = whole(text)
    if "->" not in found.partition("{")[2]:
        raise malformed("LA780", "this is not the text of an ISL map", found, "no arrow from inputs to outputs")
    return _read_function(found, prepared(given, "given"), operations)


@lru_cache(maxsize=TEXTS)
def _read_function(text: str, given: str, operations: int | None) -> tuple[Value, str]:
    return solve(text, _function, operations, text, given)


def read_set(text: object) -> Value:
    """Read a set with parameters."""
    return _read_set(whole(text))


@lru_cache(maxsize=TEXTS)
def _read_set(text: str) -> Value:
    return solve(text, _set, None, text)


def _function(context: islpy.Context, text: str, given: str) -> tuple[Value, str]:
    relation, constraints = _relation(context, text, given)
    return value_of(relation, function_of_text, (text, given), text), constraints


def function_of_text(context: islpy.Context, text: str, given: str = "") -> Any:
    """Return the function of a user's text as ISL holds it."""
    return _relation(context, text, given)[0]


def _relation(context: islpy.Context, text: str, given: str) -> tuple[Any, str]:
    """Return the function of a text, or its empty relation, and the canonical text of the constraints."""
    function: Any = explicit(context, text)
    relation: Any = function
    if function is None:
        relation = _flat(_parsed(context, islpy.Map.read_from_str, text, "map"), text)
    constraints = ""
    if given.strip():
        allowed = _constraints(context, given, _names(relation.get_space()))
        relation = relation.align_params(allowed.get_space()).intersect_params(allowed)
        allowed = allowed.align_params(relation.get_space().params())
        constraints = "" if allowed.plain_is_universe() else settled_set(allowed.coalesce())[0]
    if function is None:
        if not relation.is_single_valued():
            witness = _two_values(relation)
            because = f"at {witness['at']} it has the values {witness['values']}"
            raise malformed("LA783", "two values at one point: the pieces overlap and disagree", text, because, witness)
        if not relation.is_empty():
            relation = function_of(relation)
    return relation, constraints


def _names(space: Any, kind: int | None = None) -> list[str]:
    """Return the names of the parameters, or of the dims of a kind, whose nameless ones are c0, c1, ..."""
    kind = islpy.dim_type.param if kind is None else kind
    return [space.get_dim_name(kind, i) or f"c{i}" for i in range(space.dim(kind))]


def _set(context: islpy.Context, text: str) -> Value:
    return value_of(set_of_text(context, text), set_of_text, (text,), text)


def set_of_text(context: islpy.Context, text: str) -> Any:
    """Return the set of a user's text as ISL holds it."""
    points = _parsed(context, islpy.Set.read_from_str, text, "set")
    return _flat(points.from_params() if points.is_params() else points, text)


def _parsed(context: islpy.Context, reader: Any, text: str, kind: str) -> Any:
    """Read a user's text; raise an error that says what is wrong with it."""
    try:
        return reader(context, text)
    except islpy.Error as error:
        if exhausted(context):
            raise
        term = not_affine(text)
        if term is not None:
            because = f"{term} multiplies or divides by a variable; substitute a number, or use separate axes"
            raise malformed("LA781", "this text is not affine", text, because, {"term": term}) from None
        raise malformed("LA780", f"this is not the text of an ISL {kind}", text, f"ISL says: {says(error)}") from None


def _constraints(context: islpy.Context, text: str, params: Sequence[str]) -> Any:
    """Read constraints on parameters: conditions, or the text of a parameter set."""
    condition = prepared(text, "given").strip()
    if not condition.startswith(("[", "{")):
        names = sorted({*params, *(n for n in re.findall(r"[A-Za-z_]\w*", condition) if n not in WORDS)})
        condition = f"[{', '.join(names)}] -> {{ : {condition} }}"
    allowed = _parsed(context, islpy.Set.read_from_str, whole(condition, "given"), "parameter set")
    if not allowed.is_params():
        raise malformed("LA780", "'given' must constrain only parameters", text, "it has axes")
    if allowed.is_empty():
        what = "the constraints on the parameters contradict each other"
        raise malformed("LA784", what, text, "no parameter values satisfy them", {"given": text.strip()})
    return allowed


def _flat(relation: Any, text: str) -> Any:
    """Return the relation or set without tuple names; raise on nested tuples."""
    kinds = islpy.dim_type
    is_map = isinstance(relation, islpy.Map)
    if relation.domain_is_wrapping() or relation.range_is_wrapping() if is_map else relation.is_wrapping():
        raise malformed("LA780", "this ISL text nests tuples", text, "axes must be written flat, as in [i, j]")
    if not is_map:
        return relation.reset_tuple_id() if relation.has_tuple_id() else relation
    for kind in (kinds.in_, kinds.out):
        if relation.has_tuple_id(kind):
            relation = relation.reset_tuple_id(kind)
    return relation


def _two_values(relation: islpy.Map) -> Witness:
    axes = _names(relation.get_space(), islpy.dim_type.in_)
    params, found = sampled(pairs(relation))
    first, width = len(axes), (len(found) - len(axes)) // 2
    at = {**params, **dict(zip(axes, found[:first], strict=True))}
    return {"at": at, "values": (found[first : first + width], found[first + width :])}


def pairs(relation: islpy.Map) -> islpy.Set:
    """Return the triples (x, y, z) with x -> y, x -> z and y different from z."""
    width = relation.dim(islpy.dim_type.out)
    left, right = [f"a{i}" for i in range(width)], [f"b{i}" for i in range(width)]
    apart = " or ".join(f"{a} < {b}" for a, b in zip(left, right, strict=True)) or "1 = 0"
    unequal = islpy.Set.read_from_str(relation.get_ctx(), f"{{ [{', '.join([*left, *right])}] : {apart} }}")
    both = relation.flat_range_product(relation).intersect_range(unequal)
    return both.wrap().flatten()


def sampled(points: islpy.Set) -> tuple[Witness, Point]:
    """Return parameter values and a point of a nonempty set."""
    kinds = islpy.dim_type
    chosen, space = points.sample_point(), points.get_space()

    def number(kind: Any, position: int) -> int:
        return int(chosen.get_coordinate_val(kind, position).to_python())

    params: Witness = {
        str(space.get_dim_name(kinds.param, i)): number(kinds.param, i) for i in range(points.dim(kinds.param))
    }
    return params, tuple(number(kinds.set, i) for i in range(points.dim(kinds.set)))


# functions as ISL holds them


def explicit(context: islpy.Context, text: str) -> islpy.PwMultiAff | None:
    """Return the function of a text whose outputs are integer expressions; None for other texts.

    ISL adds the values of overlapping pieces, so each piece is read alone. A quotient outside a floor is left to the
    reader of relations, which treats it as a condition.
    """
    head, _, rest = text.partition("{")
    total: Any = None
    for piece in rest.rpartition("}")[0].split(";"):
        within_reach(piece)
        renew(context)
        try:
            part: Any = islpy.PwMultiAff.read_from_str(context, f"{head}{{{piece}}}")
            space = part.get_space()
            if space.domain_is_wrapping() or space.range_is_wrapping():
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
    """
    quotients = len(_QUOTIENT.findall(piece))
    if quotients > QUOTIENTS and piece.partition("]")[0].count(",") >= QUOTIENTS:
        because = f"{quotients} quotients over more than {QUOTIENTS} axes; the limit is {QUOTIENTS} quotients"
        raise BudgetError(Diagnostic("LA222", "ISL gave up", (piece[:200],), because, {"quotients": quotients}))


def _integral(function: Any) -> bool:
    """Return whether every expression of a function is integral at all points of its piece."""
    for domain, value in listed_pieces(function):
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
        chosen = islpy.Set.from_point(apart.sample_point())
        params, point = sampled(chosen)
        names = _names(left.get_space(), islpy.dim_type.in_)
        values = tuple(sampled(f.intersect_domain(chosen).range())[1] for f in (first, second))
        witness: Witness = {"at": {**params, **dict(zip(names, point, strict=True))}, "values": values}
        because = f"at {witness['at']} it has the values {values}"
        raise malformed("LA783", "two values at one point: the pieces overlap and disagree", text, because, witness)
    return left.union_add(right.subtract_domain(left.domain()))


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
        lambda: _converted(relation),
        lambda: _by_parts(relation),
    )
    for index, way in enumerate(ways[route:], route):
        try:
            function: islpy.PwMultiAff = way()
            same = bool(function.domain().is_equal(relation.domain()))
            renew(relation.get_ctx())
            # the conversion refuses relations of several values; for others inclusion is equality, at half the time
            graph = function.as_map()
            if same and (graph.is_equal(relation) if index else graph.is_subset(relation)):
                return function
        except islpy.Error:
            if exhausted(relation.get_ctx()):
                raise
    because = "the graph of every function that it returns differs from the relation"
    where = (written(relation)[:200],)
    raise BudgetError(Diagnostic(code="LA793", what="ISL has no correct answer", where=where, because=because))


def _converted(relation: islpy.Map) -> Any:
    """Return ISL's conversion of a relation, its floors defined."""
    if any(part.dim(islpy.dim_type.div) for part in relation.get_basic_maps()):
        relation = relation.coalesce().compute_divs()
    renew(relation.get_ctx())
    return islpy.PwMultiAff.from_map(relation)


def _by_parts(relation: islpy.Map) -> islpy.PwMultiAff:
    """Return the function of a relation, converting each disjoint conjunction separately."""
    total: Any = None
    for part in relation.compute_divs().make_disjoint().get_basic_maps():
        function = islpy.PwMultiAff.from_map(part.to_map())
        total = function if total is None else total.union_add(function)
    return islpy.PwMultiAff.from_map(relation) if total is None else total


def a_map(context: islpy.Context, value: Value) -> Any:
    """Return the graph of a function."""
    if len(value.axes) > QUOTIENTS and value.size[1] > QUOTIENTS:
        within_reach(written(held(context, value)))
    return held(context, value).as_map()


def a_set(context: islpy.Context, text: str) -> islpy.Set:
    """Return the set of a text."""
    return islpy.Set.read_from_str(context, text)
