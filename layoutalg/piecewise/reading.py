"""Parse the text of a function or set to its canonical text, or raise a named error with a witness.

Implementation notes: a function whose outputs are explicit integer expressions is parsed piece by piece, which keeps
the expressions; recovering them from a relation costs ISL far more and is done only for relational texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutalg.ground import limits
from layoutalg.ground.cache import kept
from layoutalg.ground.lazy import later
from layoutalg.piecewise import confirm
from layoutalg.piecewise.budget import exhausted, says, solve, written
from layoutalg.piecewise.explicit import (
    SETTLING_ROUNDS,
    Witness,
    axis_names,
    explicit,
    function_of,
    pairs,
    sampled,
    settled,
    written_set,
)
from layoutalg.piecewise.notation import WORDS, malformed, not_affine, prepared, whole

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")


@dataclass(frozen=True, slots=True)
class Reading:
    """A function or set in canonical form: texts, parameters, axes and (for a function) outputs."""

    text: str
    given: str
    params: tuple[str, ...]
    axes: tuple[str, ...]
    outputs: tuple[str, ...] = ()


def _parse(context: islpy.Context, reader: Any, text: str, kind: str) -> Any:
    """Parse a user's text; raise an error that says what is wrong with it."""
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


def _conditions(text: str, params: Sequence[str] = ()) -> str:
    """Return constraints on parameters (conditions, or the text of a parameter set) as the text of a set."""
    condition = prepared(text, "given").strip()
    if condition.startswith(("[", "{")):
        return whole(condition, "given")
    names = sorted({*params, *(n for n in re.findall(r"[A-Za-z_]\w*", condition) if n not in WORDS)})
    return whole(f"[{', '.join(names)}] -> {{ : {condition} }}" if condition else "{ : }", "given")


def _context(context: islpy.Context, text: str, params: Sequence[str]) -> islpy.Set:
    """Parse constraints on parameters."""
    known = _parse(context, islpy.Set.read_from_str, _conditions(text, params), "parameter set")
    if not known.is_params():
        raise malformed("LA780", "'given' must constrain only parameters", text, "it has axes")
    if known.is_empty():
        what = "the constraints on the parameters contradict each other"
        raise malformed("LA784", what, text, "no parameter values satisfy them", {"given": text.strip()})
    return known  # type: ignore[no-any-return]


def _open(relation: Any, text: str) -> Any:
    """Return the relation or set without tuple names; raise on nested tuples."""
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


def _set_text(points: islpy.Set, plain: bool = False) -> str:
    if plain:
        return written_set(points, plain)
    text = written(points.coalesce())
    for _ in range(SETTLING_ROUNDS):
        before, text = text, written(islpy.Set.read_from_str(points.get_ctx(), text).coalesce())
        if text == before:
            break
    return text


def read_function(text: object, given: str = "", operations: int | None = None) -> Reading:
    """Parse a partial function with parameters; its domain is restricted to the given constraints.

    Args:
        text: ISL map text; pieces may overlap only if they agree.
        given: Constraints on the parameters.
        operations: ISL operation quota; None for the time limit only.

    Raises: MalformedError: LA780, LA781, LA782, LA783, LA784. BudgetError: LA222, LA793, LA794.
    """
    written = whole(text)
    if "->" not in written.partition("{")[2]:
        raise malformed("LA780", "this is not the text of an ISL map", written, "no arrow from inputs to outputs")
    return _read_function(written, prepared(given, "given"), operations)


@kept(limits.ISL_CACHE_BYTES)
def _read_function(written: str, given: str, operations: int | None) -> Reading:
    def judge(found: Reading) -> None:
        meant = confirm.meant(written)
        if not given.strip():
            confirm.function_of(found.text, meant)
            return
        context = confirm.meant(_conditions(given))
        confirm.set_like(found.given or "{ : }", lambda cloud: confirm.held(context, cloud), [context])
        confirm.function_of(found.text, meant, lambda cloud: context.holds(cloud.given(context), ()), [context])

    return confirm.plainly(written, lambda plain: solve(written, _function, operations, written, given, plain), judge)


def _function(context: islpy.Context, written: str, given: str, plain: bool) -> Reading:
    kinds = islpy.dim_type
    function: Any = explicit(context, written)
    relation: Any = function
    if function is None:
        relation = _open(_parse(context, islpy.Map.read_from_str, written, "map"), written)
    first = axis_names(relation.get_space(), kinds.param, relation.dim(kinds.param), "p", (), written)
    constraints = ""
    if given.strip():
        known = _context(context, given, first)
        relation = relation.align_params(known.get_space()).intersect_params(known)
        known = known.align_params(relation.get_space().params())
        constraints = "" if known.plain_is_universe() else _set_text(known)
    params = axis_names(relation.get_space(), kinds.param, relation.dim(kinds.param), "p", (), written)
    axes = axis_names(relation.get_space(), kinds.in_, relation.dim(kinds.in_), "c", params, written)
    width = relation.dim(kinds.out)
    try:
        outputs = axis_names(relation.get_space(), kinds.out, width, "y", (), written)
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
            relation = function_of(relation)
    return Reading(settled(relation, plain), constraints, params, axes, outputs)


def read_set(text: object) -> Reading:
    """Parse a set with parameters.

    Raises: MalformedError: LA780, LA781, LA782. BudgetError: LA222, LA793, LA794.
    """
    return _read_set(whole(text))


@kept(limits.ISL_CACHE_BYTES)
def _read_set(written: str) -> Reading:
    def judge(found: Reading) -> None:
        meant = confirm.meant(written)
        confirm.set_like(found.text, lambda cloud: confirm.held(meant, cloud), [meant])

    return confirm.plainly(written, lambda plain: solve(written, _set, None, written, plain), judge)


def _set(context: islpy.Context, written: str, plain: bool) -> Reading:
    kinds = islpy.dim_type
    points = _parse(context, islpy.Set.read_from_str, written, "set")
    if points.is_params():
        points = points.from_params()
    points = _open(points, written)
    params = axis_names(points.get_space(), kinds.param, points.dim(kinds.param), "p", (), written)
    axes = axis_names(points.get_space(), kinds.set, points.dim(kinds.set), "c", params, written)
    for position, name in enumerate(axes):
        points = points.set_dim_name(kinds.set, position, name)
    return Reading(_set_text(points, plain), "", params, axes)


def _two_values(relation: islpy.Map, axes: Sequence[str]) -> Witness:
    params, found = sampled(pairs(relation))
    first, width = len(axes), (len(found) - len(axes)) // 2
    at = {**params, **dict(zip(axes, found[:first], strict=True))}
    return {"at": at, "values": (found[first : first + width], found[first + width :])}
