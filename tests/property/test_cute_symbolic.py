"""Symbolic layouts against the concrete algebra at many sizes, and entailment against enumeration.

The judge reads results through their printed form, evaluated by Python with exact fractions, so that it shares no code
with the terms; functions are compared by table.
"""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from functools import cache

from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.cute.symbolic import Assumptions, SymbolicLayout
from layoutalg.ground.errors import AdmissibilityError, MalformedError

NAMES = ("M", "N", "K", "P")
LIMIT = 6_000
FEW = settings(max_examples=20, deadline=None)

extents = st.sampled_from(["1", "2", "3", "4", "8", "M", "N", "K", "2*M", "M/4", "N/2", "M*N", "N + 1"])
strides = st.sampled_from(["0", "1", "2", "4", "8", "M", "N", "P", "2*M", "M*N", "K*M", "8*N", "M/4", "N + 1", "3*P"])
facts = st.sampled_from(
    [
        "M % 4 == 0", "M % 8 == 0", "N % 2 == 0", "M >= 8", "N >= 3", "K == M", "P == M*N", "P >= M", "P >= N",
        "N % K == 0", "M % K == 0", "M == 8", "K <= 2", "N > M", "P % M == 0", "P == M + 4", "K*N == M", "K >= 2",
    ]
)  # fmt: skip


def known_of(texts: list[str]) -> Assumptions | None:
    try:
        return Assumptions(texts)
    except MalformedError as error:
        assert error.diagnostic.code == "LA621"
        assert not any(
            all_hold(texts, dict(zip(NAMES, v, strict=True))) for v in itertools.product(range(1, 9), repeat=4)
        )
        return None


@cache
def code(text: str):
    return compile(text, "<term>", "eval")


def value(text: str, sizes: dict[str, int]) -> Fraction:
    return Fraction(eval(code(text), {}, {name: Fraction(size) for name, size in sizes.items()}))


def all_hold(texts: list[str], sizes: dict[str, int]) -> bool:
    exact = {name: Fraction(size) for name, size in sizes.items()}
    return all(eval(code(text), {}, exact) for text in texts)


def draws(texts: list[str], count: int, seed: int) -> list[dict[str, int]]:
    """Sizes that meet the texts (found by trial) and some that may not."""
    source = random.Random(seed)
    found = []
    for _ in range(count):
        sizes = {name: source.choice((1, 1, 2, 3, 4, 5, 6, 8, 8, 12, 16)) for name in NAMES}
        for text in texts:  # meet equalities more often
            left, sign, right = text.partition(" == ")
            if sign and left in NAMES and source.random() < 0.9:
                sizes[left] = int(value(right, sizes))
        found.append(sizes)
    return found


def at(layout: SymbolicLayout, sizes: dict[str, int]) -> CuteLayout:
    return layout.subs({name: sizes[name] for name in layout.symbols | layout.assumptions.names})


@st.composite
def problems(draw, modes: int = 3):
    texts = draw(st.lists(facts, max_size=3, unique=True))
    known = known_of(texts)
    if known is None:
        texts, known = [], Assumptions()
    return texts, known, draw(layouts(known, modes)), draw(st.integers(0, 2**20))


@st.composite
def layouts(draw, known, modes: int):
    count = draw(st.integers(1, modes))
    shape = [draw(extents) for _ in range(count)]
    if draw(st.booleans()):  # compact in some order, perhaps with a gap
        stride, current = [""] * count, draw(st.sampled_from(["1", "1", "1", "2", "P", "M"]))
        for position in draw(st.permutations(range(count))):
            stride[position] = current
            current = f"({current})*({shape[position]})" + draw(st.sampled_from(["", "", "", "*2", "*N"]))
    else:
        stride = [draw(strides) for _ in range(count)]
    try:
        return SymbolicLayout(tuple(shape), tuple(stride), known)
    except AdmissibilityError:
        return SymbolicLayout(("M", "N"), ("N", 1), known)


