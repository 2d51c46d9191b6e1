"""Words made of others as steps ask for them: the instructions, executed on numbers, against the steps on elements."""

from __future__ import annotations

import random

import numpy as np
import pytest
from instruments.conversion_steps import random_plan

from layoutalg.proofs.conversion import counted
from layoutalg.proofs.conversion_steps import Through
from layoutalg.proofs.exchange import Choose, Exchange, Take, parity
from layoutalg.proofs.register_words import OPEN, Lowering, Mixer, plain
from layoutalg.proofs.shuffle import ShufflePlan
from layoutalg.targets.instruction_costs import instruction_costs


class Executed(Lowering):
    """A word is its bytes in every thread: a tuple of (4 bytes) per thread."""

    def __init__(self, bits: int, lanes: int, threads: int) -> None:
        super().__init__(bits, lanes)
        self.threads = np.arange(threads)
        self.values: list[np.ndarray] = []
        self.instructions = 0

    def new(self, value: np.ndarray) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def made(self, mixed):
        self.instructions += 1
        assert mixed.instruction in ("select", "permute")
        assert len(mixed.words) <= 2
        held = np.concatenate([self.values[word] for word in mixed.words], axis=1)
        ways = [np.where(np.array(way) == OPEN, -1, held[:, np.maximum(way, 0)]) for way in (mixed.off, mixed.on)]
        return self.new(np.where(parity(mixed.asked, self.threads)[:, None] == 1, ways[1], ways[0]))

    def shuffled(self, word, step, number):
        if isinstance(step, Exchange):
            return self.new(self.values[word][self.threads ^ step.lanes])
        lane = step.read(number, self.threads)
        return self.new(self.values[word][self.threads // self.lanes * self.lanes + lane])

    stored = loaded = rounds = None  # not asked for


@pytest.mark.parametrize("first", [0, 100])
def test_instructions_do_what_steps_say(first: int) -> None:
    seen = 0
    for seed in range(first, first + 100):
        plan = random_plan(seed)
        steps = [step for step in plan.steps if not isinstance(step, Through | ShufflePlan)]
        if plan.element_bits > 32 or steps != list(plan.steps):
            continue
        seen += 1
        threads, size = plan.lanes * plan.warps, plan.element_bits // 8
        work = Executed(plan.element_bits, plan.lanes, threads)
        labels = np.arange(threads * plan.source.registers)
        begun = (labels.reshape(threads, -1, 1) * size + np.arange(size)).reshape(threads, -1, 4)
        held = work.begun([work.new(begun[:, word]) for word in range(begun.shape[1])], plan.source.registers)
        for step in steps:
            held = work.step(step, held)
        words = np.stack([work.values[word] for word in work.ended(held)], axis=1)
        found = words.reshape(threads, -1, size)
        wanted = plan.run(labels.reshape(plan.warps, plan.lanes, -1)).reshape(threads, -1, 1) * size + np.arange(size)
        assert np.array_equal(found[:, : wanted.shape[1]], wanted)
        if plan.element_bits < 32:
            cost = counted(tuple(steps), plan.source, plan.element_bits, instruction_costs("sm_90a"))
            assert cost.selects + cost.permutes == work.instructions
    assert seen > 30


def test_a_choice_and_the_packing_beside_it_are_one_instruction() -> None:
    """Two words chosen and packed anew: two permutations, in either order; alone they are two and two."""
    held = random_plan(0).source
    costs = instruction_costs("sm_90a")
    choose, take = Choose(1, 1), Take((0, 2, 1, 3), 2, 2)
    for steps, selects, permutes in (
        ((choose,), 2, 0),
        ((take,), 0, 2),
        ((choose, take), 0, 2),
        ((take, choose), 0, 2),
    ):
        source = type(held)(None, (((0, 1, 2, 3),) * 32,), 4, 32, 1)
        cost = counted(steps, source, 16, costs)
        assert (cost.selects, cost.permutes) == (selects, permutes)


def test_words_of_four_share_their_halves() -> None:
    """Four words of four bytes turned: eight permutations, not twelve, and the bytes are those asked for."""
    rng = random.Random(3)
    for _ in range(50):
        made: dict[str, list[str]] = {}

        def make(mixed, made=made) -> str:
            held = [byte for word in mixed.words for byte in made.get(word, [f"{word}{place}" for place in range(4)])]
            made[name := f"x{len(made)}"] = ["any" if byte == OPEN else held[byte] for byte in mixed.off]
            return name

        mixer = Mixer(make)
        order = rng.sample("abcd", 4)
        places = [rng.sample(range(4), 4) for _ in order]
        every = [[(plain(name), places[at][number]) for at, name in enumerate(order)] for number in range(4)]
        for row in every:
            rng.shuffle(row)
        words = [mixer.word(word) for word in mixer.gathered_all(every)]
        assert len(made) == 8
        assert [made[word] for word in words] == [[f"{each.words[0]}{byte}" for each, byte in row] for row in every]
