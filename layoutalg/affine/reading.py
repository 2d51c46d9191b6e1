"""From the text of a parametric function or set to its canonical text, or to a named error with a witness.

Main definitions: ``read_function``, ``read_set``, ``Reading``, ``session`` (a context of ISL under a quota).

Implementation notes: a function whose outputs are explicit integer expressions is read piece by piece, which keeps the
expressions; recovering them from a relation costs ISL far more. Only relational texts take that way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutalg.affine.isl import DEFAULT_OPERATIONS, SETTLING_ROUNDS, _exhausted, _quota
from layoutalg.affine.notation import malformed, not_affine, prepared
from layoutalg.errors import AdmissibilityError, Diagnostic

if TYPE_CHECKING:
    import islpy

Witness: TypeAlias = dict[str, object]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Reading:
    """A relation or set in canonical form: texts, parameters, axes and (for a function) outputs."""

    text: str
    context: str
    params: tuple[str, ...]
    axes: tuple[str, ...]
    outputs: tuple[str, ...] = ()


@contextmanager
def session(question: str, operations: int = DEFAULT_OPERATIONS) -> Iterator[islpy.Context]:
    """Run ISL in a fresh context; no error of ISL leaves it raw.

    Raises:
        BudgetError: LA222, the quota ran out.
        AdmissibilityError: LA791, ISL refuses for another reason.
    """
    import islpy

    try:
        with _quota(operations, question[:200]) as context:
            yield context
    except islpy.Error as error:
        raise AdmissibilityError(
            Diagnostic(
                code="LA791", what="ISL refuses this operation", where=(question[:200],), because=f"ISL says: {error}"
            )
        ) from None


def _parse(context: islpy.Context, reader: Any, text: str, kind: str) -> Any:
    """Read outside text, naming what is wrong with it."""
    import islpy

    try:
        return reader(context, text)
    except islpy.Error as error:
        if _exhausted(context):
            raise
        term = not_affine(text)
        if term is not None:
            because = f"{term} multiplies or divides by a variable; substitute a number, or keep the axes apart"
            raise malformed("LA781", "this text is not affine", text, because, {"term": term}) from None
        raise malformed("LA780", f"this is not the text of an ISL {kind}", text, f"ISL says: {error}") from None


def _names(space: Any, kind: Any, count: int, fallback: str, taken: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the names of dims, refusing what could not be written again."""
    names = []
    for position in range(count):
        name = space.get_dim_name(kind, position) if space.has_dim_name(kind, position) else None
        names.append(name or f"{fallback}{position}")
    bad = [name for name in names if not _NAME.match(name)]
    if bad or len({*names, *taken}) < len(names) + len(taken):
        because = f"names must be distinct identifiers, not {[*taken, *names]}"
        raise malformed("LA780", "the axes of this ISL text have no usable names", text, because)
    return tuple(names)


def _context(context: islpy.Context, text: str, params: Sequence[str]) -> islpy.Set:
    """Read constraints on parameters: conditions, or the canonical text of a parameter set."""
    import islpy

    condition = prepared(text, "context").strip()
    written = condition
    if not condition.startswith(("[", "{")):
        names = sorted({*params, *(n for n in re.findall(r"[A-Za-z_]\w*", condition) if not _is_word(n))})
        written = f"[{', '.join(names)}] -> {{ : {condition} }}" if condition else "{ : }"
    known = _parse(context, islpy.Set.read_from_str, written, "parameter set")
    if not known.is_params():
        raise malformed("LA780", "the context must constrain parameters only", text, "it has axes of its own")
    if known.is_empty():
        because = "no parameter values satisfy the context"
        raise malformed("LA784", "the context is inconsistent", text, because, {"context": condition})
    return known  # type: ignore[no-any-return]


def _is_word(name: str) -> bool:
    return name in {"mod", "and", "or", "not", "exists", "floor", "ceil", "floord", "ceild", "min", "max", "true"}


