"""Planned conversions as kernels on the CPU: every register right, and as many turns of the banks as the plan says."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from instruments.conversion_loop import conversion_loop
from judges.array_kernels import as_words

from layoutalg.codegen import hostsim
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Through
from layoutalg.synth import conversion
from layoutalg.targets.registry import lookup

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
KINDS = ("bits", "dense", "broadcast", "inside a warp")


def pair(kind: str, seed: int, target: str) -> tuple[LinearLayout, LinearLayout, int]:
    """Two layouts of one tensor, and the bits of an element."""
    rng = random.Random(f"{kind} {seed}")
    narrow = lookup(target).vendor == "nvidia" or kind in ("broadcast", "inside a warp")
    bits = (8, 16, 32)[seed % 3] if narrow else 32  # turns of narrow accesses of AMD are not published
    lanes = lookup(target).lanes.bit_length() - 1
    sizes = {"register": rng.randint(2, 4), "lane": lanes, "warp": rng.randint(0, 2)}
    total = sum(sizes.values())
    units = [1 << bit for bit in range(total)]
    inner = sizes["register"] + lanes
    columns = list(units)
    if kind == "inside a warp":
        columns = [*rng.sample(units[:inner], inner), *units[inner:]]
    elif kind == "dense":
        while matrix.rank(columns := [rng.randrange(1, 1 << total) for _ in range(total)]) < total:
            pass
    else:
        rng.shuffle(columns)
    ends = []
    for listed in (units, columns):
        given = list(listed)
        if kind == "broadcast":
            copies = rng.sample(range(total), 2)
            gone = units[-1] | units[-2]
            given = [0 if place in copies else column for place, column in enumerate(given)]
            kept = iter(column for column in units if not column & gone)
            given = [next(kept) if column else 0 for column in given]
        first, bases = 0, {}
        for name, count in sizes.items():
            bases[name] = [(column,) for column in given[first : first + count]]
            first += count
        ends.append(LinearLayout.from_bases(bases, {"tile": 1 << total - 2 * (kind == "broadcast")}))
    return ends[0], ends[1], bits


def words(layout: LinearLayout, values: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """The words of every thread that holds what a layout says, by word and thread."""
    return as_words(values[np.asarray(layout.table()).reshape(-1, layout.in_dims["register"])], bits)


def turns(plan: ConversionPlan) -> int:
    return sum(step.store.turns + step.load.turns for step in plan.steps if isinstance(step, Through))


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("target", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_every_register_and_every_turn(kind: str, seed: int, target: str) -> None:
    source, destination, bits = pair(kind, seed, target)
    plan = conversion(source, destination, bits, target=target)
    assert isinstance(plan, ConversionPlan)
    values = np.random.default_rng(seed).integers(0, 1 << bits, 1 << source.out_bits)
    before, wanted = (words(end, values, bits) for end in (source, destination))
    found = np.zeros_like(wanted)
    ran = hostsim.trace(conversion_kernel(plan), [before, found])
    assert ran.fault == 0
    assert np.array_equal(found, wanted)
    assert sum(access.turns(target) for access in ran.accesses) == turns(plan)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_there_and_back_in_a_loop(seed: int) -> None:
    source, destination, bits = pair(KINDS[seed % 2], seed, "sm_90a")
    there, back = conversion(source, destination, bits), conversion(destination, source, bits)
    assert isinstance(there, ConversionPlan)
    assert isinstance(back, ConversionPlan)
    values = np.random.default_rng(seed).integers(0, 1 << bits, 1 << source.out_bits)
    before = words(source, values, bits)
    found = np.zeros_like(before)
    kernel = conversion_loop(there, back)
    assert hostsim.run(kernel, [before, found, np.zeros(1, np.uint64), 3]) == 0
    assert np.array_equal(found, before)


@pytest.mark.parametrize(("seed", "barrier"), [(2, "__syncthreads();"), (5, "la_sync_warp();")])
def test_a_loop_keeps_loads_apart_from_the_next_stores(seed: int, barrier: str) -> None:
    """Of conversions of which one alone passes through shared memory, nothing else does."""
    source, destination, bits = pair("broadcast", seed, "sm_90a")
    there, back = conversion(source, destination, bits), conversion(destination, source, bits)
    assert isinstance(there, ConversionPlan)
    assert isinstance(back, ConversionPlan)
    once = sum(conversion_kernel(plan).text.partition("__global__")[2].count(barrier) for plan in (there, back))
    turn = conversion_loop(there, back).text.partition("pragma unroll 1")[2]
    assert turn.count(barrier) == once + 1 == 2