@given(problems(), st.sampled_from(["i", "M*i + j", "4*i + j", "M*N*j + i", "2*i + 1"]))
@settings(max_examples=15, deadline=None)
def test_expression_is_the_layout(problem, coordinate):
    texts, _, layout, seed = problem
    try:
        expression = layout.expression(coordinate, assumptions=("0 <= j < 4",))
    except MalformedError as error:
        assert error.diagnostic.code == "LA621"  # the coordinate lies outside for all sizes
        return
    names = sorted(str(symbol) for symbol in expression.free_symbols)
    stated = [str(entry.condition) for entry in layout.conditions]
    source = random.Random(seed)
    for sizes in draws([*texts, *stated], 12, seed):
        if not all_hold([*texts, *stated], sizes):
            continue
        concrete = at(layout, sizes)
        for _ in range(4):
            point = {**sizes, "i": source.randrange(12), "j": source.randrange(4)}
            index = value(coordinate, point)
            if index < concrete.size:
                substituted = expression.subs({s: point[str(s)] for s in expression.free_symbols})
                assert int(substituted) == concrete(int(index)), (names, point)


claims = st.sampled_from(
    [
        "M >= N", "M*N >= K", "M % 8 == 0", "N % 4 == 2", "M == K", "M*N == K*N", "M != N + 1", "M*N % K == 0",
        "M % K == 0", "M*K >= N*K", "M - 1 >= 0", "2*M != 2*N + 1", "M**2 >= M", "(M + N) % 2 == 0", "K >= 1",
        "M*N - M - N + 1 >= 0", "M % (2*K) == 0", "N >= K + 5", "M**2 + N**2 >= 2*M*N", "M*K % 4 == 0", "K % 2 == 1",
        "M/K >= 1", "M**2 != 4*N + 2", "M <= 8", "K*M - N >= 0", "2*M == K", "M + N == K", "N/2 + M/4 >= 1",
    ]
)  # fmt: skip
more_facts = st.sampled_from(
    [
        "M % 4 == 0", "M % 6 == 2", "N % 2 == 1", "M >= 3", "N <= 5", "K == M", "K == 2*N", "M % K == 0", "N % K == 0",
        "M >= N", "M*N >= K", "K != 1", "M == N + 2", "M*K == 12", "K <= 3", "M + N == 7", "(M + N) % 3 == 0",
        "M > 2*N", "M/K >= 2", "M % (2*K) == 0",
    ]
)  # fmt: skip


@given(st.lists(more_facts, max_size=3, unique=True), claims, st.booleans())
@settings(max_examples=100, deadline=None)
@example(["M % K == 0"], "M >= N", False)
def test_entailment_is_sound_on_small_models(texts, claim, signed):
    points = models_of(signed)
    meets = [all(row) for row in zip(*[truth_of(text, signed) for text in texts], strict=True)] if texts else None
    chosen = [place for place in range(len(points)) if meets is None or meets[place]]
    models = [points[place] for place in chosen]
    try:
        known = Assumptions(texts, ("M", "K") if signed else ())
    except MalformedError:
        assert not models
        return
    decision = known.decide(claim, timeout_ms=60)
    answers = truth_of(claim, signed)
    truth = [answers[place] for place in chosen]
    if decision.status is True:
        assert all(truth), (models[truth.index(False)], decision)
    if decision.status is False:
        assert not any(truth), (models[truth.index(True)], decision)
    if decision.status is None and decision.engine != "none":
        assert decision.holds_at is not None
        assert decision.fails_at is not None
    for sizes, wanted in ((decision.holds_at, True), (decision.fails_at, False)):
        if sizes is not None:
            point = {"M": 1, "N": 1, "K": 1, **dict(sizes)}
            assert truths([claim], point) is wanted
            assert truths([text for text in texts if set("MNK") & set(text) <= dict(sizes).keys()], point)


@cache
def models_of(signed: bool) -> list[dict[str, int]]:
    """All small sizes, M and K of either sign where ``signed``."""
    low = -4 if signed else 1
    values = itertools.product(range(low, 11), range(1, 11), range(low, 11))
    return [dict(zip(("M", "N", "K"), entry, strict=True)) for entry in values]


@cache
def truth_of(text: str, signed: bool) -> list[bool]:
    return [truths([text], point) for point in models_of(signed)]


def truths(texts: list[str], sizes: dict[str, int]) -> bool:
    """All texts hold; dividing by 0 makes a text false."""
    point = {name: Fraction(size) for name, size in sizes.items()}
    for text in texts:
        try:
            if not eval(code(text), {}, point if "/" in text else dict(sizes)):
                return False
        except ZeroDivisionError:
            return False
    return True