def _open(relation: Any, text: str) -> Any:
    """Return the relation or set without tuple names; nested tuples are refused."""
    import islpy

    kinds = islpy.dim_type
    if isinstance(relation, islpy.Map):
        if relation.domain_is_wrapping() or relation.range_is_wrapping():
            raise malformed("LA780", "this ISL text nests tuples", text, "axes must be written flat, as in [i, j]")
        for kind in (kinds.in_, kinds.out):
            if relation.has_tuple_id(kind):
                relation = relation.reset_tuple_id(kind)
        return relation
    if relation.is_wrapping():
        raise malformed("LA780", "this ISL text nests tuples", text, "axes must be written flat, as in [i, j]")
    return relation.reset_tuple_id() if relation.has_tuple_id() else relation


def _set_text(points: islpy.Set) -> str:
    import islpy

    text = str(points.coalesce())
    for _ in range(SETTLING_ROUNDS):
        before, text = text, str(islpy.Set.read_from_str(points.get_ctx(), text).coalesce())
        if text == before:
            break
    return text


def read_function(text: object, given: str = "") -> Reading:
    """Read a partial function with parameters; its domain is cut down to the context.

    Args:
        text: ISL map text; pieces may overlap only where they agree.
        given: Constraints on the parameters.

    Raises:
        MalformedError: LA780 no text of a map, LA781 not affine, LA782 an unclear quotient, LA783 two values at one
            point, LA784 an inconsistent context.
        BudgetError: LA222, the quota ran out.
    """
    import islpy

    kinds = islpy.dim_type
    written = prepared(text, "text")
    if "->" not in written.partition("{")[2]:
        raise malformed("LA780", "this is not the text of an ISL map", written, "no arrow from inputs to outputs")
    with session(written) as context:
        function: Any = _explicit(context, written)
        relation: Any = function
        if function is None:
            relation = _open(_parse(context, islpy.Map.read_from_str, written, "map"), written)
        first = _names(relation.get_space(), kinds.param, relation.dim(kinds.param), "p", (), written)
        known = _context(context, given, first)
        relation = relation.align_params(known.get_space())
        relation = relation.intersect_params(known)
        known = known.align_params(relation.get_space().params())
        params = _names(relation.get_space(), kinds.param, relation.dim(kinds.param), "p", (), written)
        axes = _names(relation.get_space(), kinds.in_, relation.dim(kinds.in_), "c", params, written)
        width = relation.dim(kinds.out)
        try:
            outputs = _names(relation.get_space(), kinds.out, width, "y", (), written)
        except ValueError:
            outputs = tuple(f"y{position}" for position in range(width))
        for position, name in enumerate(axes):
            if function is None:
                relation = relation.set_dim_name(kinds.in_, position, name)
            else:
                relation = relation.set_dim_id(kinds.in_, position, islpy.Id.read_from_str(context, name))
        if function is None:
            if not relation.is_single_valued():
                witness = _two_values(relation, axes)
                because = f"at {witness['at']} it has the values {witness['values']}"
                raise malformed(
                    "LA783", "two values at one point: the pieces overlap and disagree", written, because, witness
                )
            if not relation.is_empty():
                relation = islpy.PwMultiAff.from_map(relation.coalesce())
        text_of_context = "" if known.plain_is_universe() else _set_text(known)
        return Reading(_settled(relation), text_of_context, params, axes, outputs)


def _explicit(context: islpy.Context, text: str) -> islpy.PwMultiAff | None:
    """Return the function of a text that gives each output as an integer expression; None where it does not.

    ISL adds the values of pieces that overlap, so each piece is read alone. A quotient outside a floor is left to the
    reader of relations, which takes it as a condition.
    """
    import islpy

    head, _, rest = text.partition("{")
    total: Any = None
    for piece in rest.rpartition("}")[0].split(";"):
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
            if _exhausted(context):
                raise
            return None
    return total  # type: ignore[no-any-return]


def _integral(function: Any) -> bool:
    """Return whether no expression of a function has a denominator outside a floor."""
    import islpy

    found: list[bool] = []

    def look(_: Any, value: Any) -> None:
        for position in range(value.dim(islpy.dim_type.out)):
            found.append(bool(value.get_at(position).get_denominator_val().is_one()))

    function.foreach_piece(look)
    return all(found)


