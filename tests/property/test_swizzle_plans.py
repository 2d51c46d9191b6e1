"""Swizzles of random accesses: every count by ranks is counted again from addresses, two accesses never conflict."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.proofs.swizzling import TileAccess, serve
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.layouts.nvidia import mma_operand


def random_access(rng: np.random.Generator, bits: int, registers: int, lanes: int = 5, *, dense: bool) -> LinearLayout:
    """Return a bijection from (register, lane, warp) to a tile; its bases are unit vectors unless it is dense."""
    columns = [1 << int(place) for place in rng.permutation(bits)]
    while dense:
        columns = [int(column) for column in rng.integers(0, 1 << bits, bits)]
        if matrix.rank(columns) == bits:
            break
    axes = {"register": columns[:registers], "lane": columns[registers : registers + lanes],
            "warp": columns[registers + lanes :]}  # fmt: skip
    return LinearLayout.from_bases({name: [(x,) for x in images] for name, images in axes.items()}, {"tile": 1 << bits})


@pytest.mark.parametrize("element_bits", [8, 16, 32, 64])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), dense=st.booleans())
def test_two_accesses_never_conflict(element_bits, seed, dense):
    rng = np.random.default_rng(seed)
    bits = int(rng.integers(7, 13))
    pair = [random_access(rng, bits, int(rng.integers(1, bits - 5)), dense=dense) for _ in range(2)]
    plan = swizzle(pair, "sm_90a", element_bits).check()
    assert plan.conflict_free
    assert plan.bound <= plan.turns


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), many=st.integers(3, 4))
def test_more_accesses_and_targets_are_counted_right(seed, many):
    rng = np.random.default_rng(seed)
    layouts = [random_access(rng, 9, 4 - bool(lanes == 6), lanes, dense=True) for lanes in (5,) * many]
    swizzle(layouts, ["sm_90a", "sm_80"], 32, seconds=0.2).check()
    waves = [(random_access(rng, 10, 3, 6, dense=False), "load") for _ in range(many)]
    swizzle(waves, ["gfx942", "gfx950"], 64, seconds=0.2).check()
    with pytest.raises(RepresentabilityError, match="unknown banks"):
        swizzle([random_access(rng, 10, 3, 6, dense=False)], "gfx90a")


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_bijection_of_a_small_tile_is_better(seed):
    """Every shared layout of a tile of 2^6 words behind 3 accesses of 32 lanes, by all kernels of the bank number."""
    rng = np.random.default_rng(seed)
    layouts = [random_access(rng, 6, 1, dense=True) for _ in range(3)]
    plan = swizzle([(layout, "load") for layout in layouts], "sm_90a", 128).check()
    # 128-bit elements: a bank row holds 8 of them, so the bank number has 3 bits and its kernel 3 dimensions
    least = None
    for rows in itertools.combinations(range(1, 64), 3):
        if matrix.rank(rows) < 3:
            continue
        columns = matrix.transpose(rows, 6)
        turns = 0
        for layout in layouts:
            lanes = [matrix.apply(columns, image) for image in layout.columns[1:4]]
            turns += (2 * 4) << 3 - matrix.rank(lanes)
        least = turns if least is None else min(least, turns)
    assert plan.turns == least


def test_fragments_of_matrices():
    fragment = mma_operand("A", (16, 64), (1, 1), 2)
    rows = LinearLayout.from_bases(
        {"register": [(0, 1), (0, 2), (0, 4), (8, 0)], "lane": [(0, 8), (0, 16), (0, 32), (1, 0), (2, 0)],
         "warp": [(4, 0)]}, fragment.out_dims,
    )  # fmt: skip
    plan = swizzle([(rows, "store"), (fragment, "ldmatrix")]).check()
    assert [each.instruction for each in plan.served] == ["st.shared.v4.b32", "ldmatrix.x4"]
    assert plan.conflict_free
    assert plan.optimal
    assert len(plan.certificates()) == 2


def test_what_is_not_a_question_is_refused():
    rng = np.random.default_rng(0)
    layout = random_access(rng, 8, 3, dense=False)
    for accesses, words in (([], "at least one"), (3, "must be a list"), ([3], "must be layouts"),
                            ([(layout, "copy")], "must be one of load")):  # fmt: skip
        with pytest.raises(MalformedError, match=words):
            swizzle(accesses)
    with pytest.raises(MalformedError, match="axes in this order"):
        swizzle([layout, random_access(rng, 9, 3, dense=False)])
    with pytest.raises(MalformedError, match="8, 16, 32, 64 or 128"):
        swizzle([layout], element_bits=12)
    plan = swizzle([layout])
    with pytest.raises(MalformedError, match="LA911"):
        type(plan)(plan.smem, 16, (TileAccess(random_access(rng, 8, 3, dense=True)),), plan.served, 0, "").check()
    assert serve(plan.accesses[0], 0, plan.smem, 16, "sm_90a") == plan.served[0]
