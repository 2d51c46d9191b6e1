"""Conversions of layouts that are no maps of bits: drawn mixed-radix layouts and tables, duplicates among them.

The judges are brute force: what a thread wants is looked up by label, steps are walked element by element over a dict
of bytes, and the emitted text is run on the CPU, where races are looked for and turns are counted from its accesses.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instruments.conversion_loop import conversion_loop
from judges.array_kernels import as_words

from layoutalg import CuteLayout, Unknown
from layoutalg.codegen import hostsim
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Through
from layoutalg.proofs.exchange import Take
from layoutalg.proofs.listed_access import OUT, UNCOUNTED, ListedAccess
from layoutalg.proofs.shuffle import ShufflePlan
from layoutalg.synth import conversion
from layoutalg.targets.registry import lookup

TARGETS = ("sm_90a", "sm_80", "gfx942", "gfx1201")
KINDS = ("radix", "radix", "shuffled", "copies", "window", "warps")
DRAWS = st.tuples(st.integers(0, 1 << 30), st.sampled_from(KINDS), st.sampled_from([8, 16, 32, 64]))


def factors(rng: random.Random, number: int) -> list[int]:
    """The prime factors in a random order."""
    found = []
    for prime in (2, 3, 5, 7):
        while number % prime == 0:
            found.append(prime)
            number //= prime
    rng.shuffle(found)
    return found


def radix(rng: random.Random, threads: int, values: int) -> CuteLayout:
    """A bijection: every digit of (thread, value) at a place of its own of the number."""
    modes = [factors(rng, threads), factors(rng, values)]
    digits = [(mode, place) for mode in (0, 1) for place in range(len(modes[mode]))]
    rng.shuffle(digits)
    strides: list[list[int]] = [[0] * len(modes[0]), [0] * len(modes[1])]
    step = 1
    for mode, place in digits:
        strides[mode][place] = step
        step *= modes[mode][place]
    shape = tuple(tuple(mode) if mode else 1 for mode in modes)
    return CuteLayout(shape, tuple(tuple(steps) if steps else 0 for steps in strides))


def pair(rng: random.Random, kind: str, target: str) -> tuple[object, object]:
    """A source and a destination, as layouts of threads and values or as tables by warp, lane and register."""
    lanes = lookup(target).lanes
    warps = rng.choice((1, 2, 3))
    registers = rng.choice((1, 3, 5, 6, 12))
    threads = lanes * warps
    if kind == "radix":
        return radix(rng, threads, registers), radix(rng, threads, registers)
    whole = np.arange(threads * registers) * rng.choice((1, 3)) + rng.choice((0, -7))
    shape = (warps, lanes, registers)
    if kind == "shuffled":
        return np.array(rng.sample(list(whole), len(whole))).reshape(shape), whole.reshape(shape)
    if kind == "window":  # neighbours share elements, and the destination asks for some of them
        first = np.add.outer(np.arange(threads), np.arange(registers))
        second = np.array([rng.randrange(threads + registers - 1) for _ in range(threads * 3)])
        return first.reshape(shape), second.reshape(warps, lanes, 3)
    if kind == "warps":  # every warp keeps to itself
        rows = whole.reshape(warps, -1)
        turned = np.array([rng.sample(list(row), len(row)) for row in rows])
        return rows.reshape(shape), turned.reshape(shape)
    some = rng.sample(list(whole), max(1, len(whole) // 3))
    first = np.array([*some, *(rng.choice(some) for _ in range(len(whole) - len(some)))])
    rng.shuffle(first)
    second = np.array([rng.choice(some) for _ in range(threads * 2)])
    return first.reshape(shape), second.reshape(warps, lanes, 2)


def elements(layout: object, lanes: int) -> np.ndarray:
    """By warp, lane and register, one call of the layout for each."""
    if not isinstance(layout, CuteLayout):
        return np.asarray(layout)
    threads, values = (int(CuteLayout(mode).size) for mode in layout.shape)
    rows = [[layout(thread + threads * value) for value in range(values)] for thread in range(threads)]
    return np.array(rows).reshape(-1, lanes, values)


def walked(plan: ConversionPlan, held: np.ndarray) -> list[list[int]]:
    """What threads hold after the steps, moved one element at a time."""
    warps, lanes, _ = held.shape
    rows = [[int(label) for label in row] for row in held.reshape(warps * lanes, -1)]
    size = plan.element_bits // 8
    for step in plan.steps:
        if isinstance(step, Take):
            rows = [[row[register] for register in step.registers] for row in rows]
        elif isinstance(step, ShufflePlan):
            rows = step.run(np.array(rows).reshape(warps, lanes, -1)).reshape(warps * lanes, -1).tolist()
        else:
            assert isinstance(step, Through)
            memory: dict[int, tuple[int, int]] = {}
            for access, storing in ((step.store, True), (step.load, False)):
                assert isinstance(access, ListedAccess)
                loaded: list[list[int]] = [[] for _ in rows]
                for number, starts in enumerate(access.rows):
                    for thread, start in enumerate(starts):
                        for place in range(access.elements):
                            at = start + place * size
                            if storing and start != OUT:
                                assert at not in memory
                                assert start % (access.elements * size) == 0 <= at <= step.smem_bytes - size
                                memory[at] = (rows[thread][number * access.elements + place], thread // lanes)
                            elif not storing:
                                assert step.barrier == "block" or memory[at][1] == thread // lanes
                                loaded[thread].append(memory[at][0])
            rows = loaded
    return rows


@settings(max_examples=100, deadline=None)
@given(DRAWS, st.sampled_from(TARGETS))
def test_every_register_gets_its_element(drawn: tuple[int, str, int], target: str) -> None:
    seed, kind, bits = drawn
    rng = random.Random(seed)
    source, wanted = pair(rng, kind, target)
    lanes = lookup(target).lanes
    plan = conversion(source, wanted, bits, target, mechanism=rng.choice((None, "shared")))
    assert isinstance(plan, ConversionPlan)
    if plan.source.layout is not None and plan.destination.layout is not None:
        return  # drawn as maps of bits
    want = elements(wanted, lanes)
    assert walked(plan, elements(source, lanes)) == want.reshape(-1, want.shape[2]).tolist()
    assert plan.check() is plan
    assert plan.certificate.check()
    for other in plan.alternatives:
        assert other.cost is None or other.cost.cycles >= plan.cost.cycles or other.mechanism != "shared"


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@settings(max_examples=20, deadline=None)
@given(DRAWS, st.sampled_from(["sm_90a", "gfx942"]))
def test_kernels_bring_it_in_as_many_turns(drawn: tuple[int, str, int], target: str) -> None:
    seed, kind, bits = drawn
    source, wanted = pair(random.Random(seed), kind, target)
    lanes = lookup(target).lanes
    plan = conversion(source, wanted, bits, target, mechanism="shared")
    have, want = (elements(end, lanes) for end in (source, wanted))
    numbers, places = np.unique(have, return_inverse=True)
    values = np.random.default_rng(seed).integers(0, 1 << min(bits, 62), len(numbers))
    before = values[places.reshape(have.shape)]
    after = values[np.searchsorted(numbers, want)]
    given_, hoped = as_words(before, bits), as_words(after, bits)
    filled = as_words(np.full(after.shape, (1 << bits) - 1, dtype=np.uint64), bits)
    found = np.zeros_like(hoped)
    ran = hostsim.trace(conversion_kernel(plan), [given_, found], races=True)
    assert hostsim.FAULTS[ran.fault] == "none", ran.why
    assert np.array_equal(found & filled, hoped)
    accesses = [access for step in plan.steps if isinstance(step, Through) for access in (step.store, step.load)]
    if all(access.turns != UNCOUNTED for access in accesses):
        assert sum(access.turns(target) for access in ran.accesses) == sum(access.turns for access in accesses)


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
def test_there_and_back_in_a_loop() -> None:
    there = conversion("(96,5):(5,1)", "(96,5):(1,96)", 32)
    back = conversion("(96,5):(1,96)", "(96,5):(5,1)", 32)
    words = np.random.default_rng(1).integers(0, 1 << 32, (5, 96)).astype(np.uint32)
    found = np.zeros_like(words)
    assert hostsim.run(conversion_loop(there, back), [words, found, np.zeros(1, np.uint64), 3]) == 0
    assert np.array_equal(found, words)


def test_strided_addresses_are_written_as_sums_of_digits() -> None:
    plan = conversion("(96,5):(5,1)", "(96,5):(1,96)", 32)
    assert (plan.mechanism, plan.cost.turns) == ("shared", 30)
    assert "elements stored in the order of their numbers" in plan.why
    text = conversion_kernel(plan).text
    assert "= t * 20u;" in text
    assert "la_numbers" not in text


def test_padding_frees_columns_of_conflicts() -> None:
    """Rows of 96 words stored by lanes of one bank: words left out spread them."""
    plan = conversion("(32,96):(96,1)", "(32,96):(1,32)", 32, mechanism="shared").check()
    assert "skipped after every 96" in plan.why
    through = next(step for step in plan.steps if isinstance(step, Through))
    assert through.store.turns + through.load.turns <= 2 * 96


@pytest.mark.parametrize("bits", [32, 64, 128])
@pytest.mark.parametrize("seed", range(3))
def test_shuffled_tables_are_free_of_conflicts(seed: int, bits: int) -> None:
    """Random permutations of all registers: no two lanes that are served together share a bank, counted here."""
    shape = (seed + 1, 32, 8)
    whole = np.arange(np.prod(shape))
    shuffled = np.random.default_rng(seed).permutation(whole)
    plan = conversion(shuffled.reshape(shape), whole.reshape(shape), bits, mechanism="shared").check()
    assert "(no conflicts)" in plan.why
    through = next(step for step in plan.steps if isinstance(step, Through))
    for access in (through.store, through.load):
        together = 32 * 4 // (access.elements * bits // 8)
        for row in access.addresses().reshape(-1, together):
            words = [start // 4 + word for start in row for word in range(access.elements * bits // 32)]
            assert len({word % 32 for word in words}) == len(words) == 32


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("count", [2, 3, 12])
def test_less_shared_memory_means_more_passes(count: int, bits: int) -> None:
    """Pairs of registers that get nothing from others share the bytes of the pairs before, in another order each."""
    order = [7, 2, 9, 0, 11, 4, 1, 10, 3, 8, 5, 6]
    first = np.array([[[2 * t + r + 192 * pair for pair in range(12) for r in (0, 1)] for t in range(96)]])
    second = np.array([[[t + 96 * r + 192 * pair for pair in (*order, 5) for r in (0, 1)] for t in range(96)]])
    source, wanted = first.reshape(3, 32, 24), second.reshape(3, 32, 26)  # two registers are the same as others
    whole = 96 * 24 * bits // 8
    plan = conversion(source, wanted, bits, mechanism="shared", smem_bytes=whole // count)
    assert isinstance(plan, ConversionPlan), plan.reason
    assert (plan.check().rounds, plan.smem_bytes <= whole // count) == (count, True)
    before, hoped = as_words(source % (1 << bits), bits), as_words(wanted % (1 << bits), bits)
    found = np.zeros_like(hoped)
    ran = hostsim.trace(conversion_kernel(plan), [before, found], races=True)
    assert hostsim.FAULTS[ran.fault] == "none", ran.why
    assert np.array_equal(found, hoped)
    little = conversion(source, wanted, bits, mechanism="shared", smem_bytes=whole // 12 - 1)
    assert isinstance(little, Unknown)
    assert f"a pass needs at least {whole // 12} bytes" in little.reason


def test_one_of_equal_threads_stores() -> None:
    plan = conversion(
        np.arange(96).reshape(1, 32, 3) // 6, np.arange(32).reshape(1, 32, 1) // 2, 32, mechanism="shared"
    )
    assert isinstance(plan, ConversionPlan)
    store = next(step for step in plan.check().steps if isinstance(step, Through)).store
    assert isinstance(store, ListedAccess)
    assert int(np.count_nonzero(store.addresses() != OUT)) == 16


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(InfeasibleError, match="LA934"):
        conversion("(96,5):(5,1)", "(96,5):(1,97)", 32)
    little = conversion("(96,5):(5,1)", "(96,5):(1,96)", 32, smem_bytes=1919)
    assert isinstance(little, Unknown)
    assert "1920 bytes" in little.reason
    assert isinstance(conversion("(96,5):(5,1)", "(96,5):(1,96)", 32, smem_bytes=1920), ConversionPlan)
    for wrong in (
        [[1, 2], [3, 4]],
        np.zeros((1, 31, 2), int),
        np.zeros((1, 32, 2)),
        "Z[lane:32=(1), value:3=(32) -> x]",
    ):
        with pytest.raises(MalformedError):
            conversion(wrong, wrong, 32)


def test_layouts_of_any_family_are_read_by_their_axes() -> None:
    rows, columns = "lane 32:3, register 3:1 -> x:8, y:12", "register 3:32, lane 32:1 -> x:8, y:12"
    plan = conversion(rows, columns, 32).check()
    assert (plan.source.registers, plan.destination.elements()[0, 5, 2]) == (3, 69)
    turned = conversion("register 3:1, lane 32:3 -> x:8, y:12", "Z[lane:32=(3), register:3=(1) -> offset]", 32)
    assert turned.mechanism == "nothing"
    swizzled = conversion("Sw<1,0,2> o 0 o (32,3):(3,1)", "(32,3):(3,1)", 32).check()
    assert swizzled.source.elements()[0, 1, 1] == 5
