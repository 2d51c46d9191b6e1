"""The division of a layout of registers by a fragment, against its definition by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.refusal import Broken
from layoutalg.synth.fragments import Tiling, coordinates, tiling
from layoutalg.targets.layouts.amd import mfma_accumulator
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA, mfma_fragment, wmma_fragment
from layoutalg.targets.layouts.nvidia_instructions import MMA, mma_fragment

FRAGMENTS = [
    (f"{arch} {name} {operand}", make(name, operand, arch))
    for table, make in ((MFMA, mfma_fragment), (WMMA, wmma_fragment))
    for arch in table for name in table[arch] for operand in "ABD"
    if table[arch][name].matrices == 1
] + [(f"{name} {operand}", mma_fragment(name, operand)) for name in MMA for operand in "ABD"]  # fmt: skip


def shuffled(fragment, rng, warps=3, repeats=3, word=1):
    """A table of registers that repeats the fragment: random starts, registers dealt in a random order of words."""
    held = coordinates(fragment)[0][0]
    sizes = np.array(list(fragment.out_dims.values()))
    starts = sizes * rng.integers(0, 5, size=(warps, repeats, 1, 1, len(sizes)))
    table = (held[None, None] + starts).transpose(0, 2, 1, 3, 4).reshape(warps, held.shape[0], -1, len(sizes))
    words = rng.permutation(table.shape[2] // word)
    order = (words[:, None] * word + np.arange(word)).reshape(-1)
    return table[:, :, order]


def is_tiling(table, fragment, word):
    """The definition: registers of a lane, dealt in all warps alike, each instruction all slots at one start."""
    held = coordinates(fragment)[0][0]
    sizes = np.array(list(fragment.out_dims.values()))
    _, lanes, registers, _ = table.shape
    if lanes != held.shape[0] or registers % word:
        return False
    left = {}
    for first in range(0, registers, word):
        fits = []
        for slot in range(0, held.shape[1], word):
            start = table[:, :, first : first + word] - held[None, :, slot : slot + word]
            if (start == start[:, :1, :1]).all() and not (start % sizes).any():
                fits.append((slot, start[:, 0, 0].tobytes()))
        if not fits:
            return False
        assert len(fits) == 1
        left.setdefault(fits[0][1], []).append(fits[0][0])
    whole = list(range(0, held.shape[1], word))
    return all(sorted(slots) == sorted(whole * (len(slots) // len(whole) or 1)) for slots in left.values())


@pytest.mark.parametrize(("name", "fragment"), FRAGMENTS[::7])
def test_repetitions_in_any_order_are_found_and_denote_the_layout(name, fragment):
    rng = np.random.default_rng(len(name))
    word = min(2, fragment.in_dims["register"])
    table = shuffled(fragment, rng, word=word)
    found = tiling(table, fragment, word)
    assert isinstance(found, Tiling), (name, str(found))
    assert np.array_equal(found.table(fragment), table)
    assert sorted(itertools.chain(*found.registers)) == list(range(table.shape[2]))
    assert is_tiling(table, fragment, word)


def test_against_the_definition_on_tables_with_one_change():
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(300):
        _, fragment = FRAGMENTS[rng.integers(len(FRAGMENTS))]
        word = min(int(rng.choice([1, 2])), fragment.in_dims["register"])
        if fragment.in_dims["register"] > 16:
            continue
        table = shuffled(fragment, rng, warps=2, repeats=2, word=int(rng.choice([1, word])))
        sizes = list(fragment.out_dims.values())
        kind = rng.integers(5)
        w, lane, register, dim = (int(rng.integers(extent)) for extent in table.shape)
        if kind == 1:
            table[w, lane, register, dim] += int(rng.choice([1, sizes[dim]]))
        elif kind == 2:
            table[w, :, register, dim] += sizes[dim]
        elif kind == 3:
            table = table[:, :, : table.shape[2] - word]
        elif kind == 4:
            table = np.concatenate([table, table], axis=2)
        found = tiling(table, fragment, word)
        assert isinstance(found, Tiling) == is_tiling(table, fragment, word), str(found)
        seen.add((int(kind), isinstance(found, Tiling)))
        if isinstance(found, Broken) and "needs" in found.witness:
            at = (found.witness.get("warp", 0), found.witness["lane"], found.witness["register"])
            assert tuple(table[at]) == found.witness["holds"] != found.witness["needs"]
    assert {(0, True), (1, False), (2, False), (3, False), (4, True)} <= seen


def test_triton_tiles_are_whole_instructions():
    layout = mfma_accumulator((128, 64), (32, 32), (2, 2))
    found = tiling(layout, mfma_fragment("v_mfma_f32_32x32x8_f16", "D"))
    assert isinstance(found, Tiling)
    assert found.registers == (tuple(range(16)), tuple(range(16, 32)))
    assert len(found.registers) == 2
    assert found.outer == (("warp", 4), ("block", 1))
    assert isinstance(tiling(layout, mfma_fragment("v_mfma_f32_16x16x16_f16", "D")), Broken)
    other = tiling(mfma_accumulator((32, 32), (32, 32), (1, 1)), mma_fragment("m16n8k8.f32.tf32", "D"))
    assert str(other) == "the instruction has 32 lanes, lanes = 64"


@pytest.mark.parametrize("wrong", ["(4,8):(1,4)", la.parse("(4,8):(1,4)"), np.zeros((2, 2)), None])
def test_what_is_no_layout_of_registers_is_refused(wrong):
    with pytest.raises(MalformedError, match="LA831"):
        tiling(wrong, mma_fragment("m16n8k8.f32.tf32", "A"))
