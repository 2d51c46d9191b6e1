"""Random steps of conversions: what a kernel has to be able to do, whoever planned it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.proofs.conversion import ConversionCost, ConversionPlan, Held, counted
from layoutalg.proofs.conversion_steps import Read, SharedAccess, Through
from layoutalg.proofs.exchange import Choose, Exchange, Move, Rename, Take
from layoutalg.synth.factor.shuffles import shuffles
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.registry import lookup

FREE = ConversionCost(0, 0, 0, 0, 0, 0, 0.0)


def invertible(rng: random.Random, bits: int) -> list[int]:
    """The columns of a random invertible matrix."""
    while matrix.rank(columns := [rng.randrange(1, 1 << bits) for _ in range(bits)]) < bits:
        pass
    return columns


def held(registers: int, lanes: int, warps: int) -> Held:
    """A layout in which every place holds its own element."""
    size = registers * lanes * warps
    if registers & (registers - 1):
        table = np.arange(size).reshape(warps, lanes, registers).tolist()
        return Held(None, tuple(tuple(tuple(row) for row in rows) for rows in table), registers, lanes, warps)
    bits = [count.bit_length() - 1 for count in (registers, lanes, warps)]
    axes = tuple(zip(("register", "lane", "warp"), bits, strict=True))
    columns = tuple(1 << bit for bit in range(sum(bits)))
    return Held(LinearLayout(axes, (("element", sum(bits)),), columns), None, registers, lanes, warps)


def accesses(rng: random.Random, elements: int, bits: int, threads: int, operation: str) -> SharedAccess:
    """All elements of a thread at places of their own, several at once."""
    wide = [many for many in (1, 2, 4, 8, 16) if bits // 8 <= many * bits // 8 <= 16 and elements % many == 0]
    many = rng.choice(wide)
    low = (many * bits // 8).bit_length() - 1
    high, thread_bits = (elements // many).bit_length() - 1, threads.bit_length() - 1
    columns = [column << low for column in invertible(rng, high + thread_bits)]
    starts = tuple(matrix.apply(columns[thread_bits:], number) for number in range(elements // many))
    name = {8: "b8", 16: "b16", 32: "b32", 64: "v2.b32", 128: "v4.b32"}[many * bits]
    return SharedAccess(f"{operation}.shared.{name}", many, tuple(columns[:thread_bits]), starts, 0, 0)


def matrices(rng: random.Random, words: int, per: int, threads: int, operation: str) -> SharedAccess:
    """The same by matrices of rows at random places."""
    many = rng.choice([many for many in (1, 2, 4) if words % many == 0])
    trans = ".trans" if per == 2 and rng.random() < 0.5 else ""
    rows = (8 * many).bit_length() - 1
    high, warps = (words // many).bit_length() - 1, (threads // 32).bit_length() - 1
    columns = [column << 4 for column in invertible(rng, rows + high + warps)]
    lanes = [*columns[:rows], *[0] * (5 - rows)]
    threads_at = (*lanes, *columns[rows + high :])
    starts = tuple(matrix.apply(columns[rows : rows + high], number) for number in range(words // many))
    return SharedAccess(f"{operation}matrix.x{many}{trans}", many * per, threads_at, starts, 0, 0)


def random_plan(seed: int, target: str = "sm_90a") -> ConversionPlan:
    """A few random steps."""
    rng = random.Random(seed)
    lanes, bits = lookup(target).lanes, rng.choice((8, 16, 32, 64))
    warps, packed = rng.choice((1, 2, 4)), max(1, 32 // bits)
    elements = now = packed << rng.randint(0, 3)
    threads, lane_bits = lanes * warps, lanes.bit_length() - 1
    steps: list[Any] = []
    for _ in range(rng.randint(1, 3)):
        words = now // packed
        w = words.bit_length() - 1
        kind = rng.choice(("take", "read", "choose", "exchange", "move", "rename", "rounds", "through", "matrices"))
        if kind == "take":
            now = packed << rng.randint(0, 3)
            steps.append(Take(tuple(rng.randrange(words * packed) for _ in range(now)), packed, packed))
        elif kind == "read":
            now = packed << rng.randint(0, 3)
            columns = (*(rng.choice((invertible(rng, lane_bits), [1 << b for b in range(lane_bits)]))),
                       *[rng.randrange(lanes) for _ in range(warps.bit_length() - 1)])  # fmt: skip
            chosen = [(rng.randrange(lanes), rng.randrange(words)) for _ in range(now // packed)]
            steps.append(Read(columns, *(tuple(part) for part in zip(*chosen, strict=True))))
        elif kind == "choose" and w:
            steps.append(Choose(rng.randrange(1, words), rng.randrange(1, threads)))
        elif kind == "exchange" and w:
            asked, lane_asked = rng.randrange(1, words), rng.randrange(1, lanes)
            vector = next(v for v in range(1, words) if (v & asked).bit_count() & 1)
            lane = next(v for v in rng.sample(range(1, lanes), lanes - 1) if (v & lane_asked).bit_count() & 1)
            steps.append(Exchange(vector, lane, asked, lane_asked))
        elif kind == "move":
            threads_at = (*invertible(rng, lane_bits), *[0] * (warps.bit_length() - 1))
            steps.append(Move(threads_at, tuple(rng.randrange(lanes) for _ in range(w)), rng.randrange(lanes)))
        elif kind == "rename" and w:
            steps.append(Rename(tuple(invertible(rng, w)), rng.randrange(words)))
        elif kind == "rounds":
            source = np.stack([np.array(rng.sample(range(lanes * words), lanes * words)) for _ in range(warps)])
            source += (np.arange(warps) * lanes * words)[:, None]
            steps.append(shuffles(source.reshape(warps, lanes, words)))
        elif kind == "through" and now & (now - 1) == 0:
            store, load = (accesses(rng, now, bits, threads, operation) for operation in ("st", "ld"))
            steps.append(Through(now * bits // 8 * threads, "block", 1, store, load))
        elif kind == "matrices" and bits < 64 and lanes == 32:
            store, load = (matrices(rng, words, packed, threads, operation) for operation in ("st", "ld"))
            steps.append(Through(now * bits // 8 * threads, "block", 1, store, load))
    plan = ConversionPlan(
        held(elements, lanes, warps), held(now, lanes, warps), bits, target, "shared", tuple(steps), FREE, "", ()
    )
    return counted_again(plan, target)


def counted_again(plan: ConversionPlan, target: str) -> ConversionPlan:
    """The plan of the same steps for a target: what they lead to is wanted, and they cost what they cost there."""
    steps = list[Any]()
    for step in plan.steps:
        if isinstance(step, Through):
            turns = [access.counted(target, plan.lanes) for access in (step.store, step.load)]
            store, load = (replace(a, turns=n) for a, n in zip((step.store, step.load), turns, strict=True))
            step = replace(step, store=store, load=load)
        steps.append(step)
    after = plan.run(plan.source.elements())
    table = tuple(tuple(tuple(row) for row in rows) for rows in after.tolist())
    cost = counted(tuple(steps), plan.source, plan.element_bits, instruction_costs(target))
    wanted = replace(plan.destination, layout=None, table=table)
    return replace(plan, destination=wanted, target=target, steps=tuple(steps), cost=cost)
