"""Plans of conversions made by hand: what their check accepts, and what it refuses."""

import dataclasses
import json

import numpy as np
import pytest

from layoutalg import LayoutError, LinearLayout
from layoutalg.proofs.conversion import ConversionPlan, Held, counted
from layoutalg.proofs.conversion_steps import Read, SharedAccess, Through
from layoutalg.proofs.exchange import Choose, Take
from layoutalg.targets.instruction_costs import instruction_costs


def held(*columns, registers=1, lanes=32, warps=1, bits=None):
    axes = tuple((name, count.bit_length() - 1) for name, count in
                 (("register", registers), ("lane", lanes), ("warp", warps)))  # fmt: skip
    wide = bits or max((column.bit_length() for column in columns), default=0)
    return Held(LinearLayout(axes, (("element", wide),), columns), None, registers, lanes, warps)


def plan(source, destination, bits, mechanism, *steps):
    cost = counted(steps, source, bits, instruction_costs("sm_90a"))
    return ConversionPlan(source, destination, bits, "sm_90a", mechanism, steps, cost, "made by hand", ())


LANES = (1, 2, 4, 8, 16)
BACKWARDS = (16, 8, 4, 2, 1)
THROUGH = Through(
    128, "warp", 1,
    SharedAccess("st.shared.b32", 1, (4, 8, 16, 32, 64), (0,), 0, 1),
    SharedAccess("ld.shared.b32", 1, (64, 32, 16, 8, 4), (0,), 0, 1),
)  # fmt: skip
MISALIGNED = SharedAccess("st.shared.b32", 2, (8, 16, 32, 64, 128), (2, 6), 0, 2)
DOUBLED = dataclasses.replace(THROUGH.store, threads=(4, 8, 16, 32, 32))
MADE = {
    "nothing": plan(held(*LANES), held(*LANES), 32, "nothing"),
    "registers": plan(
        held(32, *LANES, registers=2), held(32, *LANES, registers=2), 32, "registers", Take((0, 1), 1, 1)
    ),
    "halves": plan(
        held(1, 2, *(4 * lane for lane in LANES), registers=4), held(2, 1, *(4 * lane for lane in LANES), registers=4),
        16, "registers", Take((0, 2, 1, 3), 2, 2),
    ),
    "shuffles": plan(held(*LANES), held(*BACKWARDS), 32, "shuffles", Read(BACKWARDS, (0,), (0,))),
    "copies": plan(held(*LANES), held(0, 0, *LANES[2:]), 32, "shuffles", Read((0, 0, 4, 8, 16), (0,), (0,))),
    "shared": plan(held(*LANES), held(*BACKWARDS), 32, "shared", THROUGH),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_right_plans_hold(name):
    made = MADE[name]
    assert made.check() is made
    assert made.certificate.kind == "composition"
    assert made.certificate.check()
    assert json.loads(json.dumps(made.to_json()))["mechanism"] == made.mechanism
    assert str(made.cost) in str(made)


def test_counts_of_the_halves():
    assert (MADE["halves"].cost.permutes, MADE["halves"].rounds) == (2, 0)
    assert (MADE["shuffles"].rounds, MADE["shared"].rounds, MADE["shared"].smem_bytes) == (1, 1, 128)


@pytest.mark.parametrize(
    ("name", "steps", "said"),
    [
        ("shuffles", (Read(LANES, (0,), (0,)),), "element 16"),
        ("shuffles", (Read(BACKWARDS, (0,), (1,)),), "existing words"),
        ("shuffles", (Read(BACKWARDS, (32,), (0,)),), "lanes of the thread's own warp"),
        ("shuffles", (Read(BACKWARDS[:4], (0,), (0,)),), "column per bit"),
        ("halves", (Through(512, "warp", 1, MISALIGNED, MISALIGNED),), "aligned"),
        ("halves", (Take((0, 1, 2, 3), 2, 2),), "must move element"),
        ("halves", (Take((0, 2, 1, 3), 2, 1),), "elements per word"),
        ("shared", (dataclasses.replace(THROUGH, smem_bytes=64),), "stay within 64 bytes"),
        ("shared", (dataclasses.replace(THROUGH, store=DOUBLED),), "two elements to one address"),
        ("shared", (dataclasses.replace(THROUGH, load=dataclasses.replace(THROUGH.load, turns=2)),), "turns"),
        ("registers", (Choose(1, 1),), "must move element"),
    ],
)  # fmt: skip
def test_wrong_plans_are_named(name, steps, said):
    made = MADE[name]
    cost = counted(steps, made.source, made.element_bits, instruction_costs("sm_90a"))
    with pytest.raises(LayoutError) as refused:
        dataclasses.replace(made, steps=steps, cost=cost).check()
    assert refused.value.diagnostic.code == "LA931"
    assert said in str(refused.value)


def test_a_wrong_cost_is_named():
    made = MADE["shuffles"]
    with pytest.raises(LayoutError, match="cost"):
        dataclasses.replace(made, cost=MADE["nothing"].cost).check()


def test_matrices_give_the_rows_that_lanes_address():
    access = SharedAccess("ldmatrix.x1", 2, (16, 32, 64, 0, 0), (0,), 0, 1)
    at = access.elements_at(16, 32)
    assert at.tolist() == [[4 * lane, 4 * lane + 2] for lane in range(32)]
    turned = dataclasses.replace(access, instruction="ldmatrix.x1.trans").elements_at(16, 32)
    rows = np.arange(128).reshape(8, 16)[:, ::2]
    assert turned.tolist() == [[int(rows[2 * (lane % 4) + half, lane // 4]) for half in range(2)] for lane in range(32)]
