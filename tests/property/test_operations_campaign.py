"""A short, fixed part of the campaign of operations, and faults planted in the library that its judges must catch."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_operations as campaign
from operations.record import Rows, run_subject

import layoutalg as la
from layoutalg import convert, cute, f2, integer
from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, Swizzle, symbolic
from layoutalg.cute.inttuple import unflatten
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout, Lattice
from layoutalg.piecewise import PiecewiseLayout

SEED = 7
MANY = {"cute": 4000, "composed": 2000, "coordinate": 1500, "linear": 4000, "hierarchical": 2000, "symbolic": 600}
"""Operations of the families that are judged here alone; 3000 are shared among all."""
CAUGHT_WITHIN = 1200
"""Operations of a family within which a planted fault must show."""


@pytest.mark.parametrize("family", list(campaign.SHARES))
def test_operations_agree_with_enumeration(family: str) -> None:
    rows: Rows = {}
    said: list[str] = []
    for piece in campaign.pieces(MANY.get(family, 3 * campaign.SHARES[family]), SEED, [family]):
        more, texts = campaign.batch(piece)
        said += texts
        rows.update(more)
    assert not said
    assert sum(row.count for row in rows.values()) > 0


def test_a_run_depends_on_its_seed_alone() -> None:
    def told(seed: int) -> list[tuple[object, ...]]:
        found = []
        for piece in campaign.pieces(2000, seed, ["cute", "linear"]):
            rows, _ = campaign.batch(piece)
            found += [(key, row.right, dict(row.refused), dict(row.declined)) for key, row in rows.items()]
        return found

    assert told(1) == told(1) != told(2)


# ---------------------------------------------------------------------------------------------------- planted faults


def guessing(name: str, guess: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on two layouts that guesses where the real one refuses, as peers do."""
    real = getattr(cute, name)

    def call(layout: Any, other: Any) -> Any:
        try:
            return real(layout, other)
        except LayoutError:
            if isinstance(layout, CuteLayout) and isinstance(other, CuteLayout | int):
                return guess(layout, other if isinstance(other, CuteLayout) else CuteLayout(other))
            raise

    return call


