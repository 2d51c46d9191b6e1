"""Conversions between a layout in Triton's notation and one in CuTe's: the same elements by coordinates."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg import CuteLayout, conversion, parse
from layoutalg.cli import main
from layoutalg.cli.answers import PROVED
from layoutalg.ground.errors import MalformedError

BLOCKED = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>"
CUTE = "((4,8,2),(2,2)):((1,32,4),(16,8))"


def coordinates(layout, registers, warps, shape):
    """By warp, lane and register the coordinates of the element, one call of the layout for each."""
    found = np.zeros((warps, 32, registers, len(shape)), dtype=int)
    for warp, lane, register in np.ndindex(warps, 32, registers):
        if isinstance(layout, CuteLayout):
            number = layout(lane + 32 * warp + 32 * warps * register)
            for place, extent in enumerate(shape):
                found[warp, lane, register, place] = number % extent
                number //= extent
        else:
            at = layout(register=register, lane=lane, warp=warp, block=0)
            found[warp, lane, register] = list(at.values())
    return found


def test_elements_are_the_ones_of_the_same_coordinates():
    shape = (16, 16)
    plan = conversion(BLOCKED, CUTE, 16, shape=shape).check()
    ends = [coordinates(parse(BLOCKED, shape), 4, 2, shape), coordinates(parse(CUTE), 4, 2, shape)]
    moved = plan.run(ends[0][..., 0] * 16 + ends[0][..., 1])
    assert np.array_equal(moved, ends[1][..., 0] * 16 + ends[1][..., 1])
    same = conversion(BLOCKED, "((8,4,2),(2,2)):((32,1,4),(16,8))", 16, shape=shape)
    assert same.mechanism == "nothing"
    back = conversion(CUTE, BLOCKED, 16, shape=shape).check()
    assert np.array_equal(back.run(moved), ends[0][..., 0] * 16 + ends[0][..., 1])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([8, 16, 32]), st.booleans())
def test_random_pairs(seed, bits, there):
    """A linear layout by its bases, and digits of two at random places of the tensor."""
    rng = random.Random(seed)
    rows, columns, warps = rng.choice([(16, 16, 2), (8, 32, 1), (64, 8, 4)])
    registers = rows * columns // 32 // warps
    units = [[1 << bit, 0] for bit in range(rows.bit_length() - 1)]
    units += [[0, 1 << bit] for bit in range(columns.bit_length() - 1)]
    rng.shuffle(units)
    cut = registers.bit_length() - 1
    parts = {"register": units[:cut], "lane": units[cut : cut + 5], "warp": units[cut + 5 :]}
    text = f"#ttg.linear<{{{', '.join(f'{name} = {bases}' for name, bases in parts.items())}, block = []}}>"
    steps = [1 << bit for bit in range((rows * columns).bit_length() - 1)]
    rng.shuffle(steps)
    thread = tuple(steps[: 5 + warps.bit_length() - 1])
    value = tuple(steps[len(thread) :])
    cute = CuteLayout(((2,) * len(thread), (2,) * len(value)), (thread, value))
    shape = (rows, columns)
    linear = coordinates(parse(text, shape), registers, warps, shape)
    other = coordinates(cute, registers, warps, shape)
    names = [each[..., 0] * columns + each[..., 1] for each in (linear, other)]
    ends: list = [text, str(cute)]
    if there:
        names.reverse()
        ends.reverse()
    plan = conversion(*ends, bits, shape=shape).check()
    assert np.array_equal(plan.run(names[0]), names[1])


def test_tensors_of_other_shapes_are_named():
    with pytest.raises(MalformedError, match="element"):
        conversion(BLOCKED, "((4,8,2),(2,2)):((1,32,4),(16,16))", 16, shape=(16, 16))
    linear = "F2[register=(1), lane=(2)(4)(8)(16)(32) -> x:64]"
    with pytest.raises(MalformedError, match=r"shape \(8, 8\)"):
        conversion(linear, "(32,2):(2,1)", 16, shape=(8, 8))
    assert conversion(linear, "(32,2):(2,1)", 16, shape=(64,)).mechanism == "nothing"
    with pytest.raises(MalformedError, match="shape"):
        conversion(BLOCKED, CUTE, 16)
    with pytest.raises(MalformedError, match="shape"):
        conversion("(32,2):(2,1)", "(32,2):(1,32)", 16, shape=(64, 0))


def test_the_command_takes_both(capsys):
    assert main(["conversion", BLOCKED, CUTE, "--shape", "16,16", "--bits", "16"]) == PROVED
    assert capsys.readouterr().out.startswith("conversion    ")
    assert main(["conversion", CUTE, BLOCKED, "--shape", "16,16"]) == PROVED
