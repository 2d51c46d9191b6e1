"""Gathers of registers: every plan, and its text on the CPU, against numpy's along an axis of a whole tensor."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.array_kernels import as_words

from layoutalg import LayoutError, LinearLayout, Unknown, gather
from layoutalg.codegen import hostsim
from layoutalg.codegen.gather import gather_registers_kernel
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.targets.registry import lookup

KINDS = ("units", "dense", "copies", "inside")
WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def drawn(rng, kind, lanes, warps, axis, target):
    """A layout of a tensor and one of indices, as many threads each, with different sizes at the axis."""
    rank = rng.randint(1, 3)
    axis %= rank
    names = ["row", "col", "depth"][:rank]
    counts = []
    for registers in (rng.randint(0, 3), rng.randint(0, 2)):
        counts.append({"register": registers, "lane": lanes, "warp": warps})
    total = [sum(count.values()) for count in counts]
    other = [0] * rank
    for _ in range(min(total) - rng.randint(0, 4)):
        place = rng.randrange(rank)
        other[place] += place != axis
    ends = []
    for count, size in zip(counts, total, strict=True):
        bits = list(other)
        bits[axis] = size - sum(other)
        if kind == "copies":
            bits[axis] -= min(bits[axis], rng.randint(1, 2))
        units = [
            tuple((1 << bit) * (place == at) for at in range(rank))
            for place in range(rank)
            for bit in range(bits[place])
        ]
        if kind == "inside":  # the axis lies in registers and lanes
            units.sort(key=lambda unit: not unit[axis])
        else:
            rng.shuffle(units)
        columns = [*units, *[(0,) * rank] * (size - len(units))]
        if kind == "dense":
            for _ in range(2 * size):
                one, two = rng.sample(range(size), 2)
                columns[one] = tuple(a ^ b for a, b in zip(columns[one], columns[two], strict=True))
        elif kind == "copies":
            rng.shuffle(columns)
        first, bases = 0, {}
        for name, many in count.items():
            bases[name] = columns[first : first + many]
            first += many
        sizes = {name: 1 << bit for name, bit in zip(names, bits, strict=True)}
        if len(ends) and rng.random() < 0.3:  # the axes in another order
            bases = {name: [vector[::-1] for vector in vectors] for name, vectors in bases.items()}
            sizes = dict(reversed(sizes.items()))
        ends.append(LinearLayout.from_bases(bases, sizes))
    return ends[0], ends[1], axis


def coordinates(layout, warps, lanes, names):
    """The coordinates of every place at these axes, as index arrays by warp, lane and register."""
    at = layout.apply({
        "register": np.arange(layout.in_dims["register"])[None, None, :],
        "lane": np.arange(lanes)[None, :, None], "warp": np.arange(warps)[:, None, None],
    })  # fmt: skip
    shape = (warps, lanes, layout.in_dims["register"])
    return tuple(np.broadcast_to(part, shape) for part in map(at.__getitem__, names))


def along(tensor, indices, axis):
    """What numpy takes, and 0 outside."""
    inside = (indices >= 0) & (indices < tensor.shape[axis])
    return np.where(inside, np.take_along_axis(tensor, np.where(inside, indices, 0), axis), 0).astype(tensor.dtype)


def question(seed, kind, bits, target, mechanism):
    """The plan with what goes in and what must come out."""
    rng = random.Random(seed)
    lanes = lookup(target).lanes
    warps = rng.choice((0, 0, 1, 2))
    source, index, axis = drawn(rng, kind, lanes.bit_length() - 1, warps, rng.randrange(3), target)
    plan = gather(source, index, axis, bits, target, mechanism=mechanism)
    numbers = np.random.default_rng(seed)
    tensor = numbers.integers(0, 1 << min(bits, 62), tuple(source.out_dims.values())).astype(WORDS[bits])
    extent = tensor.shape[axis]
    names = tuple(source.out_dims)
    indices = numbers.integers(-2, extent + 2, tuple(map(index.out_dims.__getitem__, names)))
    have, want = (coordinates(end, 1 << warps, lanes, names) for end in (source, index))
    return plan, tensor[have], indices[want], along(tensor, indices, axis)[want]


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from(KINDS), st.sampled_from([8, 16, 32, 64]),
       st.sampled_from(["sm_90a", "gfx942", "gfx1201"]), st.sampled_from([None, "shared"]))  # fmt: skip
def test_plans_bring_what_numpy_takes(seed, kind, bits, target, mechanism):
    plan, values, indices, wanted = question(seed, kind, bits, target, mechanism)
    assert isinstance(plan, GatherPlan)
    assert plan.check() is plan
    assert np.array_equal(plan.run(values.astype(np.int64), indices), wanted.astype(np.int64))
    assert plan.certificate.check()
    for other in plan.alternatives:
        assert mechanism or other.cost is None or other.cost.cycles >= plan.cost.cycles


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from(KINDS), st.sampled_from([8, 16, 32, 64]),
       st.sampled_from(["sm_90a", "gfx942"]), st.sampled_from([None, "shared"]))  # fmt: skip
def test_kernels_bring_what_numpy_takes(seed, kind, bits, target, mechanism):
    plan, values, indices, wanted = question(seed, kind, bits, target, mechanism)
    given_, hoped = as_words(values, bits), as_words(wanted, bits)
    found = np.zeros_like(hoped)
    asked = np.ascontiguousarray(indices.reshape(-1, indices.shape[2]).T.astype(np.int32))
    ran = hostsim.trace(gather_registers_kernel(plan), [given_, asked, found], races=True)
    assert hostsim.FAULTS[ran.fault] == "none", ran.why
    assert np.array_equal(found, hoped)
    if plan.stage is not None and plan.stage.store.turns != UNCOUNTED:
        stores = [access for access in ran.accesses if access.kind == "store"]
        assert sum(access.turns(target) for access in stores) == plan.stage.store.turns


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("shape", [(64, 32), (8, 256)])
def test_loads_of_equal_indices_take_the_turns_that_are_counted(shape):
    rows = LinearLayout.from_bases(
        {"register": [(1, 0)], "lane": [(0, 1), (0, 2), (0, 4), (2, 0), (4, 0)],
         "warp": [(8 << bit, 0) for bit in range(shape[0].bit_length() - 4)]
         + [(0, 8 << bit) for bit in range(shape[1].bit_length() - 4)]},
        dict(zip(("row", "col"), shape, strict=True)),
    )  # fmt: skip
    plan = gather(rows, rows, "row", 32, mechanism="shared")
    words = np.zeros((2, shape[0] * shape[1] // 2), np.uint32)
    asked = np.full_like(words, 3, dtype=np.int32)
    ran = hostsim.trace(gather_registers_kernel(plan), [words, asked, words.copy()])
    loads = [access for access in ran.accesses if access.kind == "load"]
    assert sum(access.turns("sm_90a") for access in loads) == plan.stage.turns


ROWS = LinearLayout.from_bases(
    {"register": [(1, 0)], "lane": [(0, 1 << bit) for bit in range(5)]}, {"row": 2, "col": 32}
)


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("many", [1, 2, 3])
def test_threads_that_hold_the_whole_axis_choose_among_their_registers(bits, many):
    """The axis lies in registers, in another order for lanes whose lowest bit is set."""
    rows = [(1 << bit, 0) for bit in range(many)]
    lanes = [(int(many > 1), 1), *((0, 2 << bit) for bit in range(4))]
    source = LinearLayout.from_bases({"register": rows, "lane": lanes}, {"row": 1 << many, "col": 32})
    index = LinearLayout.from_bases(
        {"register": [(1, 0)], "lane": [(0, 1 << bit) for bit in range(5)]}, {"row": 2, "col": 32}
    )
    index = LinearLayout((*index.in_axes, ("warp", 0)), index.out_axes, index.columns)
    source = LinearLayout((*source.in_axes, ("warp", 0)), source.out_axes, source.columns)
    plan = gather(source, index, "row", bits).check()
    assert (plan.mechanism, plan.cost.shuffles) == ("registers", 0)
    rng = np.random.default_rng(bits + many)
    tensor = rng.integers(0, 1 << min(bits, 62), (1 << many, 32)).astype(WORDS[bits])
    indices = rng.integers(-1, (1 << many) + 1, (2, 32))
    have, want = (coordinates(end, 1, 32, ("row", "col")) for end in (source, index))
    found = np.zeros_like(as_words(along(tensor, indices, 0)[want], bits))
    asked = np.ascontiguousarray(indices[want].reshape(32, 2).T.astype(np.int32))
    ran = hostsim.trace(gather_registers_kernel(plan), [as_words(tensor[have], bits), asked, found], races=True)
    assert hostsim.FAULTS[ran.fault] == "none", ran.why
    assert np.array_equal(found, as_words(along(tensor, indices, 0)[want], bits))


def test_each_mechanism_where_it_suffices():
    assert gather(ROWS, ROWS, "row", 32).mechanism == "registers"
    assert gather(ROWS, ROWS, 1, 32).mechanism == "shuffles"
    bases = {"register": [(0, 1), (0, 2)], "lane": [(0, 4), (0, 8), (1, 0), (2, 0), (4, 0)], "warp": [(0, 16)]}
    wide = LinearLayout.from_bases(bases, {"row": 8, "col": 32})
    across = gather(wide, wide, "col", 16)
    assert (across.mechanism, across.stage.barrier) == ("shared", "block")
    assert "another warp" in across.why
    assert gather("(32,2):(2,1)", "(32,4):(4,1)", 0, 8, shape=(64,), index_shape=(128,)).check().count == 128


def test_what_cannot_be_asked_is_named():
    for arguments, said in (
        (("(32,3):(3,1)", "(32,3):(3,1)", 0, 32), "linear over F2"),
        (("(32,2):(2,1)", "(32,2):(2,1)", 0, 32), "shape="),
        ((ROWS, ROWS, "depth", 32), "axis"),
        ((ROWS, ROWS, 2, 32), "axis"),
        ((ROWS, ROWS, 0, 24), "element_bits"),
        ((ROWS, LinearLayout(ROWS.in_axes, (("row", 1), ("x", 5)), ROWS.columns), 0, 32), "axes row, col"),
        ((ROWS, LinearLayout.from_bases({"lane": [(0, 1 << bit) for bit in range(5)], "register": [(0, 32)]},
                                        {"row": 1, "col": 64}), 0, 32), "extent 32 along col"),
    ):  # fmt: skip
        with pytest.raises(LayoutError, match=said):
            gather(*arguments)
    bases = {"register": [(0, 0)], "lane": [(0, 1 << bit) for bit in range(5)]}
    half = LinearLayout.from_bases(bases, {"row": 2, "col": 32})
    with pytest.raises(LayoutError, match="LA934"):
        gather(half, ROWS, "row", 32)
    little = gather(ROWS, ROWS, 1, 32, smem_bytes=255, mechanism="shared")
    assert isinstance(little, Unknown)
    assert "256 bytes" in little.reason


def test_a_wrong_plan_is_named():
    plan = gather(ROWS, ROWS, "col", 32)
    for change, said in (
        ({"constant": 2}, "element"),
        ({"mechanism": "registers"}, "thread"),
        ({"columns": (plan.columns[0], 64, *plan.columns[2:])}, "places below"),
        ({"cost": dataclasses.replace(plan.cost, shuffles=1)}, "cost"),
    ):
        with pytest.raises(LayoutError, match="LA936") as refused:
            dataclasses.replace(plan, **change).check()
        assert said in str(refused.value)
