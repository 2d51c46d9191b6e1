"""Check every answer of ISL by evaluating its text with an independent parser.

The expected values follow point by point from the texts of the operands. A small box is compared at all points; a
larger or parametric one at a corner and random points, which can refute but not prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clauses import Atom, Clause, Linear
from layoutalg.piecewise.clouds import Cloud, clouds, modest, together
from layoutalg.piecewise.explicit import parsed
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read

T = TypeVar("T")
Values: TypeAlias = "tuple[list[Array], Array]"


@dataclass(frozen=True, slots=True)
class Judged:
    """At how many points an answer was checked, and whether these are all points that matter."""

    points: int
    exact: bool

    def __str__(self) -> str:
        return f"{'all' if self.exact else 'some'} {self.points} points"


class DisagreementError(Exception):
    """The answer is wrong at a point."""

    def __init__(self, what: str, at: Mapping[str, object]) -> None:
        super().__init__(f"{what} at {dict(at)}")
        self.at = dict(at)


def doubted(question: str, because: str, at: Mapping[str, object]) -> NoReturn:
    """Raise: ISL's answer is wrong."""
    raise BudgetError(
        Diagnostic(
            code="LA793",
            what="ISL's answer is wrong, and no other method worked",
            where=(question[:200],),
            because=because[:400],
            witness=at,
        )
    )


def unjudged(question: str, because: str) -> NoReturn:
    """Raise: ISL's answer could not be checked."""
    raise BudgetError(
        Diagnostic(
            code="LA794",
            what="ISL's answer could not be confirmed",
            where=(question[:200],),
            because=f"its text, or an operand's, cannot be parsed without ISL: {because}"[:400],
        )
    )


def function_like(
    text: str, wanted: Callable[[Cloud], Values], near: Sequence[Meaning], also: Sequence[Meaning] = ()
) -> None:
    """Compare a function with its expected values.

    Args:
        text: The function.
        wanted: Returns the expected values at points, and where they are defined.
        near: Texts whose inputs bound the points where anything is defined, in addition to ``text``.
        also: Other texts that ``wanted`` evaluates.

    Raises: DisagreementError: With a point. UnreadError: A text cannot be parsed.
    """
    found = read(text)
    inputs = max([found.inputs, *(meaning.inputs for meaning in near)])
    cloud = together((found, inputs), *((meaning, inputs) for meaning in near), width=inputs, also=also)
    values, covered, clash = found.values(cloud.given(found), cloud.places)
    expected, defined = wanted(cloud)
    same("defined or not", covered, defined, cloud)
    same("two values", clash, np.zeros_like(clash), cloud)
    for value, other in zip(values, expected, strict=True):
        same("another value", np.where(covered, value, 0), np.where(covered, other, 0), cloud)


def function_of(
    text: str, meant: Meaning, known: Callable[[Cloud], Array] | None = None, also: Sequence[Meaning] = ()
) -> None:
    """Compare a function with the text it was parsed from, which may define the values only by conditions.

    ``known`` returns where the parameters satisfy the given constraints; ``also`` are the texts it evaluates.
    """
    found = read(text)

    def allowed(cloud: Cloud) -> Array:
        return np.asarray(True if known is None else known(cloud))

    if all(clause.by_values(meant.inputs) for clause in meant.clauses):

        def wanted(cloud: Cloud) -> Values:
            values, covered, clash = meant.values(cloud.given(meant), cloud.places)
            same("two values", clash & allowed(cloud), np.zeros_like(clash), cloud)
            shape = cloud.shape
            return [np.broadcast_to(value, shape) for value in values], np.broadcast_to(covered & allowed(cloud), shape)

        function_like(text, wanted, [meant], [meant, *also])
        return
    cloud = together((found, found.inputs), width=found.inputs, also=[meant, *also])  # the graph is contained in it
    values, covered = valued(found, cloud)
    pair = Cloud(cloud.params, (*cloud.places, *moved(cloud, values, covered).places), cloud.count, False)
    inside = held(meant, pair) & allowed(cloud)
    same("not a value", covered & ~inside, np.zeros_like(covered), cloud)
    width = meant.inputs + meant.outputs
    cloud = together((meant, None), width=width, also=[found, *also])  # and nothing is missing
    inside = held(meant, cloud) & allowed(cloud)
    values, covered, _ = found.values(cloud.given(found), cloud.places[: meant.inputs])
    for value, place in zip(values, cloud.places[meant.inputs :], strict=True):
        covered = covered & np.asarray(value == place, dtype=bool)
    same("a value that is missing", inside & ~covered, np.zeros_like(inside), cloud)


def judged(question: str, judge: Callable[[], object]) -> None:
    """Check an answer of ISL.

    Raises: BudgetError: LA793, LA794.
    """
    try:
        twice(judge)
    except DisagreementError as error:
        doubted(question, str(error), error.at)
    except UnreadError as error:
        unjudged(question, str(error))


def twice(judge: Callable[[], object]) -> None:
    """Check an answer; retry at small points if some point has too many quantified integers to try."""
    try:
        judge()
    except UnreadError:
        with modest():
            judge()


