"""Every answer of ISL is evaluated before it is believed, by a reader of its text that shares nothing with ISL.

Main statements: an answer is a text; what it should say follows from the texts it was made of, point by point. All
points of a small box are compared, of a larger or parametric one a corner and points at random: that refutes, and does
not prove.
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
    """How an answer was compared: at how many points, and whether no other point can matter."""

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
    """Raise that ISL gave an answer that does not hold."""
    raise BudgetError(
        Diagnostic(
            code="LA793",
            what="ISL gave an answer that does not hold, and no other way to it was found",
            where=(question[:200],),
            because=because[:400],
            witness=at,
        )
    )


def unjudged(question: str, because: str) -> NoReturn:
    """Raise that an answer of ISL could not be judged."""
    raise BudgetError(
        Diagnostic(
            code="LA794",
            what="an answer of ISL could not be confirmed",
            where=(question[:200],),
            because=f"its text, or one it was made of, is outside what is read without ISL: {because}"[:400],
        )
    )


def function_like(
    text: str, wanted: Callable[[Cloud], Values], near: Sequence[Meaning], also: Sequence[Meaning] = ()
) -> None:
    """Compare a function with what it should be.

    Args:
        text: The function.
        wanted: Values and where they are defined, at points.
        near: Texts whose inputs bound the points where anything is defined; the answer itself is one.
        also: The other texts that ``wanted`` evaluates.

    Raises: DisagreementError: with a point. UnreadError: a text that is not read.
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
    """Compare a function with the text it was read from, which may give the values by conditions only.

    ``known`` tells where the parameters satisfy what is given, ``also`` are the texts it evaluates.
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
    cloud = together((found, found.inputs), width=found.inputs, also=[meant, *also])  # the graph lies inside
    values, covered = valued(found, cloud)
    pair = Cloud(cloud.params, (*cloud.places, *moved(cloud, values, covered).places), cloud.count, False)
    inside = held(meant, pair) & allowed(cloud)
    same("not a value", covered & ~inside, np.zeros_like(covered), cloud)
    width = meant.inputs + meant.outputs
    cloud = together((meant, None), width=width, also=[found, *also])  # and nothing is left out
    inside = held(meant, cloud) & allowed(cloud)
    values, covered, _ = found.values(cloud.given(found), cloud.places[: meant.inputs])
    for value, place in zip(values, cloud.places[meant.inputs :], strict=True):
        covered = covered & np.asarray(value == place, dtype=bool)
    same("a value that is missing", inside & ~covered, np.zeros_like(inside), cloud)


def judged(question: str, judge: Callable[[], object]) -> None:
    """Judge an answer of ISL.

    Raises: BudgetError: LA793, LA794.
    """
    try:
        twice(judge)
    except DisagreementError as error:
        doubted(question, str(error), error.at)
    except UnreadError as error:
        unjudged(question, str(error))


def twice(judge: Callable[[], object]) -> None:
    """Judge an answer; where quantified integers can be too many at some of the points, at modest points."""
    try:
        judge()
    except UnreadError:
        with modest():
            judge()


def plainly(question: str, ask: Callable[[bool], T], judge: Callable[[T], object]) -> T:
    """Return an answer that was judged; asked for once more, all quantified integers defined, where it is not read.

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
    """Return the answer to a question of ISL that takes its operands and then ``plain``, judged.

    Raises: BudgetError: LA222, LA793, LA794.
    """
    question = f"{ask.__name__} of {' and '.join(map(str, operands))}"
    return plainly(question, lambda plain: solve(question, ask, None, *operands, plain), judge)


def meant(text: str) -> Meaning:
    """Return the meaning of a text from outside; of one in a syntax that only ISL knows, of what ISL prints for it."""
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
    """Compare a set (or a relation, as pairs) with what it should hold; see ``function_like``."""
    found = read(text)
    width = _width(found, near)
    cloud = together((found, None), *((meaning, None) for meaning in near), width=width, also=also)
    same("a point or not", held(found, cloud), wanted(cloud), cloud)


def _width(found: Meaning, near: Sequence[Meaning]) -> int:
    return max([found.inputs + found.outputs, *(meaning.inputs + meaning.outputs for meaning in near)])


