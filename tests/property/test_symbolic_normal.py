"""Normal forms of symbolic layouts against enumeration: the function, the divisors, the vectors and the lattice."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cute.symbolic import Assumptions, SymbolicLayout, normal_form
from layoutalg.ground.errors import AdmissibilityError, MalformedError

NAMES = ("M", "N", "K")
SCOPE = {"Fraction": Fraction}
extents = st.sampled_from(["1", "2", "3", "4", "8", "M", "N", "2*M", "N + 1", "M/4", "K*N"])
strides = st.sampled_from(
    ["0", "1", "1", "2", "12", "M", "K", "6*K", "4*M + 8", "K*M", "M*M + M", "K/2", "K + 2*N", "3*N", "M*N/4", "K/N"]
)
offsets = st.sampled_from(["0", "0", "6", "K", "2*M + 4", "K*N"])
classes = st.tuples(st.sampled_from(NAMES), st.sampled_from([1, 2, 3, 4, 8, 12]), st.integers(0, 11))
others = st.sampled_from(["M >= 5", "N >= 2", "K == 8*M", "K == M", "K <= 20", "N % 4 == M % 4", "M*N % 4 == 0"])


@st.composite
def problems(draw):
    texts = [f"{name} % {of} == {rest % of}" for name, of, rest in draw(st.lists(classes, max_size=3))]
    texts += draw(st.lists(others, max_size=2, unique=True))
    count = draw(st.integers(1, 3))
    shape = [draw(extents) for _ in range(count)]
    stride = [draw(strides) for _ in range(count)]
    if draw(st.booleans()):  # a stride that continues the run before it
        for place in range(1, count):
            stride[place] = f"({stride[place - 1]})*({shape[place - 1]})"
    try:
        return texts, SymbolicLayout(tuple(shape), tuple(stride), Assumptions(texts)), draw(offsets)
    except (AdmissibilityError, MalformedError):  # no sizes
        return ["K % 8 == 0"], SymbolicLayout(("M", "N"), ("K", 1), Assumptions(("K % 8 == 0",))), "0"


@cache
def code(text: str):
    return compile(re.sub(r"(\d+)", r"Fraction(\1)", text), "<term>", "eval")


def value(text: str, sizes: dict[str, int]) -> Fraction:
    return Fraction(eval(code(text), SCOPE, {name: Fraction(size) for name, size in sizes.items()}))


def allowed(layout: SymbolicLayout, texts: list[str]):
    """Sizes that meet the texts and every side condition, written out and evaluated by Python."""
    stated = [*texts, *(str(entry.condition) for entry in layout.conditions)]
    each = []
    for name in NAMES:
        own = [text for text in stated if not any(other in text for other in NAMES if other != name)]
        fits = (size for size in range(1, 120) if all(eval(code(text), SCOPE, {name: Fraction(size)}) for text in own
                                                      if name in text))  # fmt: skip
        each.append(list(itertools.islice(fits, 7)))
    for point in itertools.product(*each):
        sizes = dict(zip(NAMES, point, strict=True))
        exact = {name: Fraction(size) for name, size in sizes.items()}
        if all(eval(code(text), SCOPE, exact) for text in stated):
            yield sizes


def table(layout: SymbolicLayout, sizes: dict[str, int]) -> list[tuple[int, int]]:
    """(extent, stride) of each mode at sizes, from the printed polynomials."""
    return [(int(value(str(extent), sizes)), int(value(str(stride), sizes))) for extent, stride in layout.flat]


def image(modes: list[tuple[int, int]], start: int) -> np.ndarray:
    """Every offset by the 1-D coordinate."""
    found = np.array([start])
    for extent, stride in modes:
        found = (np.arange(extent)[:, None] * stride + found[None]).reshape(-1)
    return found


@given(problems())
@settings(max_examples=40, deadline=None)
def test_form_divisors_and_lattice_against_enumeration(problem) -> None:
    texts, layout, offset = problem
    try:
        form = normal_form(layout, offset)
    except MalformedError as error:
        assert error.diagnostic.code == "LA622"
        return
    seen, steps, vectors = [], [0] * len(form.gcds), []
    for sizes in allowed(layout, texts):
        start, modes, mine = int(value(offset, sizes)), table(layout, sizes), table(form.layout, sizes)
        assert int(value(str(form.offset), sizes)) == start
        assert len(mine) <= max(1, len(modes))
        size = math.prod(extent for extent, _ in modes)
        assert math.prod(extent for extent, _ in mine) == size
        if size <= 2000:
            assert np.array_equal(image(mine, start), image(modes, start)), sizes
        steps = [math.gcd(known, stride) for known, (_, stride) in zip(steps, mine, strict=True)]
        moving = [stride for extent, stride in modes if extent > 1]
        seen.append(math.gcd(start, *moving))
        if form.lattice is not None:
            units = [value(str(unit), sizes) for unit in form.units]
            assert all(unit.denominator == 1 for unit in units)
            spanned = math.gcd(*(int(value(str(each), sizes)) for each in form.generators))
            assert spanned == math.gcd(*(stride for _, stride in mine)), (sizes, form.generators)
            if form.invariants:
                assert spanned % form.invariants[0] == 0
        along = next((place for place, stride in enumerate(form.layout.flat) if str(stride[1]) == "1"), None)
        if along is not None:
            run = [mine[along][0], start, *(stride for place, (_, stride) in enumerate(mine) if place != along)]
            vectors.append(math.gcd(*run))
    assert all(not known or step % known == 0 for known, step in zip(form.gcds, steps, strict=True))
    assert all(step == 0 for known, step in zip(form.gcds, steps, strict=True) if not known and seen)
    assert all(each % form.gcd == 0 if form.gcd else each == 0 for each in seen)
    assert all(each % form.vector == 0 for each in vectors)
    if form.exact and len(seen) > 60:
        assert math.gcd(*seen) == form.gcd, (layout, texts)
        assert steps == list(form.gcds)
        assert not vectors or math.gcd(*vectors) == form.vector


@given(st.integers(0, 4), st.integers(0, 6), st.sampled_from([4, 8, 16, 32, 64]))
@settings(max_examples=30, deadline=None)
def test_vectors_are_contiguous_and_aligned(low: int, run: int, bits: int) -> None:
    known = (f"ld % {1 << low} == 0", f"K % {1 << run} == 0")
    form = normal_form(SymbolicLayout(("M", "K"), ("ld", 1), known))
    wide = form.vector_bits(bits)
    assert form.exact
    assert form.vector == 1 << min(low, run)
    assert wide == min(128 // bits, form.vector) * bits
    for ld, k, row in itertools.product((1 << low, 3 << low, 21 << low), (1 << run, 5 << run), (0, 1, 5)):
        for column in range(0, k, wide // bits):
            address = bits * (row * ld + column)
            assert address % wide == 0
            assert column + wide // bits <= k


def test_offsets_that_may_be_no_integers_are_refused() -> None:
    with pytest.raises(MalformedError, match="LA622"):
        normal_form(SymbolicLayout("M", 1), "M/2")
    assert normal_form(SymbolicLayout("M", 0), 0).alignment(16) == 0
    assert normal_form(SymbolicLayout("M", 24), 8).alignment(16) == 128


def test_rows_after_the_contiguous_mode_and_bounds_from_above() -> None:
    known = ("ld % 4 == 0", "K % 8 == 0")
    assert normal_form(SymbolicLayout(("K", "M"), (1, "ld"), known)).vector == 4
    assert normal_form(SymbolicLayout("N", "K", ("K % 8 == 0", "K >= 9"))).exact
    assert not normal_form(SymbolicLayout("N", "K", ("K % 8 == 0", "K <= 20"))).exact


def test_explanations_state_what_divides() -> None:
    told = la.explain(la.Tensor(("M", "K"), ("ld", 1), assume=("ld % 8 == 0", "K % 16 == 0")))
    assert told["multiples"] == {"strides": [8, 1], "offsets": 1, "exact": True}
    assert told["vectors"] == 8
    assert la.explain("(64,?{div=16}):(?{i64 div=8},1)")["vectors"] == 8


@st.composite
def pairs(draw):
    """Two layouts with names: the same with a mode cut or two runs joined, one changed stride, or another one."""
    texts, layout, _ = draw(problems())
    shape, stride = [str(extent) for extent, _ in layout.flat], [str(step) for _, step in layout.flat]
    place, how = draw(st.integers(0, len(shape) - 1)), draw(st.sampled_from(["cut", "join", "change", "other"]))
    if how == "cut":
        shape[place : place + 1] = ["2", f"({shape[place]})/2"]
        stride[place : place + 1] = [stride[place], f"2*({stride[place]})"]
    elif how == "join":
        shape.insert(place, "N")
        stride.insert(place, stride[place])
        stride[place + 1] = f"N*({stride[place]})"
        return texts, SymbolicLayout(tuple(shape), tuple(stride), Assumptions(texts)), layout
    elif how == "change":
        stride[place] = draw(strides)
    else:
        more, other, _ = draw(problems())
        return texts + more, layout, other
    try:
        return texts, layout, SymbolicLayout(tuple(shape), tuple(stride), Assumptions(texts))
    except (AdmissibilityError, MalformedError):  # no sizes
        return texts, layout, layout


@given(pairs())
@settings(max_examples=40)
def test_equality_with_names_is_equality_at_all_sizes(case):
    texts, f, g = case
    found = la.equivalent(f, g)
    if isinstance(found, la.Refuted):
        sizes = found.witness["sizes"]
        sides = [image(table(each, sizes), 0) for each in (f, g)]
        assert all(each.assumptions.broken_at(sizes) is None for each in (f, g))
        if "coordinate" in found.witness:
            at = found.witness["coordinate"]
            assert (int(sides[0][at]), int(sides[1][at])) == (found.witness["f"], found.witness["g"])
            assert found.witness["f"] != found.witness["g"]
        else:
            assert len(sides[0]) != len(sides[1])
        return
    others = list(allowed(g, texts))
    both = [sizes for sizes in allowed(f, texts) if sizes in others][:12] if isinstance(found, la.Proved) else []
    for sizes in both:
        if math.prod(extent for extent, _ in table(f, sizes)) <= 1 << 12:
            np.testing.assert_array_equal(image(table(f, sizes), 0), image(table(g, sizes), 0))
    if f == g:
        assert isinstance(found, la.Proved) or "no sizes" in found.reason


@pytest.mark.parametrize(
    ("f", "g", "verdict", "says"),
    [
        ("(M,N):(1,M)", "M*N:1", la.Proved, "every size"),
        ("(M/4,4,N):(4,1,M)", "(M/4,(2,2),N):(4,(1,2),M) where M % 8 == 0", la.Proved, "M % 8 == 0"),
        ("(M,4):(4,1) where M == 4", "(4,4):(4,1)", la.Proved, "M == 4"),
        ("(M,N):(N,1)", "(M,N):(1,M)", la.Refuted, "'coordinate': 1"),
        ("(M,4):(4,1)", "(4,4):(4,1)", la.Refuted, "'size of g': 16"),
        ("(M,K):(K,1)", [[0, 1], [2, 3]], la.Refuted, "sizes"),
        ("M:1 where M % 8 == 0", "M:1 where M % 8 == 1", la.Unknown, "contradict"),
        ("(4,?):(?,1)", "(4,?):(?,1)", la.Unknown, "a number of its own"),
        ("(4,?):(?,1)", "(4,n0):(d0,1)", la.Unknown, "a number of its own"),
        ("(M,N):(1,M)", 3, la.MalformedError, "LA240"),
        ("(M,N):(1,M)", lambda i, j: i + 4 * j, la.MalformedError, "a shape"),
    ],
)
def test_words_about_equality_with_names(f, g, verdict, says):
    if verdict is la.MalformedError:
        with pytest.raises(verdict, match=says):
            la.equivalent(f, g)
        return
    found = la.equivalent(f, g)
    assert isinstance(found, verdict)
    assert says in repr(found)