def plainly(question: str, ask: Callable[[bool], T], judge: Callable[[T], object]) -> T:
    """Return a checked answer; if it cannot be parsed, ask again with all quantified integers defined.

    Raises: BudgetError: LA793, LA794.
    """
    unread: UnreadError | None = None
    for plain in (False, True):
        found = ask(plain)
        try:
            twice(partial(judge, found))
        except DisagreementError as error:
            doubted(question, str(error), error.at)
        except UnreadError as error:
            unread = error
        else:
            return found
    unjudged(question, str(unread))


def answered(ask: Callable[..., T], operands: Sequence[Any], judge: Callable[[T], object]) -> T:
    """Ask ISL a question that takes its operands and then ``plain``; return the checked answer.

    Raises: BudgetError: LA222, LA793, LA794.
    """
    question = f"{ask.__name__} of {' and '.join(map(str, operands))}"
    return plainly(question, lambda plain: solve(question, ask, None, *operands, plain), judge)


def meant(text: str) -> Meaning:
    """Return the meaning of a user's text; if only ISL can parse it, that of the text as ISL prints it."""
    try:
        return read(text)
    except UnreadError:
        pass
    try:
        return read(solve(text, parsed, None, text, "->" in text.partition("{")[2]))
    except UnreadError as error:
        unjudged(text, str(error))


def set_like(
    text: str, wanted: Callable[[Cloud], Array], near: Sequence[Meaning], also: Sequence[Meaning] = ()
) -> None:
    """Compare a set (or a relation, as pairs) with its expected points; see ``function_like``."""
    found = read(text)
    width = _width(found, near)
    cloud = together((found, None), *((meaning, None) for meaning in near), width=width, also=also)
    same("a point or not", held(found, cloud), wanted(cloud), cloud)


def _width(found: Meaning, near: Sequence[Meaning]) -> int:
    return max([found.inputs + found.outputs, *(meaning.inputs + meaning.outputs for meaning in near)])


def image_like(text: str, function: Meaning) -> None:
    """Compare a set with the values of a function: nothing missing and, if all points are listed, nothing extra."""
    found = read(text)
    for cloud in clouds((function, function.inputs), width=function.inputs, also=[found]):
        values, covered, _ = function.values(cloud.given(function), cloud.places)
        taken = [np.broadcast_to(value, covered.shape)[covered].reshape(-1) for value in values]
        images = Cloud(cloud.params, tuple(taken), int(covered.sum()), False)
        if images.count:
            same("a value that is missing", held(found, images), np.ones(images.shape, dtype=bool), images)
        if cloud.exact and taken:
            known = set(zip(*(line.tolist() for line in taken), strict=True))
            for every in clouds((found, None), width=function.outputs, params=cloud.params):
                members = held(found, every)
                lines = [place[members].tolist() for place in every.places]
                wrong = next((point for point in zip(*lines, strict=True) if point not in known), None)
                if wrong is not None:
                    raise DisagreementError("a point that is not a value", {**cloud.params, "value": wrong})


def inverse_of(text: str, function: Meaning, least: bool = False) -> None:
    """Compare a function with the inverse of another; with ``least``, to the least point of every value."""
    found = read(text)
    cloud = together((function, function.inputs), width=function.inputs, also=[found])
    values, covered = valued(function, cloud)
    images = picked(cloud, covered, values)
    if images.count:
        start = picked(cloud, covered, cloud.places).places
        back, inside, clash = found.values(images.given(found), images.places)
        true = np.ones(images.shape, dtype=bool)
        same("a value without a point", np.broadcast_to(inside & ~clash, true.shape), true, images)
        back = [np.broadcast_to(line, true.shape) for line in back]
        if least:
            there, defined = valued(function, Cloud(images.params, tuple(back), images.count, False))
            same("a point outside", defined, true, images)
            for value, image in zip(there, images.places, strict=True):
                same("a point with another value", value, image, images)
            same("a point that is not the least", comes_after(back, start), ~true, images)
        else:
            for line, origin in zip(back, start, strict=True):
                same("another point", line, origin, images)
    every = together((found, function.outputs), width=function.outputs, also=[function])
    back, inside = valued(found, every)
    there, covered = valued(function, moved(every, back, inside))
    same("not a value", inside & ~covered, np.zeros_like(inside), every)
    for value, place in zip(there, every.places, strict=True):
        same("another value", np.where(inside, value, 0), np.where(inside, place, 0), every)


def no_point(
    wanted: Callable[[Cloud], Array], near: Sequence[Meaning], width: int, also: Sequence[Meaning] = ()
) -> Judged:
    """Check that a predicate is false at all points of the boxes of some texts; see ``function_like``."""
    cloud = together(*((meaning, width) for meaning in near), width=width, also=also)
    found = wanted(cloud)
    same("a point", np.asarray(found), np.zeros_like(found), cloud)
    return how(cloud)