def joined(left: Any, right: Any, text: str) -> Any:
    """Return two functions as one, refused where both are defined and differ."""
    import islpy

    shared = left.domain().intersect(right.domain())
    if shared.is_empty():
        return left.union_add(right)
    first, second = (f.intersect_domain(shared).as_map() for f in (left, right))
    apart = first.subtract(second).domain()
    if not apart.is_empty():
        kinds = islpy.dim_type
        chosen = islpy.Set.from_point(apart.sample_point())
        params, point = sampled(chosen)
        names = _names(left.get_space(), kinds.in_, len(point), "c", (), text)
        values = tuple(sampled(f.intersect_domain(chosen).range())[1] for f in (first, second))
        witness: Witness = {"at": {**params, **dict(zip(names, point, strict=True))}, "values": values}
        because = f"at {witness['at']} it has the values {values}"
        raise malformed("LA783", "two values at one point: the pieces overlap and disagree", text, because, witness)
    return left.union_add(right.subtract_domain(left.domain()))


def _settled(function: Any) -> str:
    """Return the canonical text of a function, a fixed point of reading and writing."""
    import islpy

    text = written_text(function)
    for _ in range(SETTLING_ROUNDS):
        if text.endswith(": false }"):
            break
        before, text = text, written_text(islpy.PwMultiAff.read_from_str(function.get_ctx(), text))
        if text == before:
            break
    return text


def read_set(text: object) -> Reading:
    """Read a set with parameters.

    Raises:
        MalformedError: LA780 no text of a set, LA781 not affine, LA782 an unclear quotient.
        BudgetError: LA222, the quota ran out.
    """
    import islpy

    kinds = islpy.dim_type
    written = prepared(text, "text")
    with session(written) as context:
        points = _parse(context, islpy.Set.read_from_str, written, "set")
        if points.is_params():
            points = points.from_params()
        points = _open(points, written)
        params = _names(points.get_space(), kinds.param, points.dim(kinds.param), "p", (), written)
        axes = _names(points.get_space(), kinds.set, points.dim(kinds.set), "c", params, written)
        for position, name in enumerate(axes):
            points = points.set_dim_name(kinds.set, position, name)
        return Reading(_set_text(points), "", params, axes)


def sampled(points: islpy.Set) -> tuple[Witness, tuple[int, ...]]:
    """Return parameter values and a point of a set that is not empty."""
    import islpy

    kinds = islpy.dim_type
    chosen = points.sample_point()
    space = points.get_space()

    def number(kind: Any, position: int) -> int:
        return int(chosen.get_coordinate_val(kind, position).to_python())

    params = {str(space.get_dim_name(kinds.param, i)): number(kinds.param, i) for i in range(points.dim(kinds.param))}
    return {**params}, tuple(number(kinds.set, i) for i in range(points.dim(kinds.set)))


def pairs(relation: islpy.Map) -> islpy.Set:
    """Return the triples (x, y, z) with x -> y, x -> z and y different from z."""
    import islpy

    width = relation.dim(islpy.dim_type.out)
    left, right = [f"a{i}" for i in range(width)], [f"b{i}" for i in range(width)]
    apart = " or ".join(f"{a} < {b}" for a, b in zip(left, right, strict=True)) or "1 = 0"
    unequal = islpy.Set.read_from_str(relation.get_ctx(), f"{{ [{', '.join([*left, *right])}] : {apart} }}")
    both = relation.flat_range_product(relation).intersect_range(unequal)
    return both.wrap().flatten()


def _two_values(relation: islpy.Map, axes: Sequence[str]) -> Witness:
    params, found = sampled(pairs(relation))
    first, width = len(axes), (len(found) - len(axes)) // 2
    at = {**params, **dict(zip(axes, found[:first], strict=True))}
    return {"at": at, "values": (found[first : first + width], found[first + width :])}


def written_text(function: Any) -> str:
    """Return the text of a function; an empty one is written as a map, which keeps its axes."""
    import islpy

    if isinstance(function, islpy.Map):
        return str(islpy.Map.empty(function.get_space()) if function.is_empty() else function)
    function = function.coalesce()
    return str(islpy.Map.empty(function.get_space()) if function.n_piece() == 0 else function)
