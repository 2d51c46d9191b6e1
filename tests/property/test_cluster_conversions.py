"""Conversions across the blocks of a cluster: walked over a dict of bytes for each block, and the text on the CPU."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instruments.conversion_loop import conversion_loop
from judges.array_kernels import as_words
from judges.conversion_moves import stated_moves_hold

from layoutalg import LayoutError, LinearLayout, Unknown, conversion
from layoutalg.codegen import hostsim
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.f2 import matrix
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Through
from layoutalg.proofs.exchange import Take

NAMES = ("register", "lane", "warp", "block")


def pair(rng, kind):
    """Two layouts of a tensor over registers, lanes, warps and blocks."""
    blocks, warps = rng.randint(1, 3), rng.randint(0, 2)
    ends = []
    sizes = [(registers, 5, warps, blocks) for registers in (rng.randint(0, 3), rng.randint(0, 3))]
    wide = min(map(sum, sizes)) - rng.randint(0, 2) * (kind != "dense")
    for bits in sizes:
        units = [1 << bit for bit in range(wide)]
        if kind == "dense":
            while matrix.rank(units) < wide or units == [1 << bit for bit in range(wide)]:
                units = [rng.randrange(1, 1 << wide) for _ in range(wide)]
        columns = [*units, *(0 if kind == "units" else rng.choice([0, *units]) for _ in range(sum(bits) - wide))]
        rng.shuffle(columns)
        first, bases = 0, {}
        for name, count in zip(NAMES, bits, strict=True):
            bases[name] = [(column,) for column in columns[first : first + count]]
            first += count
        ends.append(LinearLayout.from_bases(bases, {"x": 1 << wide}))
    return ends[0], ends[1], 1 << blocks, 1 << warps


def elements(layout):
    """By block, warp, lane and register the element."""
    shape = tuple(reversed(list(layout.in_dims.values())))
    return layout.table().reshape(shape)


def walked(plan, held, blocks):
    """What threads hold after the steps, one element at a time; the memory of every block is its own."""
    rows = [[int(label) for label in row] for row in held.reshape(-1, held.shape[-1])]
    size, lanes = plan.element_bits // 8, plan.lanes
    each = len(rows) // blocks
    for step in plan.steps:
        if isinstance(step, Take):
            rows = [[row[register] for register in step.registers] for row in rows]
            continue
        assert isinstance(step, Through)
        assert (step.blocks, step.barrier) == (blocks, "cluster")
        memory = [{} for _ in range(blocks)]
        window = step.smem_bytes // blocks
        stored, loaded = (access.elements_at(plan.element_bits, lanes) for access in (step.store, step.load))
        for thread, row in enumerate(rows):
            if thread & step.store.idle == 0:
                for label, at in zip(row, stored[thread].tolist(), strict=True):
                    assert at // window == thread // each
                    assert at % window not in memory[at // window]
                    assert at % size == 0
                    memory[at // window][at % window] = label
        rows = [[memory[at // window][at % window] for at in row] for row in loaded.tolist()]
    return rows


CROSSING = st.tuples(
    st.integers(0, 1 << 30), st.sampled_from(["units", "dense", "copies"]), st.sampled_from([8, 16, 32, 64])
)


@settings(max_examples=120, deadline=None)
@given(CROSSING, st.sampled_from(["sm_90a", "sm_100a"]))
def test_elements_come_from_other_blocks(drawn, target):
    seed, kind, bits = drawn
    source, wanted, blocks, _ = pair(random.Random(seed), kind)
    plan = conversion(source, wanted, bits, target)
    assert isinstance(plan, ConversionPlan)
    assert plan.check() is plan
    assert plan.certificate.check()
    stated_moves_hold(plan)
    if plan.mechanism == "cluster":
        assert (
            walked(plan, elements(source), blocks) == elements(wanted).reshape(-1, wanted.in_dims["register"]).tolist()
        )
        assert plan.smem_bytes == max(128, bits // 8 << matrix.rank(source.columns[: -(blocks.bit_length() - 1)]))
    else:
        assert plan.mechanism in ("nothing", "registers", "shuffles", "shared", "matrices")


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@settings(max_examples=20, deadline=None)
@given(CROSSING)
def test_kernels_on_the_cpu(drawn):
    """A cluster is one block of all its threads there."""
    seed, kind, bits = drawn
    source, wanted, blocks, warps = pair(random.Random(seed), kind)
    plan = conversion(source, wanted, bits)
    if plan.mechanism != "cluster" or blocks * warps > 32:
        return
    kernel = conversion_kernel(plan)
    assert kernel.threads == 32 * warps
    alone = dataclasses.replace(
        kernel, threads=kernel.threads * blocks, dynamic_smem_bytes=kernel.dynamic_smem_bytes * blocks
    )
    values = np.random.default_rng(seed).integers(0, 1 << min(bits, 62), 1 << source.out_bits)
    before, hoped = (as_words(values[elements(end)], bits) for end in (source, wanted))
    filled = as_words(np.full(elements(wanted).shape, (1 << bits) - 1, np.uint64), bits)
    found = np.zeros_like(hoped)
    ran = hostsim.trace(alone, [before, found], races=True)
    assert hostsim.FAULTS[ran.fault] == "none", ran.why
    assert np.array_equal(found & filled, hoped)
    turns = sum(step.store.turns + step.load.turns for step in plan.steps if isinstance(step, Through))
    assert sum(access.turns("sm_90a") for access in ran.accesses) == turns


BITS = [(1 << bit,) for bit in range(8)]
ROWS = LinearLayout.from_bases(
    {"register": BITS[:1], "lane": BITS[1:6], "warp": BITS[6:7], "block": BITS[7:]}, {"x": 256}
)
TURNED = LinearLayout.from_bases(
    {"register": BITS[7:], "lane": BITS[:5], "warp": BITS[5:6], "block": BITS[6:7]}, {"x": 256}
)


def test_the_plan_and_its_text_name_the_cluster():
    plan = conversion(ROWS, TURNED, 32).check()
    assert (plan.mechanism, plan.blocks, plan.smem_bytes, plan.cost.barriers) == ("cluster", 2, 512, 2)
    assert "512 bytes of each of 2 blocks" in str(plan)
    text = conversion_kernel(plan).text
    assert "void LA_CLUSTER(2) __launch_bounds__(64, 1)" in text
    assert text.count("la_cluster_barrier();") == 2
    assert conversion(ROWS, ROWS, 32).mechanism == "nothing"


def test_blocks_of_one_column_that_hold_other_elements():
    """What a block holds differs although its bit adds the same."""
    shifted = LinearLayout.from_bases(
        {"register": [(1 + 128,)], "lane": BITS[1:6], "warp": BITS[6:7], "block": BITS[7:]}, {"x": 256}
    )
    plan = conversion(ROWS, shifted, 32).check()
    assert plan.mechanism == "cluster"
    assert walked(plan, elements(ROWS), 2) == elements(shifted).reshape(-1, 2).tolist()
    moved = LinearLayout(ROWS.in_axes, ROWS.out_axes, ROWS.columns, 128)
    assert conversion(ROWS, moved, 32).check().mechanism == "cluster"
    turned = LinearLayout.from_bases(
        {"register": BITS[6:7], "lane": BITS[:5], "warp": BITS[5:6], "block": BITS[7:]}, {"x": 256}
    )
    assert conversion(ROWS, turned, 32).check().mechanism == "shared"


def test_a_store_into_another_block_is_refused():
    plan = conversion(ROWS, TURNED, 32)
    step = plan.steps[0]
    store = dataclasses.replace(step.store, threads=(*step.store.threads[:-1], 0))
    with pytest.raises(LayoutError, match="own block"):
        dataclasses.replace(plan, steps=(dataclasses.replace(step, store=store), *plan.steps[1:])).check()
    for change in ({"barrier": "block"}, {"blocks": 1}, {"blocks": 3}):
        with pytest.raises(LayoutError, match="LA930"):
            dataclasses.replace(step, **change)


def test_what_is_refused_says_why():
    for target in ("sm_80", "gfx1201"):
        answer = conversion(ROWS, TURNED, 32, target)
        assert isinstance(answer, Unknown)
        assert f"{target} has no clusters" in answer.reason
    little = conversion(ROWS, TURNED, 32, smem_bytes=511)
    assert isinstance(little, Unknown)
    assert "512 bytes" in little.reason
    many = [(1 << bit,) for bit in range(9)]
    wide = [
        LinearLayout.from_bases({"lane": order[:5], "block": order[5:]}, {"x": 512}) for order in (many, many[::-1])
    ]
    answer = conversion(*wide, 32)
    assert isinstance(answer, Unknown)
    assert "16 blocks exceed the 8" in answer.reason
    with pytest.raises(LayoutError, match="LA933"):
        conversion(
            ROWS, LinearLayout.from_bases({"register": BITS[6:], "lane": BITS[:5], "warp": BITS[5:6]}, {"x": 256}), 32
        )
    with pytest.raises(LayoutError, match="LA955"):
        conversion_loop(conversion(ROWS, TURNED, 32), conversion(TURNED, ROWS, 32))