def held(meaning: Meaning, cloud: Cloud) -> Array:
    """Return which points of a cloud are in a set."""
    return np.broadcast_to(meaning.holds(cloud.given(meaning), cloud.places), cloud.shape)


def valued(meaning: Meaning, cloud: Cloud) -> Values:
    """Return the values of a function at a cloud, and where it is defined."""
    values, covered, _ = meaning.values(cloud.given(meaning), cloud.places)
    shape = cloud.shape
    return [np.broadcast_to(value, shape) for value in values], np.broadcast_to(covered, shape)


def through(steps: Sequence[Meaning], cloud: Cloud) -> Values:
    """Return the values of a chain of functions, and where all are defined."""
    values, covered = valued(steps[0], cloud)
    for step in steps[1:]:
        values, defined = valued(step, moved(cloud, values, covered))
        covered = covered & defined
    return values, covered


def moved(cloud: Cloud, values: Sequence[Array], covered: Array) -> Cloud:
    """Return the cloud of the values, 0 where undefined."""
    return Cloud(cloud.params, tuple(np.where(covered, value, 0) for value in values), cloud.count, False)


def picked(cloud: Cloud, chosen: Array, values: Sequence[Array]) -> Cloud:
    """Return the cloud of values at the chosen points."""
    shape = np.shape(chosen)
    params = {
        name: value[chosen] if isinstance(value, np.ndarray) and value.ndim else value
        for name, value in cloud.params.items()
    }
    taken = tuple(np.broadcast_to(value, shape)[chosen].reshape(-1) for value in values)
    return Cloud(params, taken, int(chosen.sum()), False)


def how(cloud: Cloud) -> Judged:
    """Return what a check at a cloud amounts to."""
    return Judged(cloud.count, cloud.exact and not cloud.params)


def comes_after(first: Sequence[Array], second: Sequence[Array]) -> Array:
    """Return where the first points are lexicographically greater than the second ones."""
    answer = np.zeros(np.shape(first[0]) if first else (), dtype=bool)
    same = np.ones_like(answer)
    for left, right in zip(first, second, strict=True):
        answer = answer | (same & np.asarray(left > right, dtype=bool))
        same = same & np.asarray(left == right, dtype=bool)
    return answer


def same(what: str, found: Array, wanted: Array, cloud: Cloud) -> None:
    """Raise at the first point where two arrays differ."""
    wrong = np.asarray(found != wanted, dtype=bool)
    if not wrong.any():
        return
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    point = [int(np.broadcast_to(place, wrong.shape)[at]) for place in cloud.places]
    params = {name: int(np.broadcast_to(value, wrong.shape)[at]) for name, value in cloud.params.items()}
    raise DisagreementError(what, {**params, "at": tuple(point)})


def value_at(text: str, params: Mapping[str, Any], point: Iterable[Any]) -> tuple[int, ...] | None:
    """Return the value of a function at one point, None if it is undefined there."""
    function = read(text)
    values, covered = valued(function, single(params, point))
    return tuple(int(value.item()) for value in values) if covered.all() else None


def member_at(text: str, params: Mapping[str, Any], point: Iterable[Any]) -> bool:
    """Return whether a set contains a point."""
    return bool(held(read(text), single(params, point)).all())


def single(params: Mapping[str, Any], point: Iterable[Any]) -> Cloud:
    """Return one point as a cloud."""
    return Cloud(params, tuple(np.array([value], dtype=object) for value in point), 1, False)


def parameters_gone(found: str, whole: Meaning, values: Mapping[str, int]) -> None:
    """Check that a text has only the parameters of another that were not substituted."""
    if set(read(found).params) - (set(whole.params) - set(values)):
        raise DisagreementError("a parameter is left", dict(values))


def fixed(meaning: Meaning, values: Mapping[str, int]) -> Meaning:
    """Return a text with numbers for some parameters; valid for bounds only."""
    clauses = tuple(_fixed(clause, values) for clause in meaning.clauses)
    params = tuple(name for name in meaning.params if name not in values)
    return Meaning(params, meaning.is_map, meaning.inputs, meaning.outputs, clauses, meaning.weight)


def _fixed(clause: Clause, values: Mapping[str, int]) -> Clause:
    facts = [
        ("zero", Linear(((clause.known[Atom("variable", name)], 1),), -value))
        for name, value in values.items()
        if Atom("variable", name) in clause.known
    ]
    return replace(clause, condition=("all", (clause.condition, *facts)))


def as_set(meaning: Meaning) -> Meaning:
    """Return the inputs of a map as a set; valid for bounds only."""
    clauses = tuple(replace(clause, places=clause.places[: meaning.inputs], inputs=0) for clause in meaning.clauses)
    return Meaning(meaning.params, False, 0, meaning.inputs, clauses, meaning.weight)


def as_inputs(meaning: Meaning) -> Meaning:
    """Return a set as a map without outputs."""
    clauses = tuple(replace(clause, inputs=len(clause.places)) for clause in meaning.clauses)
    return Meaning(meaning.params, True, meaning.outputs, 0, clauses, meaning.weight)
