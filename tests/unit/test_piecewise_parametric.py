"""Parametric layouts and sets: reading, refusing, and operations with known answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError
from layoutalg.piecewise import (
    PiecewiseLayout,
    PointSet,
    addresses,
    banks,
    from_pieces,
    full_and_partial_tiles,
    lexmax,
    lexmin,
    padded,
    split,
)
from layoutalg.piecewise.inverse import digits_inverse

TILES = PiecewiseLayout("[N] -> { [i, j] -> [i div 12, i mod 12, j] : 0 <= i < N and 0 <= j < 37 }", given="N >= 1")
LINE = PiecewiseLayout("[N] -> { [i] -> [2i] : 0 <= i < N }")
WEDGE = PointSet("[N] -> { [i, j] : 0 <= j <= i < N }")
COMB = PointSet("[N] -> { [i, j] : 0 <= j <= i < N and (i + j) mod 3 = 1 }")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("junk", "LA780"),
        ("", "LA780"),
        ("{}", "LA780"),
        ("{ [i] : i < 3 }", "LA780"),
        ("{ [i] -> [i]; [i, j] -> [j] }", "LA780"),
        ("{ [[a] -> [b]] -> [a] }", "LA780"),
        ("[N, N] -> { [i] -> [i] }", "LA780"),
        ("{ [i] -> [i/0] }", "LA780"),
        ("{ [i] -> [i mod 0] }", "LA780"),
        ("{ [i] -> [" + "(" * 900 + "i" + ")" * 900 + "] }", "LA780"),
        ("{ [i] -> [" + "9" * 400 + "] }", "LA780"),
        ("{ [i] -> [i\0] }", "LA780"),
        ("{ [i] -> [" + "-" * 100_000 + "i] }", "LA780"),
        ("{ [i] -> [" + "2*" * 50_000 + "i] }", "LA780"),
        ("{ [i] -> [i] : " + "not " * 40_000 + "(i < 3) }", "LA780"),
        ("{ [i] -> [i*i] }", "LA781"),
        ("[N] -> { [i, j] -> [N*i + j] }", "LA781"),
        ("[N] -> { [i] -> [i mod N] }", "LA781"),
        ("{ [i] -> [2i div 3] }", "LA782"),
        ("{ [i] -> [-i div 3] }", "LA782"),
        ("{ [i] -> [i div 0] }", "LA782"),
        ("[N] -> { [i] -> [i div N] }", "LA782"),
        ("{ [i] -> [j] }", "LA783"),
        ("{ [i] -> [i] : 0 <= i < 5; [i] -> [2i] : 3 <= i < 9 }", "LA783"),
    ],
)
def test_texts_that_are_no_function_are_refused(text: str, code: str) -> None:
    with pytest.raises(MalformedError) as caught:
        PiecewiseLayout(text)
    assert caught.value.diagnostic.code == code


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize(
    "text",
    [
        "{ [i] -> [i] : " + " or ".join(f"i = {3 * k}" for k in range(5000)) + " }",
        "{ [" + ", ".join(f"a{k}" for k in range(3000)) + "] -> [0] }",
        "{ [i] -> [" + " + ".join(f"floor(i/{k})" for k in range(2, 80)) + "] : 0 <= i < 1000 }",
    ],
)
def test_texts_that_are_too_much_end_in_a_budget_error(text: str) -> None:
    with pytest.raises(BudgetError) as caught:
        PiecewiseLayout(text)
    assert caught.value.diagnostic.code == "LA222"


@pytest.mark.parametrize("bad", [5, None, b"{ [i] -> [i] }", True])
def test_no_text(bad: Any) -> None:
    for make in (PiecewiseLayout, PointSet, PiecewiseLayout.parse):
        with pytest.raises(MalformedError):
            make(bad)


def test_the_overlap_witness_is_a_point_with_both_values() -> None:
    with pytest.raises(MalformedError) as caught:
        PiecewiseLayout("[N] -> { [i] -> [i] : 0 <= i < N; [i] -> [2i] : 3 <= i < 9 }")
    witness = caught.value.diagnostic.witness
    assert witness is not None
    at: dict[str, int] = witness["at"]  # type: ignore[assignment]
    assert 3 <= at["i"] < min(9, at["N"])
    assert set(witness["values"]) == {(at["i"],), (2 * at["i"],)}  # type: ignore[call-overload]


def test_pieces_that_agree_where_they_overlap_are_one_function() -> None:
    layout = PiecewiseLayout("{ [i] -> [i] : 0 <= i < 5; [i] -> [i] : 3 <= i < 9 }")
    assert layout.graph()[1].ravel().tolist() == list(range(9))


@pytest.mark.parametrize("context", ["N > 3 and N < 2", "1 = 0", "[N] -> { : N < N }"])
def test_contexts_without_parameter_values_are_refused(context: str) -> None:
    with pytest.raises(MalformedError) as caught:
        PiecewiseLayout("[N] -> { [i] -> [i] }", given=context)
    assert caught.value.diagnostic.code == "LA784"


@pytest.mark.parametrize(
    "layout", [TILES, LINE, TILES.subs(N=30), LINE.subs(N=0), full_and_partial_tiles(TILES, "i", 5).partial]
)
def test_text_repr_and_pickle_read_back(layout: PiecewiseLayout) -> None:
    assert eval(repr(layout)) == layout
    assert PiecewiseLayout.parse(str(layout)) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert hash(layout) == hash(eval(repr(layout)))
    domain = layout.domain
    assert eval(repr(domain)) == domain
    assert PointSet(str(domain)) == domain


def test_quotients_bind_as_in_python() -> None:
    layout = PiecewiseLayout("{ [i, j] -> [j - i div 3 + (2i + 1) // 4 mod 3 + i div 2 div 2] : 0 <= i, j < 30 }")
    points, image = layout.graph()
    i, j = points.T
    assert (image[:, 0] == j - i // 3 + (2 * i + 1) // 4 % 3 + i // 2 // 2).all()


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (lambda: TILES.subs(N=0), "LA787"),
        (lambda: TILES(i=0, j=0, N=-1), "LA787"),
        (lambda: TILES.subs(M=3), "LA785"),
        (lambda: TILES.subs(N=True), "LA785"),
        (lambda: TILES.subs(N=2.0), "LA785"),  # type: ignore[arg-type]
        (lambda: TILES.subs(N=2**5000), "LA785"),
        (lambda: TILES(i=0, j=0), "LA785"),
        (lambda: TILES.apply({"i": 0}, N=5), "LA785"),
        (lambda: TILES.apply({"i": 0.5, "j": 0}, N=5), "LA785"),  # type: ignore[dict-item]
        (lambda: TILES.apply({"i": np.arange(2), "j": np.arange(3)}, N=5), "LA785"),
        (lambda: TILES(i=5, j=0, N=5), "LA788"),
        (lambda: TILES.union(LINE), "LA785"),
        (lambda: TILES.restrict("{ [i] }"), "LA785"),
        (lambda: TILES.after(TILES), None),
        (lambda: LINE @ TILES, "LA650"),
        (lambda: LINE @ LINE, "LA651"),
        (lambda: PiecewiseLayout("{ [i] -> [i mod 8] : 0 <= i < 9 }").image_inverse(), "LA792"),
        (lambda: PiecewiseLayout("{ [i] -> [0] }").right_inverse(), "LA791"),
        (lambda: PiecewiseLayout("{ [i] -> [i] }").graph(), "LA786"),
        (lambda: PointSet("{ [i] }").count(), "LA786"),
        (lambda: PointSet("{ [i, j] : 0 <= j <= i }").points(), "LA786"),
        (lambda: lexmin(PointSet("{ [i] : i <= 3 }")), "LA786"),
        (lambda: lexmax(PointSet("[N] -> { [i] : i >= N }")), "LA786"),
        (lambda: PointSet("[N] -> { [i] : i >= N }").count_formula(), "LA790"),
        (lambda: COMB.count_formula(), "LA790"),
        (lambda: COMB.count(N=10**6), "LA224"),
        (lambda: WEDGE.union(PointSet("{ [i] }")), "LA785"),
        (lambda: from_pieces(("i",), []), "LA785"),
        (lambda: from_pieces(("i",), 5), "LA785"),  # type: ignore[arg-type]
        (lambda: from_pieces(5, [("", "i")]), "LA785"),  # type: ignore[arg-type]
        (lambda: split(None, "i", 4), "LA785"),  # type: ignore[arg-type]
        (lambda: padded(None, 4, 1), "LA785"),  # type: ignore[arg-type]
        (lambda: LINE.after(3), "LA785"),  # type: ignore[arg-type]
        (lambda: from_pieces(("i", "i"), [("", "i")]), "LA785"),
        (lambda: from_pieces(("i",), [("", "i")], ("i",)), "LA785"),
        (lambda: from_pieces(("i",), [("i < 0", "i"), ("i > 0", ("i", "i"))]), "LA785"),
        (lambda: from_pieces(("i",), [("i < 3 and i > 5", "i")]), "LA784"),
        (lambda: from_pieces(("i",), [("i < N", "i")], ("N",), "N < 0 and N > 4"), "LA784"),
        (lambda: from_pieces(("i",), [("i <= N", "i"), ("N <= i", "i")], ("N",)), "LA783"),
        (lambda: from_pieces(("i",), [("i < 3", "i*i")]), "LA781"),
        (lambda: from_pieces(("i",), [("i < 3 }; { [i]", "i")]), "LA780"),
        (lambda: split(LINE, "k", 4), "LA785"),
        (lambda: split(LINE, "i", 0), "LA785"),
        (lambda: split(PiecewiseLayout("{ [i, i_tile] -> [i] }"), "i", 4), "LA785"),
        (lambda: full_and_partial_tiles(LINE, "i", True), "LA785"),
        (lambda: padded(TILES, 4, 1), "LA785"),
        (lambda: padded(LINE, 4, -1), "LA785"),
        (lambda: banks(LINE, 0), "LA785"),
        (lambda: addresses(LINE, 2, -4), "LA785"),
        (lambda: TILES.table(), "LA221"),
        (lambda: TILES.at(0), "LA221"),
        (lambda: LINE.subs(N=0).in_dims, "LA221"),
    ],
)
def test_bad_input_is_a_named_error(action: Callable[[], object], code: str | None) -> None:
    with pytest.raises(LayoutError) as caught:
        action()
    assert code is None or caught.value.diagnostic.code == code


def test_colliding_points_really_collide() -> None:
    layout = PiecewiseLayout("[N] -> { [i, j] -> [3i + 5j] : 0 <= i < N and 0 <= j < 4 }")
    found = layout.collision()
    assert found is not None
    params: Any = found["params"]
    points: Any = found["points"]
    assert points[0] != points[1]
    assert {tuple(layout(**point, **params).values()) for point in points} == {found["value"]}


def test_leaving_the_domain_names_the_point() -> None:
    outer = PiecewiseLayout("[N] -> { [x] -> [x] : 0 <= x < 2N - 3 }")
    with pytest.raises(AdmissibilityError) as caught:
        outer @ LINE
    witness: Any = caught.value.diagnostic.witness
    assert tuple(LINE(**witness["at"]).values()) == witness["value"]
    assert witness["value"][0] >= 2 * witness["at"]["N"] - 3


def test_empty_functions_are_values() -> None:
    nothing = LINE.subs(N=0)
    assert nothing.domain.is_empty()
    assert nothing.domain.sample() is None
    assert nothing.graph()[0].shape == (0, 1)
    assert nothing.graph()[1].shape == (0, 1)
    assert nothing.union(nothing) == nothing
    assert nothing.image_inverse().domain.is_empty()
    assert not nothing.contains({"i": np.arange(3)}).any()
    assert nothing.domain.count() == 0
    whole = PiecewiseLayout("{ [i] -> [i + 1] : 0 <= i < 4 }")
    none = whole.without("{ [i] : 0 <= i < 9 }")
    assert whole.intersect(none).is_equal(none)
    assert none.union(whole).is_equal(whole)
    assert whole.difference(none) == {"i": 0}


def test_large_numbers_stay_exact() -> None:
    layout = PiecewiseLayout("[N] -> { [i] -> [1000000007i + N] : 0 <= i < N }")
    big = 10**25
    assert layout(i=big - 1, N=big) == {"y0": (big - 1) * 1000000007 + big}
    assert layout.domain.count(N=big) == big
    assert lexmax(layout.domain)(N=big) == {"i": big - 1}


def test_padding_holes_and_the_inverse_predicate() -> None:
    holes = TILES.holes("[N] -> { [t, r, j] : 0 <= t and 12t < N and 0 <= r < 12 and 0 <= j < 40 }")
    for n in (1, 12, 13, 50):
        box = -(-n // 12) * 12 * 40
        assert holes.count(N=n) == box - 37 * n
    inverse = TILES.image_inverse()
    assert inverse.axes == ("y0", "y1", "y2")
    assert inverse.outputs == ("i", "j")
    assert inverse.contains({"y0": 4, "y1": np.array([1, 2]), "y2": 0}, N=50).tolist() == [True, False]
    assert (inverse @ TILES).is_equal(
        PiecewiseLayout("[N] -> { [i, j] -> [i, j] : 0 <= i < N and 0 <= j < 37 }", given="N > 0")
    )


def test_counts_of_chains_are_formulas() -> None:
    count = TILES.image.count_formula()
    assert [count(N=n) for n in (1, 12, 999)] == [37, 444, 36963]
    square = PointSet("[N, M] -> { [i, j] : 0 <= i < N and 3 <= j < 2M }").count_formula()
    assert square(N=10**20, M=7) == 11 * 10**20
    assert square(N=5, M=1) == 0


def test_counts_of_sums_are_formulas() -> None:
    def check(text: str, wanted: Callable[[int, int], int]) -> None:
        count = PointSet(f"[N, M] -> {{ [i, j] : {text} }}").count_formula()
        for n in range(-3, 9):
            for m in range(-3, 9):
                assert count(N=n, M=m) == wanted(n, m)

    check("0 <= j <= i < N and M = M", lambda n, _: sum(i + 1 for i in range(n)))
    check("0 <= i < N and 0 <= 2j <= i + M", lambda n, m: sum(max(0, (i + m) // 2 + 1) for i in range(n)))
    check("0 <= i < N and 0 <= j < 5; [i, j] : -7 <= i < 0 and 0 <= j < M", lambda n, m: 5 * max(n, 0) + 7 * max(m, 0))
    check("N <= i < 3 and j = 0 or M <= i < 2N and j = 0", lambda n, m: len({*range(n, 3), *range(m, 2 * n)}))
    check("1 = 0", lambda *_: 0)


def test_two_ragged_chains_are_counted() -> None:
    text = "0 <= 3t + r < N and 0 <= r < 3 and 0 <= 23u + s < 3M and 0 <= s < 23"
    count = PointSet(f"[N, M] -> {{ [t, r, u, s] : {text} }}").count_formula()
    assert [count(N=n, M=m) for n, m in ((0, 4), (7, 5), (10**12 + 1, 10**9 + 7))] == [
        0,
        105,
        3 * (10**12 + 1) * (10**9 + 7),
    ]
    assert WEDGE.count(N=10**6) == 10**6 * (10**6 + 1) // 2


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("[N] -> { [a, b, c] -> [N - 5a + 2b + 31c] : 0 <= a < 3 and -2 <= b < 0 and 1 <= c < N }", False),
        ("[N] -> { [a, b, c] -> [N - 6a + 2b + 36c] : 0 <= a < 4 and -2 <= b < 1 and 1 <= c < N }", True),
        ("[N] -> { [a, b] -> [3 - a, 5b + 1] : 0 <= a < N and 0 <= b < 4 and (a + b) mod 3 != 1 }", True),
        ("[N] -> { [a, b] -> [a + 4b] : 0 <= a <= b < N and a < 4 }", True),
        ("[N] -> { [a, b] -> [7a + 2b] : 0 <= a < N and b = 3 }", True),
    ],
)
def test_chains_are_read_back(text: str, native: bool) -> None:
    layout = PiecewiseLayout(text)
    assert (digits_inverse(layout.value, [f"v{k}" for k in range(len(layout.out_dims))]) is not None) == native
    inverse = layout.image_inverse()
    for n in (0, 1, 5, 9):
        points, image = layout.graph(N=n)
        back, again = inverse.graph(N=n)
        assert dict(zip(map(tuple, image.tolist()), map(tuple, points.tolist()), strict=True)) == dict(
            zip(map(tuple, back.tolist()), map(tuple, again.tolist()), strict=True)
        )


def test_names_do_not_merge_in_an_inverse() -> None:
    layout = PiecewiseLayout("{ [i, k] -> [i, k + 1] : 0 <= i < 3 and 0 <= k < 3 }", outputs=("i", "i_out"))
    assert len(set(layout.image_inverse().axes)) == 2
    assert layout.image_inverse().domain.count() == 9


def test_an_xor_goes_through_bits_and_carries() -> None:
    text = "[N] -> { [h, b0, b1, b2] -> [v] : exists (p, q, y0, y1 : y0 = b0 + b2 - 2p and "
    text += (
        "y1 = b1 + b2 - 2q and 0 <= y0, y1 <= 1 and v = 8h + y0 + 2y1 + 4b2) and 0 <= b0, b1, b2 <= 1 and 0 <= h < N }"
    )
    layout = PiecewiseLayout(text)
    points, image = layout.graph(N=5)
    h, b0, b1, b2 = points.T
    assert (image[:, 0] == 8 * h + (b0 ^ b2) + 2 * (b1 ^ b2) + 4 * b2).all()
    assert layout.collision() is None
    assert layout.domain.count_formula()(N=10**9) == 8 * 10**9


def test_total_layouts_go_both_ways() -> None:
    total = PiecewiseLayout("{ [a, b] -> [offset = 3a + floor(b/2)] : 0 <= a < 4 and 0 <= b < 6 }")
    assert total.is_total
    assert total.subs() == total
    assert not LINE.is_total
    assert LINE.subs(N=7).table().tolist() == list(range(0, 14, 2))


def test_bank_maps() -> None:
    rows = PiecewiseLayout("[N] -> { [i, j] -> [32i + j] : 0 <= i < N and 0 <= j < 32 }")
    plain, skewed = (banks(addresses(layout, 4)) for layout in (rows, padded(rows, 32, 1)))
    lanes = np.arange(32)
    assert set(plain.apply({"i": lanes, "j": 5}, N=32)["bank"]) == {5}  # type: ignore[arg-type]
    assert sorted(skewed.apply({"i": lanes, "j": 5}, N=32)["bank"]) == list(range(32))  # type: ignore[arg-type]
