"""Morphisms of tuples: worked examples, refusals with their codes, and the limits of tractable layouts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from layoutalg.cute import (
    CuteLayout,
    Morphism,
    MutualRefinement,
    complement,
    composition,
    find_isomorphism,
    is_tractable,
    mutual_refinement,
    weak_composite,
)
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError, RepresentabilityError

F = Morphism((4, 8), (8, 4), (1, 0))
N = Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0))
P = Morphism((6, 2), (6, 2), (0, 1), (1, 10))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: Morphism((4, 0), (4,), (0, None)), "LA180"),
        (lambda: Morphism("4", (4,), (0,)), "LA100"),  # type: ignore[arg-type]
        (lambda: Morphism([4], (4,), (0,)), "LA100"),  # type: ignore[arg-type]
        (lambda: Morphism((2**40, 2**40), (), (None, None)), "LA180"),
        (lambda: Morphism((2, (-1,)), 2, (0, None)), "LA180"),
        (lambda: Morphism((2.0,), (2,), (0,)), "LA100"),  # type: ignore[arg-type]
        (lambda: Morphism((True,), (2,), (None,)), "LA100"),
        (lambda: Morphism((4,), (4,), ()), "LA181"),
        (lambda: Morphism((4,), (4,), [0]), "LA181"),  # type: ignore[arg-type]
        (lambda: Morphism((4,), (4,), (1,)), "LA181"),
        (lambda: Morphism((4,), (4,), (-1,)), "LA181"),
        (lambda: Morphism((4,), (4,), (False,)), "LA181"),
        (lambda: Morphism((4, 4), (4,), (0, 0)), "LA182"),
        (lambda: Morphism((4,), (8,), (0,)), "LA183"),
        (lambda: Morphism.reshape((2, 3), 6), "LA183"),
        (lambda: F.restrict((0, 0)), "LA185"),
        (lambda: F.restrict((2,)), "LA185"),
        (lambda: N[2], "LA185"),
        (lambda: Morphism((6, 2), (6, 2), (0, 1), (1, 5)), "LA610"),
        (lambda: Morphism((6, 2), (6, 2), (0, 1), (0, 10)), "LA610"),
        (lambda: Morphism((6, 2), (6, 2), (0, 1), (1, (10,))), "LA610"),
        (lambda: Morphism(2, (2, 2), (0,), (1, 2**63 - 1)), "LA610"),
        (lambda: P.extend(3, 15), "LA610"),
        (lambda: is_tractable((4, 2)), "LA604"),  # type: ignore[arg-type]
        (lambda: P.preimage(1.5), "LA604"),  # type: ignore[arg-type]
        (lambda: weak_composite(F, F.to_layout()), "LA604"),  # type: ignore[arg-type]
        (lambda: F.sum(F.to_layout()), "LA604"),  # type: ignore[arg-type]
        (lambda: F((1, 2, 3)), "LA104"),
        (lambda: F("1"), "LA100"),  # type: ignore[arg-type]
    ],
)
def test_malformed_input(call: Callable[[], object], code: str) -> None:
    with pytest.raises(MalformedError) as caught:
        call()
    assert caught.value.diagnostic.code == code


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: F @ F, "LA184"),
        (lambda: N.then(N), "LA184"),
        (lambda: P @ N, "LA184"),
        (lambda: F.factorize((0,)), "LA186"),
        (lambda: Morphism((4,), (), (None,)).left_inverse(), "LA187"),
        (lambda: Morphism((), (4,), ()).right_inverse(), "LA187"),
        (lambda: ~Morphism(4, (4, 2), (0,)), "LA187"),
        (lambda: F.concat(F), "LA188"),
        (lambda: F.concat(Morphism.identity((4, 8))), "LA188"),
        (lambda: P.concat(Morphism((6, 2), (6, 2), (0, 1), (1, 9))), "LA188"),
        (lambda: N.pullback((3, (4, 3))), "LA189"),
        (lambda: N.pushforward((4, 6)), "LA189"),
        (lambda: N.pushforward(24), "LA189"),
        (lambda: mutual_refinement((2, 3), (3, 2)), "LA600"),
        (lambda: weak_composite(Morphism(2, (3, 2), (1,)), Morphism((4, 6), (6, 4), (1, 0))), "LA600"),
        (lambda: weak_composite(Morphism(3, (4, 3), (1,)), Morphism(8, 8, (0,))), "LA601"),
        (lambda: F.flat_divide(Morphism((8,), (8, 4), (0,))), "LA602"),
        (lambda: F.flat_product(F), "LA602"),
        (lambda: P.logical_divide(N), "LA602"),
        (lambda: P.logical_product(N), "LA602"),
        (lambda: weak_composite(F, N), "LA601"),
        (lambda: weak_composite(P, F), "LA611"),
        (lambda: N @ P, "LA611"),
        (lambda: P @ P, "LA611"),
        (lambda: P.transpose(), "LA611"),
        (lambda: ~P, "LA187"),
        (lambda: P.factorize((0, 1)), "LA611"),
        (lambda: P.sum(F), "LA611"),
        (lambda: F.sum(P), "LA611"),
        (lambda: P.padded().concat(P.base), "LA188"),
        (lambda: F(4, 0), "LA105"),
        (lambda: F(32), "LA105"),
        (lambda: F.preimage(32), "LA105"),
    ],
)
def test_refused_operations(call: Callable[[], object], code: str) -> None:
    with pytest.raises(AdmissibilityError) as caught:
        call()
    assert caught.value.diagnostic.code == code
    assert caught.value.diagnostic.because


@pytest.mark.parametrize(
    ("layout", "kind", "modes"),
    [
        (CuteLayout((6, 2), (1, 10)), "padded", (0, 1)),
        (CuteLayout((128, 64), (72, 1)), "padded", (1, 0)),
        (CuteLayout((3, 2), (2, 5)), "padded", (0, 1)),
        (CuteLayout((2, 3, 2), (1, 2, 7)), "padded", (1, 2)),
        (CuteLayout((3, 2), (2, 3)), "interleaved", (0, 1)),
        (CuteLayout((4, 4), (1, 1)), "overlapping", (0, 1)),
        (CuteLayout(((4, 8), (2, 4)), ((32, 1), (16, 8))), "overlapping", (3, 2)),
        (CuteLayout((4, 2), (-1, 4)), "negative", (0, 0)),
        (CuteLayout((4, 0), (1, 4)), "empty", (1, 1)),
    ],
)
def test_what_tractable_excludes(layout: CuteLayout, kind: str, modes: tuple[int, int]) -> None:
    answer = is_tractable(layout)
    assert (answer.kind, answer.modes, answer.morphism) == (kind, modes, None)
    assert not answer
    with pytest.raises(RepresentabilityError, match="LA603"):
        Morphism.from_layout(layout)
    if kind == "padded":
        assert Morphism.from_layout(layout, padded=True).to_layout() == layout
    else:
        with pytest.raises(RepresentabilityError, match="LA612"):
            Morphism.from_layout(layout, padded=True)


def test_the_message_of_a_padded_row() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        Morphism.from_layout(CuteLayout((6, 2), (1, 10)))
    assert str(caught.value).splitlines() == [
        "LA603 the layout is not tractable (padded)",
        "  in     (6,2):(1,10)",
        "  since  mode 1 (2:10) has a stride that is not a multiple of 6, the width of mode 0 (6:1); "
        "use Morphism.from_layout(layout, padded=True)",
        "  at     modes=(0, 1)",
        "  see    arXiv:2601.05972",
    ]


def test_tractable_layouts_give_their_morphism() -> None:
    answer = is_tractable(CuteLayout((4, (1, 3), 5), (2, (7, 0), 24)))
    assert answer.kind == "tractable"
    assert answer.morphism == Morphism((4, (1, 3), 5), (2, 4, 3, 5), (1, None, None, 3))
    assert is_tractable(CuteLayout((), ())).morphism == Morphism((), (), ())
    assert is_tractable(CuteLayout(7, 0)).morphism == Morphism(7, (), (None,))
    assert is_tractable(CuteLayout((1, 2), (-5, 1))).kind == "tractable"


def test_evaluation() -> None:
    assert (F(5), F(1, 1), F((1, 1))) == (9, (1, 1), (1, 1))
    assert F.apply(np.array([[0, 1], [4, 5]])).tolist() == [[0, 8], [1, 9]]
    assert N((3, (1, 2))) == (2, (3, 1))
    assert N((3, 5)) == (2, (3, 1))
    assert Morphism((), (), ())(0) == 0
    assert Morphism((), (2,), ())(()) == (0,)
    assert P(7) == 11
    assert [P.preimage(offset) for offset in (-1, 0, 5, 6, 9, 10, 15, 16)] == [None, 0, 5, None, None, 6, 11, None]


def test_numpy_integers_become_ints() -> None:
    f = Morphism((np.int64(4),), (np.int32(2), 4), (np.int8(1),))  # type: ignore[arg-type]
    assert repr(f) == "Morphism(domain=(4,), codomain=(2, 4), map=(1,), pitch=None)"


def test_mutual_refinements() -> None:
    assert mutual_refinement((6, 6), (12, 3)) == MutualRefinement((6, (2, 3)), ((6, 2), 3))
    assert mutual_refinement(((4, 2), 1), 8) == MutualRefinement(((4, 2), ()), (4, 2))
    assert mutual_refinement(8, (2, 100)) == MutualRefinement((2, 4), (2, (4, 25)))
    assert mutual_refinement((), ()) == MutualRefinement((), ())
    assert mutual_refinement(1, 5) == MutualRefinement((), 5)


def test_weak_composite_without_a_mutual_refinement() -> None:
    f, g = Morphism(2, (3, 2), (1,)), Morphism((4, 6), (6, 4), (1, 0))
    with pytest.raises(AdmissibilityError) as caught:
        weak_composite(f, g)
    assert caught.value.diagnostic.witness == {"cuts": (3, 4)}
    assert [repair.detail for repair in caught.value.diagnostic.repairs] == ["composition((4,6):(6,1), 2:3) = 2:18"]
    assert weak_composite(f, g, by_layout=True) == Morphism(2, (18, 2), (1,))


def test_weak_composite_with_padded_rows() -> None:
    tile = Morphism(16, (8, 16), (1,))
    rows = Morphism((128, 64), (64, 128), (1, 0), (1, 72))
    answer = weak_composite(tile, rows)
    assert answer.to_layout() == composition(rows.to_layout(), tile.to_layout()) == CuteLayout(16, 8 * 72)


def test_divide_and_product_of_a_padded_tile() -> None:
    rows = Morphism.from_layout(CuteLayout((128, 64), (72, 1)), padded=True)
    refined = rows.pushforward(((8, 16), (16, 4)))
    tiler = Morphism((8, 16), refined.domain, (0, 2))
    assert refined.logical_divide(tiler).to_layout() == CuteLayout(((8, 16), (16, 4)), ((72, 1), (576, 16)))
    copies = rows.extend(3, 128 * 72).logical_product(Morphism.identity((3,)))
    assert copies.to_layout() == CuteLayout(((128, 64), (3,)), ((72, 1), (9216,)))


def test_padded_composition_is_refused_with_a_way_out() -> None:
    whole = Morphism((6, 2), (6, 2), (0, 1), (1, 12))
    with pytest.raises(AdmissibilityError, match=r"unpadded\(\)"):
        Morphism.identity((6, 2)) @ whole
    assert whole.unpadded() == Morphism((6, 2), (6, 2, 2), (0, 2))


def test_isomorphisms() -> None:
    assert find_isomorphism((2,), (2, 2)) is None
    assert (~F @ F).map == (0, 1)
    assert N.is_isomorphism
    assert not Morphism(2, (2, 1), (0,)).is_isomorphism


def test_large_morphisms_need_no_enumeration() -> None:
    extents = (2,) * 40
    f = Morphism(extents, extents, tuple(reversed(range(40))))
    g = f.flat_divide(Morphism((2,) * 10, extents, tuple(range(5, 15))))
    assert (f @ f) == Morphism.identity(extents)
    assert g.is_isomorphism
    assert g.preimage(g(12345678901)) == 12345678901  # type: ignore[arg-type]
    half = f.restrict(tuple(range(0, 40, 2)))
    assert half.complement().coalesce().to_layout().flat == complement(half.to_layout(), 2**40).flat


def test_every_refusal_is_a_layout_error() -> None:
    deep: object = 2
    for _ in range(70):
        deep = (deep,)
    with pytest.raises(LayoutError):
        Morphism(deep, 2, (0,))  # type: ignore[arg-type]
    with pytest.raises(LayoutError):
        Morphism((1,) * 10_001, (), (None,) * 10_001)


def test_an_inverse_is_refused_for_a_position_that_holds_a_digit() -> None:
    with pytest.raises(AdmissibilityError) as caught:
        ~Morphism((1, 4), (1, 2, 4), (None, 2))
    assert caught.value.diagnostic.because == "position 1 of the codomain is not hit, so no digit reaches it"
    with pytest.raises(AdmissibilityError) as caught:
        ~Morphism((1, 4), (4,), (None, None))
    assert caught.value.diagnostic.because.startswith("position 1 of the domain goes to the base point")
