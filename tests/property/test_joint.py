"""Joint layouts against judges: every order of small tiles, the measured rule of the banks, the finders themselves."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import BudgetError, InfeasibleError, MalformedError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import joint
from layoutalg.synth.solving.accesses import accesses, turns
from layoutalg.synth.solving.joint_question import questions, read
from layoutalg.synth.solving.orders import by_search, operand_rules
from layoutalg.synth.solving.space import Box, Order
from layoutalg.synth.symbolic.call import tensormap
from layoutalg.synth.tensormap import InadmissibleError
from layoutalg.synth.wgmma.plan import find
from layoutalg.targets.nvidia.banks import wavefronts
from layoutalg.targets.nvidia.swizzles import XORS as SWIZZLES
from tests.judges.shared_solvers import by_solver


def columns(rows: int, width: int, vector: int = 0) -> LinearLayout:
    """Lanes down the rows, so many digits of the columns in a register."""
    down = [(1 << bit, 0) for bit in range(rows.bit_length() - 1)]
    across = [(0, 1 << bit) for bit in range(width.bit_length() - 1)]
    rest = down + across[vector:]
    bases = {"register": [*across[:vector], *rest[5:]], "lane": rest[:5], "warp": []}
    return LinearLayout.from_bases(bases, {"row": rows, "col": width})


PROBLEMS = [
    ((16, 32), "bf16", ["ldmatrix.x4", ("ld.shared.b32", columns(16, 32, 1))], "tma"),
    ((32, 16), "bf16", ["ldmatrix.x2", ("ld.shared.b32", columns(32, 16, 1))], "tma"),
    ((16, 32), "bf16", ["ld.shared.v2.b32", ("st.shared.b16", columns(16, 32))], "tma"),
    ((16, 64), "u8", ["ldmatrix.x4", ("ld.shared.b32", columns(16, 64, 2))], "tma"),
    ((16, 32), "bf16", ["wgmma.B", ("ld.shared.b32", columns(16, 32, 1))], "tma"),
    ((16, 16), "f32", [("ld.shared.v2.b32", columns(16, 16, 1)), "st.shared.b32", "tma.store"], "tma"),
]


def counted(asked, table) -> int | None:
    """The turns of all accesses by the measured rule, lane by lane; None where one cannot move the layout."""
    total = 0
    for (_, by), inner in itertools.product(asked.moves, [table[1]]):
        access = by[inner]
        if isinstance(access, str) or isinstance(access.moved(table[0]), str):
            return None
        starts = table[0][access.rows, access.columns].reshape(-1, 32 if not access.kind.endswith("x") else 8)
        total += sum(wavefronts(lanes, access.bits, access.kind) for lanes in starts.tolist())
    return total


@st.composite
def registers(draw: st.DrawFn) -> LinearLayout:
    """Two registers of 32 lanes hold the 8 x 8 elements in any linear order."""
    images = list(draw(st.permutations([1 << bit for bit in range(6)])))
    for into, other in draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4)):
        images[into] ^= images[other] if into != other else 0
    return LinearLayout((("register", 1), ("lane", 5)), (("dim0", 3), ("dim1", 3)), tuple(images))


@settings(max_examples=60)
@given(registers(), registers(), st.sampled_from(["st.shared.b32", "ld.shared.b32"]))
def test_no_order_serves_two_register_layouts_better(first, second, name):
    consumers = [("st.shared.b32", first), (name, second)]
    plan = joint((8, 8), "f32", consumers, fill="threads")
    asked = read((8, 8), "f32", consumers, "sm_90a", None, "threads", {})
    tables = {}
    for inner, swizzle in itertools.product((0, 1), SWIZZLES):
        for digits in itertools.permutations(asked.box.digits(inner)):
            table = Order(asked.box, inner, digits, swizzle, SWIZZLES[swizzle]).table
            tables.setdefault(table.tobytes(), (table, inner))
    costs = [cost for made in tables.values() if (cost := counted(asked, made)) is not None]
    assert plan.lower_bound[1] <= min(costs)
    assert not plan.optimal or plan.turns <= min(costs)


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize(("tile", "dtype", "consumers", "fill"), PROBLEMS)
def test_no_order_of_a_small_tile_is_better(tile, dtype, consumers, fill):
    plan = joint(tile, dtype, consumers, fill=fill)
    asked = read(tile, dtype, consumers, "sm_90a", None, fill, {})
    box = asked.box
    assert plan.optimal
    best = None
    seen = set()
    for inner in (0, 1):
        if not box.has(inner):
            continue
        for digits in itertools.permutations(box.digits(inner)):
            for name in ("NONE", "32B", "64B", "128B"):
                order = Order(box, inner, digits, name, SWIZZLES[name])
                table = order.table
                if table.tobytes() in seen:
                    continue
                seen.add(table.tobytes())
                cost = counted(asked, (table, inner))
                if cost is None or (best is not None and (len(asked.copies), cost) >= best):
                    continue  # no cheaper than one that was planned
                operands = (OperandProblem.of(op[-1], dtype, order.layout()) for op in asked.operands)
                if not all(find(operand) for operand in operands):
                    continue
                try:
                    maps = [
                        tensormap(asked.tensor, tile, order.layout(), direction=direction, repair=False)
                        for direction in (("load", "store") if len(asked.copies) == 2 else ("load",))
                    ]
                except InadmissibleError:
                    continue
                found = sum(len(each.issues) for each in maps), cost
                best = found if best is None else min(best, found)
    assert best == (plan.issues, plan.turns)


def test_z3_agrees_on_what_exists():
    rng = random.Random(5)
    answers = {True: 0, False: 0}
    for tile, dtype, consumers, fill in PROBLEMS:
        asked = read(tile, dtype, consumers, "sm_90a", None, fill, {})
        for question in questions(asked, {}):
            for _ in range(4):
                bound = max(1, question.copies), rng.randint(8, 96)
                found = by_search(question, bound), by_solver(question, bound)
                assert (found[0] is None) == (found[1] is None)
                for each in found:
                    if each is not None:
                        assert question.cost(each.digits, each.case) < bound
                answers[found[0] is not None] += 1
    assert min(answers.values()) > 3


def test_the_conditions_of_wgmma_are_those_of_its_finder():
    rng = random.Random(2)
    answers = {True: 0, False: 0}
    for operand, extents in (("B", (16, 32)), ("B", (32, 16)), ("A", (64, 16))):
        box = Box(extents, 2)
        for inner, name in itertools.product((0, 1), ("NONE", "32B", "64B", "128B")):
            xor = SWIZZLES[name]
            rules = operand_rules(operand, box, inner, xor[0] + xor[1] if xor[0] else 0)
            for _ in range(8):
                digits = list(box.digits(inner))
                rng.shuffle(digits)
                if not isinstance(rules, str) and all(place - 4 < len(digits) for place in rules[0].values()):
                    for digit, place in rules[0].items():  # swapped into its place, so that some are admitted
                        at = digits.index(digit)
                        digits[at], digits[place - 4] = digits[place - 4], digits[at]
                order = Order(box, inner, tuple(digits), name, xor)
                expected = not isinstance(rules, str) and (
                    all(order.places[digit] == place for digit, place in rules[0].items())
                    and all(order.places[two] == order.places[one] + 1 for one, two in rules[1])
                )
                assert (find(OperandProblem.of(operand, "bf16", order.layout())) is not None) == expected
                answers[expected] += 1
    assert min(answers.values()) > 20


def test_turns_by_ranks_and_by_words_are_the_measured_ones():
    rng = random.Random(3)
    for _ in range(60):
        box = Box((rng.choice((16, 32, 64)), rng.choice((32, 64))), rng.choice((2, 4)))
        name = rng.choice(("ld.shared.b32", "ld.shared.v2.b32", "st.shared.v4.b32", "ldmatrix.x4", "stmatrix.x2"))
        access = accesses(name, box)[1]
        digits = list(box.digits(1))
        rng.shuffle(digits)
        swizzle = rng.choice(tuple(SWIZZLES))
        order = Order(box, 1, tuple(digits), swizzle, SWIZZLES[swizzle])
        starts = order.table[access.rows, access.columns]
        lanes = starts.reshape(-1, 8 if access.kind.endswith("x") else 32)
        measured = [wavefronts(each, access.bits, access.kind) for each in lanes.tolist()]
        assert int(turns(starts, access.bits).sum()) == sum(measured) == access.predicted(order.places, order.xor)
        assert access.least <= sum(measured)


def test_every_plan_is_certified_and_counts_what_its_layout_costs():
    plan = joint((64, 64), "bf16", ["wgmma.A", "ldmatrix.x4.trans", "ld.shared.v4.b32", "tma.store"])
    assert {certificate.kind for certificate in plan.certificates} == {"tensormap-plan", "wgmma-operand", "bank-turns"}
    assert all(bool(certificate.check()) for certificate in plan.certificates)
    assert plan.optimal
    assert plan.gap == (0, 0)
    assert plan.proof == "bound"
    assert plan.to_json()["lower_bound"] == [2, 128]


@pytest.mark.parametrize("dtype", ["e4m3", "s8"])
def test_operands_of_other_widths_are_served_or_unknown_as_the_finder_says(dtype):
    known = la.admissible("Sw<3,4,3> o 0 o (64,128):(128,1)", "wgmma.A", dtype=dtype)
    if isinstance(known, Unknown):
        with pytest.raises(BudgetError) as caught:
            joint((64, 128), dtype, ["wgmma.A"])
        assert caught.value.diagnostic.code == "LA872"
    else:
        assert joint((64, 128), dtype, ["wgmma.A"]).proof == "bound"


def test_a_gap_is_told_where_digits_do_not_describe_the_lanes():
    plan = joint((96, 48), "bf16", ["ldmatrix.x4", "ld.shared.v4.b32"])
    assert not plan.optimal
    assert plan.lower_bound <= (plan.issues, plan.turns)
    assert "at least" in plan.why


def test_threads_may_pad_or_take_any_xor():
    plan = joint((64, 64), "f32", ["ld.shared.b32", ("ld.shared.b32", columns(64, 64))], fill="threads")
    assert (plan.issues, plan.turns) == plan.lower_bound == (0, 256)
    odd = joint((33, 32), "f32", ["ld.shared.b32"], fill="threads")
    assert odd.turns == 33


def test_consumers_in_conflict_are_refused_by_name():
    with pytest.raises(InfeasibleError) as caught:
        joint((64, 64), "f32", ["wgmma.A", "ldmatrix.x4.trans"])
    assert caught.value.diagnostic.code == "LA871"
    assert "ldmatrix.x4.trans" in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tile": (4, 4, 4)}, {"tile": (0, 4)}, {"dtype": "fp4"}, {"consumers": "tma"}, {"consumers": []},
        {"consumers": ["nonsense"]}, {"consumers": [("ld.shared.b32", "text")]}, {"fill": "magic"},
        {"tile": (1024, 1024)}, {"target": "gfx942"}, {"tensor": ((64,), None, "bf16")},
    ],
)  # fmt: skip
def test_malformed_questions_are_refused(wrong):
    with pytest.raises(MalformedError):
        joint(**{"tile": (64, 64), "consumers": ["ldmatrix.x4"], **wrong})


def test_a_tile_of_a_tensor_of_more_dimensions():
    tensor = ((8, 512, 4, 256), None, "bf16")
    plan = joint((1, 64, 1, 64), "bf16", ["wgmma.A"], tensor=tensor)
    assert plan.issues == 1
    assert np.asarray(plan.smem.table()).size == 64 * 64