def by_mode(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    steps = [outer(step) if 0 <= step < outer.size else 0 for _, step in inner.flat]
    return CuteLayout(inner.shape, unflatten(tuple(steps), inner.shape))


def first_steps(outer: Any, inner: Any) -> Any:
    """Each mode is read at its first step alone, and never refined."""
    strided = isinstance(outer, CuteLayout) and isinstance(inner, CuteLayout)
    return by_mode(outer, inner) if strided else COMPOSITION(outer, inner)


def padded(outer: CuteLayout, tile: CuteLayout) -> CuteLayout:
    return CuteLayout((max(1, tile.size), -(-outer.size // max(1, tile.size))))


def unchecked(block: CuteLayout, tiler: CuteLayout) -> CuteLayout:
    copies = [step * block.cosize for _, step in tiler.flat]
    return cute.make_layout(block, CuteLayout(tiler.shape, unflatten(tuple(copies), tiler.shape)))


def rounded_up(layout: CuteLayout, factor: CuteLayout) -> CuteLayout:
    extents = tuple([-(-extent // factor.size) if step == 1 else extent for extent, step in layout.flat])
    return CuteLayout(unflatten(extents, layout.shape), layout.stride)


def careless_left_inverse(layout: LinearLayout) -> LinearLayout:
    return LEFT(dataclasses.replace(layout, constant=0))


def first_modes(layout: Any) -> Any:
    """Merges neighbours of equal strides, whatever the extents."""
    found = COALESCE(layout)
    if isinstance(found, CuteLayout) and found.rank == 2 and found.stride[0] and found.stride[1] % found.stride[0] == 0:
        return CuteLayout(found.size, found.stride[0])
    return found


LEFT, COALESCE, SLICE = f2.left_inverse, cute.coalesce, f2.slice_in
RIGHT, MAX, COMPOSITION, DOMAIN = cute.right_inverse, cute.max_common_layout, cute.composition, cute.domain_offset
HNF, FLIP = integer.hnf, integer.flip
TRANSPOSE, DEGREE = f2.transpose_ins, f2.conflict_degree
EQUIVALENT = la.equivalent


def sliced_without_carries(layout: LinearLayout, name: str, start: int, size: int) -> LinearLayout:
    """A window by xor instead of by sum."""
    return (
        f2.xor_in(f2.resize_in(layout, name, size), {name: start % size})
        if size > 1
        else SLICE(layout, name, start, size)
    )


def reshaped_unchecked(layout: IntegerLayout, dims: Any) -> IntegerLayout:
    """Reads the strides at the unit points and believes them."""
    extents = dict(dims)
    rows, weight = [[] for _ in layout.matrix], 1
    for extent in extents.values():
        step = layout.value(layout.coordinate(weight)) if extent > 1 else layout.offset
        for row, value, base in zip(rows, step, layout.offset, strict=True):
            row.append(value - base)
        weight *= extent
    return IntegerLayout(tuple(extents.items()), layout.outputs, tuple(map(tuple, rows)), layout.offset)


def inverse_without_guards(layout: HierarchicalLayout) -> HierarchicalLayout:
    return HierarchicalLayout(layout.target, layout.source, INVERSE(dataclasses.replace(layout, guards=())).map)


INVERSE = HierarchicalLayout.inverse
CALL = Swizzle.__call__
COMPLEMENT = Morphism.complement
REDUCE = Lattice.reduce


def swizzled_backwards(self: Swizzle, value: Any) -> Any:
    return CALL(Swizzle(self.bits, self.base, -self.shift, self.unit) if self.bits else self, value)


def longest_left_out(a: Any, b: Any) -> Any:
    found = MAX(a, b)
    return CuteLayout(found.shape[:-1], found.stride[:-1]) if isinstance(found.shape, tuple) else found


def chain_cut_short(layout: Any) -> Any:
    """A right inverse that skips nothing and stops at the first mode that does not fit, as old peers do."""
    found = RIGHT(layout)
    shape, stride = getattr(found, "shape", None), getattr(found, "stride", None)
    return CuteLayout(shape[:-1], stride[:-1]) if isinstance(shape, tuple) and len(shape) > 1 else found


FAULTS: dict[str, tuple[str, Any, str, Any]] = {
    "composition by mode, never checked": ("cute", cute, "composition", guessing("composition", by_mode)),
    "modes read at their first step": ("cute", cute, "composition", first_steps),
    "division that pads": ("cute", cute, "logical_divide", guessing("logical_divide", padded)),
    "product by an unchecked composition": ("cute", cute, "logical_product", guessing("logical_product", unchecked)),
    "half an element too many": ("cute", cute, "upcast", guessing("upcast", rounded_up)),
    "a domain that keeps its shape": (
        "cute",
        cute,
        "domain_offset",
        lambda coord, layout: DOMAIN(coord, layout).rebase(getattr(layout, "base", layout)),
    ),
    "a coalesce that looks at strides alone": ("cute", cute, "coalesce", first_modes),
    "a right inverse that stops early": ("cute", cute, "right_inverse", chain_cut_short),
    "a common layout that is not the longest": ("cute", cute, "max_common_layout", longest_left_out),
    "a swizzle with its shift turned round": ("composed", Swizzle, "__call__", swizzled_backwards),
    "offsets added after the swizzle": (
        "composed",
        ComposedLayout,
        "rebase",
        lambda self, base, shift=0: ComposedLayout(Swizzle(0, 0, 0), shift, REBASE(self, base)),
    ),
    "a left inverse without the affine part": ("linear", f2, "left_inverse", careless_left_inverse),
    "a window without carries": ("linear", f2, "slice_in", sliced_without_carries),
    "names moved without their bits": (
        "linear",
        f2,
        "transpose_ins",
        lambda layout, names: dataclasses.replace(TRANSPOSE(layout, names), columns=layout.columns),
    ),
    "elements counted instead of words": (
        "linear",
        f2,
        "conflict_degree",
        lambda access, bits, **options: DEGREE(access, max(bits, 32), **options),
    ),
    "a reshape that believes the unit points": ("integer", integer, "reshape", reshaped_unchecked),
    "everything is injective": ("integer", integer, "injective", lambda *_: Proved("hope")),
    "a flip around the extent": (
        "integer",
        integer,
        "flip",
        lambda layout, axis: integer.shift(FLIP(layout, axis), layout.columns[list(layout.in_dims).index(axis)]),
    ),
    "a reduction that is not canonical": (
        "matrix",
        Lattice,
        "reduce",
        lambda self, vector: tuple(vector) if sum(map(abs, vector)) < 6 else REDUCE(self, vector),
    ),
    "a Hermite form with large entries": (
        "matrix",
        integer,
        "hnf",
        lambda A, *args: unreduced(HNF(A, *args)),
    ),
    "an inverse that drops its guards": ("hierarchical", HierarchicalLayout, "inverse", inverse_without_guards),
    "a complement with a leaf too few": (
        "morphism",
        Morphism,
        "complement",
        lambda self: shortened(COMPLEMENT(self)),
    ),
    "without that restricts": (
        "piecewise",
        PiecewiseLayout,
        "without",
        lambda self, points: self.restrict(points),
    ),
    "linear forms that ignore carries": ("door", convert, "linear_form", lambda layout: carried(layout)),
    "equal where sizes are": (
        "door",
        la,
        "equivalent",
        None,
    ),
    "a symbolic coalesce that assumes": (
        "symbolic",
        symbolic,
        "coalesce",
        lambda layout: symbolic.SymbolicLayout((str(layout.size),), (1,)),
    ),
}
REBASE = ComposedLayout.rebase


def unreduced(found: Any) -> Any:
    rows, moves = [list(row) for row in found.H], [list(row) for row in found.U]
    if len(rows) > 1 and any(rows[1]):
        rows[0] = [a + b for a, b in zip(*rows[:2], strict=True)]
        moves[0] = [a + b for a, b in zip(*moves[:2], strict=True)]
    return dataclasses.replace(found, H=tuple(map(tuple, rows)), U=tuple(map(tuple, moves)))


def shortened(found: Morphism) -> Morphism:
    return found.restrict(tuple(range(found.rank - 1))) if found.rank > 1 else found


def carried(layout: Any) -> Any:
    """Reads the images of the bits and believes them."""
    base = convert.value_at(layout, 0)
    count = layout.size.bit_length() - 1
    return tuple(convert.value_at(layout, 1 << k) ^ base for k in range(count)), base


def caught(family: str) -> int | None:
    """The number of operations after which a judge complains."""
    for index in range(CAUGHT_WITHIN // campaign.PER):
        if run_subject(family, index, SEED, campaign.PER, {}):
            return (index + 1) * campaign.PER
    return None


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_planted_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, owner, attribute, wrong = FAULTS[name]
    if wrong is None:
        import bridge_answers

        owner, wrong = bridge_answers, lambda f, g, **_: Proved("sizes") if f.size == g.size else EQUIVALENT(f, g)
    monkeypatch.setattr(owner, attribute, wrong)
    assert caught(family) is not None


def test_the_page_counts_the_faults() -> None:
    assert len(FAULTS) == campaign.FAULTS


def test_what_is_caught_is_not_there_without_the_fault() -> None:
    assert caught("cute") is None
