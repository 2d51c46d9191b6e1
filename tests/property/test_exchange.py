"""Plans of exchanges against the permutations they were asked for, and their costs against what bounds them."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest

from layoutalg.codegen.conversion_steps import StepWriter
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.f2 import matrix
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.conversion_steps import flattened
from layoutalg.proofs.exchange import Choose, Cost, Exchange, ExchangePlan, Move, Rename, Repack
from layoutalg.proofs.shuffle import moved
from layoutalg.synth.exchange import exchanges

KINDS = ("swap", "bits", "dense")


def residual(rng: random.Random, kind: str, registers: int, lanes: int, warps: int, swaps: int = 9) -> np.ndarray:
    """A source map of a kind, by warp, lane and register."""
    inner = registers + lanes
    local = [1 << bit for bit in range(inner)]
    if kind == "swap":
        count = rng.randint(0, min(registers, lanes, swaps))
        pairs = zip(rng.sample(range(registers), count), rng.sample(range(registers, inner), count), strict=True)
        for one, other in pairs:
            local[one], local[other] = local[other], local[one]
    elif kind == "bits":
        rng.shuffle(local)
    else:
        while matrix.rank(local := [rng.randrange(1, 1 << inner) for _ in range(inner)]) < inner:
            pass
    mixed = rng.random() < 0.3
    upper = [(rng.randrange(1 << inner) if mixed else 0) | 1 << inner + bit for bit in range(warps)]
    constant = rng.randrange(1 << inner) if rng.random() < 0.3 else 0
    return matrix.table([*local, *upper], constant).reshape(1 << warps, 1 << lanes, 1 << registers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element_bits", [8, 16, 32])
def test_every_plan_is_the_permutation(kind: str, element_bits: int) -> None:
    rng = random.Random(f"{kind}{element_bits}")
    packed = 0
    for _ in range(60):
        source = residual(rng, kind, rng.randint(0, 5), rng.randint(1, 5), rng.randint(0, 2))
        plan = exchanges(source, element_bits)
        assert plan is not None
        assert np.array_equal(plan.source(), source)
        assert plan.packed * element_bits <= 32
        packed += plan.packed > 1
        assert plan.cost.shuffles <= plan.words * max(1, len([s for s in plan.steps if not isinstance(s, Rename)]))
        assert plan.packed > 1 or plan.cost.shuffles >= moved(source) or plan.words == 0
    assert bool(packed) == (element_bits < 32)


@pytest.mark.parametrize("swaps", [1, 2, 3])
def test_exchanged_bits_cost_what_the_two_forms_cost(swaps: int) -> None:
    rng = random.Random(swaps)
    for registers in (3, 4, 5):
        local = [1 << bit for bit in range(registers + 5)]
        for one, other in zip(
            rng.sample(range(registers), swaps), rng.sample(range(registers, registers + 5), swaps), strict=True
        ):
            local[one], local[other] = local[other], local[one]
        plan = exchanges(matrix.table(local).reshape(1, 32, 1 << registers))
        words = 1 << registers
        one_by_one = Cost(shuffles=swaps * words // 2, selects=3 * swaps * words // 2)
        layers = Cost(shuffles=words - (words >> swaps), selects=2 * swaps * words)
        assert plan.cost.cycles == min(one_by_one.cycles, layers.cycles)
        assert plan.shared_cost == Cost(turns=2 * words)


def test_shuffles_are_least_where_words_move_in_one_layer() -> None:
    """All affine maps of two words and four lanes: as many shuffles as words that the busiest lane receives."""
    seen = 0
    for columns in itertools.product(range(1, 8), repeat=3):
        if matrix.rank(columns) < 3:
            continue
        source = matrix.table(columns).reshape(1, 4, 2)
        plan = exchanges(source)
        assert np.array_equal(plan.source(), source)
        assert moved(source) <= plan.cost.shuffles <= 2
        seen += 1
    assert seen == 168


def test_the_statements_do_what_the_steps_say() -> None:
    """The C statements, run by Python on all lanes at once."""
    rng = random.Random(5)
    for case in range(40):
        source = residual(rng, KINDS[case % 3], rng.randint(1, 4), 5, rng.randint(0, 1))
        bits = rng.choice((8, 16, 32))
        plan = exchanges(source, bits)
        warps = source.shape[0]
        elements = np.random.default_rng(case).integers(0, 1 << bits, source.shape, dtype=np.uint64).astype(np.uint32)
        wide = 32 // plan.packed
        parts = elements.reshape(-1, plan.words, plan.packed)
        words = np.bitwise_or.reduce(parts << (wide * np.arange(plan.packed)).astype(np.uint32), axis=2)
        names = [f"w{word}" for word in range(plan.words)]
        writer = StepWriter(wide, numbers := Numbers(), (f"x{n}" for n in itertools.count()), 32, warps, 0)
        after = writer.written(flattened(plan, plan.packed), names, plan.registers)
        held = run_text(numbers.declared().splitlines(), {"t": np.arange(32 * warps, dtype=np.uint32)}, 32 * warps)
        held |= {name: words[:, word] for word, name in enumerate(names)}
        held = run_text(writer.lines, held, 32 * warps)
        got = np.stack([held[name] for name in after], axis=1)
        mask = np.uint32((1 << wide) - 1)
        got = (got[:, :, None] >> (wide * np.arange(plan.packed)).astype(np.uint32)) & mask
        assert np.array_equal(got.reshape(source.shape), elements.reshape(-1)[source])


def run_text(lines, held: dict, threads: int) -> dict:
    """Declarations of 32-bit words, each with an expression of names, selects and calls, for all threads."""
    lane = np.arange(threads, dtype=np.uint32)

    def shuffle(word, other):
        return word[lane // 32 * 32 + np.broadcast_to(other, word.shape) % 32]

    def take(low, high, selector):
        joined = [low >> np.uint32(8 * i) & np.uint32(255) for i in range(4)]
        joined += [high >> np.uint32(8 * i) & np.uint32(255) for i in range(4)]
        selector = np.broadcast_to(selector, low.shape)
        return sum(np.choose(selector >> 4 * i & 7, joined) << np.uint32(8 * i) for i in range(4)).astype(np.uint32)

    known = {
        "la_shuffle": shuffle, "la_shuffle_xor": lambda word, mask: shuffle(word, lane % 32 ^ mask), "la_permute": take,
        "where": np.where,
    }  # fmt: skip
    for line in lines:
        name, text = line.strip().removeprefix("const la_u32 ").rstrip(";").split(" = ", 1)
        text = re.sub(r"\b(0x[0-9a-f]+|\d+)u\b", r"\1", text)
        text = re.sub(r"(\w+) \? (\w+) : (\w+)", r"where(\1, \2, \3)", text)
        held = held | {name: eval(text, {"__builtins__": {}}, known | held)}
    return held


def test_plans_that_are_none_are_refused() -> None:
    plain = Repack((1,), 0, 1)
    with pytest.raises(MalformedError, match="LA884"):
        Exchange(1, 1, 2, 1)
    with pytest.raises(MalformedError, match="LA884"):
        ExchangePlan(2, 2, 1, plain, (Rename((0,), 0),), plain)
    with pytest.raises(MalformedError, match="LA884"):
        ExchangePlan(3, 2, 1, plain, (), plain)
    for sizes in ((1 << 18, 8, 1), (1 << 10, 1 << 6, 1 << 5), (2, 1 << 19, 2)):  # each number alone is allowed
        same = Repack(tuple(1 << bit for bit in range(sizes[0].bit_length() - 1)), 0, 1)
        with pytest.raises(MalformedError, match="at most 1048576 places"):
            ExchangePlan(*sizes, same, (), same)
    with pytest.raises(MalformedError, match="LA884"):
        ExchangePlan(2, 2, 1, plain, (), plain).run([1, 2])
    assert exchanges(np.array([[[0, 1, 2], [5, 4, 3]]])) is None


def test_each_step_says_what_it_costs() -> None:
    assert Choose(1, 1).cost(8) == Cost(selects=8)
    assert Exchange(2, 1, 2, 1).cost(8) == Cost(shuffles=4, selects=12)
    assert Move((1, 2), (2, 0, 0), 0).cost(8) == Cost(shuffles=4)
    assert Move((2, 1), (0, 0, 0), 0).cost(8) == Cost(shuffles=8)
    assert Repack((2, 1), 0, 2).cost == Cost(permutes=2)