def image_like(text: str, function: Meaning) -> None:
    """Compare a set with the values of a function: what is missing and, where all points are listed, what is extra."""
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
    """Compare a function with the inverse of another; with ``least``, with the least point of every value."""
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
    """Confirm that nothing holds at any point of the boxes of some texts; see ``function_like``."""
    cloud = together(*((meaning, width) for meaning in near), width=width, also=also)
    found = wanted(cloud)
    same("a point", np.asarray(found), np.zeros_like(found), cloud)
    return how(cloud)


def held(meaning: Meaning, cloud: Cloud) -> Array:
    """Return where the points of a cloud belong to a set."""
    return np.broadcast_to(meaning.holds(cloud.given(meaning), cloud.places), cloud.shape)


def valued(meaning: Meaning, cloud: Cloud) -> Values:
    """Return the values of a function at a cloud, and where it is defined."""
    values, covered, _ = meaning.values(cloud.given(meaning), cloud.places)
    shape = cloud.shape
    return [np.broadcast_to(value, shape) for value in values], np.broadcast_to(covered, shape)


def through(steps: Sequence[Meaning], cloud: Cloud) -> Values:
    """Return the values of functions one after the other, and where all have one."""
    values, covered = valued(steps[0], cloud)
    for step in steps[1:]:
        values, defined = valued(step, moved(cloud, values, covered))
        covered = covered & defined
    return values, covered


def moved(cloud: Cloud, values: Sequence[Array], covered: Array) -> Cloud:
    """Return the cloud of the values, 0 where a function is not defined."""
    return Cloud(cloud.params, tuple(np.where(covered, value, 0) for value in values), cloud.count, False)


def picked(cloud: Cloud, chosen: Array, values: Sequence[Array]) -> Cloud:
    """Return the cloud of values at the points that are chosen."""
    shape = np.shape(chosen)
    params = {
        name: value[chosen] if isinstance(value, np.ndarray) and value.ndim else value
        for name, value in cloud.params.items()
    }
    taken = tuple(np.broadcast_to(value, shape)[chosen].reshape(-1) for value in values)
    return Cloud(params, taken, int(chosen.sum()), False)


def how(cloud: Cloud) -> Judged:
    """Return how a cloud judges."""
    return Judged(cloud.count, cloud.exact and not cloud.params)


def comes_after(first: Sequence[Array], second: Sequence[Array]) -> Array:
    """Return where the first points come after the second ones in lexicographic order."""
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
    """Return the value of a function at one point, None where it has none."""
    function = read(text)
    values, covered = valued(function, single(params, point))
    return tuple(int(value.item()) for value in values) if covered.all() else None


def member_at(text: str, params: Mapping[str, Any], point: Iterable[Any]) -> bool:
    """Return whether one point belongs to a set."""
    return bool(held(read(text), single(params, point)).all())


def single(params: Mapping[str, Any], point: Iterable[Any]) -> Cloud:
    """Return one point as a cloud."""
    return Cloud(params, tuple(np.array([value], dtype=object) for value in point), 1, False)


def parameters_gone(found: str, whole: Meaning, values: Mapping[str, int]) -> None:
    """Confirm that a text has no parameters but those of another without some."""
    if set(read(found).params) - (set(whole.params) - set(values)):
        raise DisagreementError("a parameter is left", dict(values))


def fixed(meaning: Meaning, values: Mapping[str, int]) -> Meaning:
    """Return a text with numbers for some parameters, for its bounds only."""
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
    """Return the inputs of a map as a set, for their bounds only."""
    clauses = tuple(replace(clause, places=clause.places[: meaning.inputs], inputs=0) for clause in meaning.clauses)
    return Meaning(meaning.params, False, 0, meaning.inputs, clauses, meaning.weight)


def as_inputs(meaning: Meaning) -> Meaning:
    """Return a set as a map without outputs."""
    clauses = tuple(replace(clause, inputs=len(clause.places)) for clause in meaning.clauses)
    return Meaning(meaning.params, True, meaning.outputs, 0, clauses, meaning.weight)
