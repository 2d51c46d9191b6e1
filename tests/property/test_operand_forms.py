"""Plans made from digits alone are those of the search over tables of addresses, bit for bit, and refuse nothing."""

from __future__ import annotations

import random

import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.wgmma import check
from layoutalg.synth.wgmma import OperandProblem, canonical_modes
from layoutalg.synth.wgmma.forms import canonical_plan
from layoutalg.synth.wgmma.plan import find, search
from layoutalg.targets.nvidia import wgmma

EXTENTS = {"A": (64, 128, 192), "B": (8, 16, 24, 48, 64, 96, 128, 192, 256, 264, 384)}
PADS = (0, 1, 8, 16, 64, 100, -8)
BASES = (0, 0, 0, 16, 1024, 128, 512, 8, 100_000)


def cut(rng, digits):
    """The same sums of strides with digits split at divisors."""
    found = []
    for extent, stride in digits:
        while rng.random() < 0.4 and (parts := [part for part in range(2, extent) if extent % part == 0]):
            part = rng.choice(parts)
            found.append((part, stride))
            extent, stride = extent // part, stride * part
        found.append((extent, stride))
    return tuple(found)


def problem(rng):
    """A canonical tile with strides changed, row groups moved apart, digits split, another swizzle, any base."""
    dtype = rng.choice(sorted(wgmma.DTYPES))
    bits, operand = wgmma.OPERAND_BITS[dtype], rng.choice("AB")
    sparse = rng.random() < 0.2 and wgmma.multiply(dtype).sparse
    major = rng.choice(("K", "K", "MN")) if bits == 16 else "K"
    swizzle = rng.choice(wgmma.SWIZZLES)
    k = wgmma.instruction_k(bits, sparse and operand == "B") * rng.choice((1, 2, 3, 4, 8))
    mn = rng.choice(EXTENTS[operand])
    modes = [list(axis) for axis in canonical_modes((mn, k), major, swizzle, dtype)]
    for axis in modes:
        axis[:] = [(extent, stride + (rng.random() < 0.15) * rng.choice(PADS)) for extent, stride in axis]
    rows = modes[major == "MN"]
    if rows[0][0] % 8 == 0 and rows[0][0] > 8 and rng.random() < 0.4:
        extent, stride = rows[0]
        rows[0:1] = [(8, stride), (extent // 8, 8 * stride + rng.choice((0, 8, 16, 64, 512)))]
    if rng.random() < 0.1:
        modes.reverse()
        mn, k = k, mn
    own = swizzle if rng.random() < 0.85 else rng.choice(wgmma.SWIZZLES)
    digits = cut(rng, modes[0]), cut(rng, modes[1])
    align = rng.choice((1024, 1024, 256, 128, 64, 16))
    return OperandProblem(operand, (mn, k), digits, own, dtype, rng.choice(BASES), align, sparse=sparse)


def drawn(seed, many):
    rng = random.Random(seed)
    while many:
        try:
            made = problem(rng)
        except MalformedError:  # no canonical tile of these extents, or a negative stride
            continue
        many -= 1
        yield made


@pytest.mark.parametrize("seed", range(4))
def test_digits_and_tables_give_one_plan(seed):
    canonical = found = 0
    for asked in drawn(seed, 150):
        quick, slow = canonical_plan(asked), search(asked)
        found += slow is not None
        if quick is not None:
            canonical += 1
            assert quick == slow
            assert quick.to_json() == slow.to_json()
        assert find(asked) == slow
    assert canonical > 40
    assert found > canonical


def test_plans_from_digits_are_proved():
    plans = list(filter(None, map(canonical_plan, drawn(9, 60))))
    assert len(plans) > 10
    assert all(check(plan) for plan in plans)


def test_canonical_tiles_of_every_type_need_no_search():
    for dtype in wgmma.DTYPES:
        bits = wgmma.OPERAND_BITS[dtype]
        for major in ("K", "MN") if bits == 16 else ("K",):
            for swizzle in wgmma.SWIZZLES:
                modes = canonical_modes((128, 1024 // bits), major, swizzle, dtype)
                made = canonical_plan(OperandProblem("B", (128, 1024 // bits), modes, swizzle, dtype))
                assert (made is None) == (bits < 8), (dtype, major, swizzle)
