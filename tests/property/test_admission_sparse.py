"""Sparse mma.sync as a consumer of registers, and its metadata, against a product made lane by lane."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Unknown
from layoutalg.targets.layouts.nvidia_instructions import (
    CODES,
    ELEMENT_BITS,
    MMA_SP,
    VARIANTS,
    expanded,
    mma_sp_fragment,
    mma_sp_metadata,
    mma_sp_selectors,
    mma_sp_type,
)
from layoutalg.targets.target_model import model_of


@pytest.mark.parametrize("name", sorted(MMA_SP))
def test_every_fragment_repeated_in_registers_and_warps_is_taken(name):
    rng = random.Random(name)
    variant = rng.choice(VARIANTS)
    for operand in "ABCD":
        fragment = mma_sp_fragment(name, operand)
        rows, columns = fragment.out_dims.values()
        bases = fragment.bases
        more = [(rows, 0), (0, columns)]
        rng.shuffle(more)
        registers = [*bases["register"], *more[:1]]
        sizes = {"dim0": 2 * rows, "dim1": 2 * columns}
        layout = la.LinearLayout.from_bases({"register": registers, "lane": bases["lane"], "warp": more[1:]}, sizes)
        dtype = mma_sp_type(name, operand)
        answer = la.admissible(layout, f"mma.{variant}.{name}.{operand}", dtype=dtype)
        assert isinstance(answer, la.Admitted), answer
        assert answer.certificate.check()
        starts = [point for points in answer.descriptor.tiling.quotient for point in points]
        assert sorted(starts) == sorted(itertools.product(range(2), range(2)))
        wrong = [bases["lane"][-1], *bases["lane"][1:-1], bases["lane"][0]]
        turned = la.LinearLayout.from_bases({"register": registers, "lane": wrong, "warp": more[1:]}, sizes)
        refused = la.admissible(turned, f"mma.{variant}.{name}.{operand}", dtype=dtype)
        assert refused.rules == ("FRAGMENT",)


def by_lanes(name, selector, a, b, e):
    """D = A B from what lanes hold, stored element by stored element: a[lane][register], ..., e[lane]."""
    made, out = MMA_SP[name], np.zeros((16, 8))
    bits = ELEMENT_BITS[made.operand]
    per, run = (1, 1) if bits == 32 else (2, 2 if bits == 4 else 1)
    heard = mma_sp_metadata(name, selector)
    codes = {tuple(heard[lane, i]): e[lane] >> 4 * i & 15 for lane in range(32) for i in range(8)}
    dense = {tuple(at.values()): b[lane, v] for v, lane, at in points(mma_sp_fragment(name, "B"))}
    for v, lane, at in points(mma_sp_fragment(name, "A")):
        row, stored = at["row"], at["stored"]
        group, part = divmod(stored // run, per)
        code = codes[row, group]
        place = code >> 2 * part & 3 if bits != 32 else (code & 3) // 2
        k = made.group * group + run * place + stored % run
        for col in range(8):
            out[row, col] += a[lane, v] * dense[k, col]
    return out


def points(fragment):
    sizes = fragment.in_dims
    for v, lane in itertools.product(range(sizes["register"]), range(32)):
        found = fragment.apply({"register": np.array([v]), "lane": np.array([lane])})
        yield v, lane, {axis: int(part[0]) for axis, part in found.items()}


@pytest.mark.parametrize("name", ["m16n8k16.f32.f16", "m16n8k16.f32.tf32", "m16n8k64.s32.u8", "m16n8k64.s32.s4"])
def test_the_expanded_matrix_gives_the_product_made_lane_by_lane(name):
    rng, made = np.random.default_rng(7), MMA_SP[name]
    selector = int(rng.integers(mma_sp_selectors(name)))
    codes = rng.choice(list(CODES[ELEMENT_BITS[made.operand]]), (16, made.groups))
    stored, dense = rng.integers(-5, 6, (16, made.k // 2)), rng.integers(-5, 6, (made.k, 8))
    held = {}
    for operand, matrix in (("A", stored), ("B", dense)):
        fragment = mma_sp_fragment(name, operand)
        held[operand] = np.zeros((32, fragment.in_dims["register"]))
        for v, lane, at in points(fragment):
            held[operand][lane, v] = matrix[tuple(at.values())]
    heard = mma_sp_metadata(name, selector)
    words = rng.integers(0, 2**32, 32).tolist()  # what nobody hears may be anything
    for lane, i in itertools.product(range(32), range(8)):
        row, group = (int(part) for part in heard[lane, i])
        if row >= 0:
            words[lane] = words[lane] & ~(15 << 4 * i) | int(codes[row, group]) << 4 * i
    found = by_lanes(name, selector, held["A"], held["B"], words)
    assert np.array_equal(found, expanded(name, stored.astype(float), codes) @ dense)


@pytest.mark.parametrize("name", sorted(MMA_SP))
def test_each_row_and_group_is_told_once_for_every_selector(name):
    speakers = []
    for selector in range(mma_sp_selectors(name)):
        places = mma_sp_metadata(name, selector)
        heard = places[..., 0] >= 0
        assert sorted(map(tuple, places[heard].tolist())) == list(
            itertools.product(range(16), range(MMA_SP[name].groups))
        )
        speakers.append({lane for lane in range(32) if heard[lane].all()})
        assert len(speakers[-1]) * 8 == heard.sum()
    assert sum(map(len, speakers)) == len(set().union(*speakers)) == 32


def test_metadata_selectors_types_and_targets():
    name = "m16n8k32.f32.bf16"
    layout, consumer = mma_sp_fragment(name, "A"), f"mma.sp::ordered_metadata.{name}.A"
    for selector in (0, 1):
        metadata = mma_sp_metadata(name, selector)
        assert la.admissible(layout, consumer, metadata=metadata, selector=selector)
        refused = la.admissible(layout, consumer, metadata=metadata, selector=1 - selector)
        assert refused.rules == ("MMA_METADATA",)
        assert refused.witness["holds"] == (-1, -1)
    assert la.admissible(layout, consumer, selector=2).rules == ("MMA_SELECTOR",)
    assert la.admissible(layout, consumer, "sm_80").evidence == "documented"
    assert la.admissible(layout, consumer, dtype="f16").rules == ("MMA_DTYPE",)
    assert not isinstance(la.admissible(layout, consumer, "gfx942"), (la.Admitted, Unknown))
    floats = mma_sp_fragment("m16n8k64.f32.e4m3", "A")
    assert la.admissible(floats, "mma.sp.m16n8k64.f32.e4m3.A", "sm_80", "e4m3").rules == ("MMA_ARCH",)
    assert f"mma.sp.{name}" in model_of("sm_80").instructions
    for wrong, options in ((f"mma.sp.{name}", {}), ("mma.sp.m16n8k48.f32.bf16.A", {}), (f"mma.sp.{name}.E", {}),
                           (consumer, {"metadata": np.zeros(3)}), (f"mma.sp.{name}.B", {"selector": 0})):  # fmt: skip
        with pytest.raises(MalformedError):
            la.admissible(layout, wrong, **options)
    with pytest.raises(MalformedError):
        mma_sp_metadata(name, 2)
    with pytest.raises(MalformedError):
        expanded(name, np.ones((16, 16)), np.zeros((16, 8), dtype=int))
