"""Layouts of 200 bits through the operations, against evaluation bit by bit at random points."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from layoutalg import f2
from layoutalg.f2 import LinearLayout, Subspace, parse_linear
from layoutalg.ground.errors import BudgetError

BITS = 200
INS = (("register", 60), ("lane", 70), ("warp", 70))
OUTS = (("row", 90), ("col", 110))
Point = dict[str, int]


def evaluate(layout: LinearLayout, coords: Mapping[str, int]) -> Point:
    """The definition, from the public bases and offset only."""
    answer = dict(layout.offset)
    for name, images in layout.bases.items():
        for bit, image in enumerate(images):
            if coords[name] >> bit & 1:
                for out, component in zip(answer, image, strict=True):
                    answer[out] ^= component
    return answer


def dense(rng: random.Random, ins: tuple[tuple[str, int], ...], outs: tuple[tuple[str, int], ...]) -> LinearLayout:
    """Invertible by construction where both sides have the same bits: columns added to each other and shuffled."""
    n, m = sum(b for _, b in ins), sum(b for _, b in outs)
    columns = [1 << bit % m for bit in range(n)]
    for _ in range(6 * n):
        a, b = rng.sample(range(n), 2)
        columns[a] ^= columns[b]
    rng.shuffle(columns)
    return LinearLayout(ins, outs, tuple(columns), rng.randrange(1 << m))


def some(rng: random.Random, dims: Mapping[str, int], count: int = 4) -> list[Point]:
    return [{name: rng.randrange(size) for name, size in dims.items()} for _ in range(count)]


@pytest.mark.parametrize("seed", range(3))
def test_every_operation_is_exact_on_200_bits(seed: int) -> None:
    rng = random.Random(seed)
    a, b, outer = dense(rng, INS, OUTS), dense(rng, INS, OUTS), dense(rng, OUTS[::-1], (("z", BITS),))
    back, both, after = a.inverse(), a * b, outer @ a
    to_a = f2.solve(a, b)
    wide_tile = f2.identity_1d(1 << BITS, "register", "row")
    flipped, moved = f2.flip_in(a, "lane"), f2.xor_out(a, {"row": 5})
    window = f2.slice_in(a, "lane", 1 << 50, 1 << 50)
    fixed, part = f2.fix_in(a, {"warp": 3 << 60}), f2.sublayout(a, ["lane"], "col")
    turned = f2.transpose_outs(f2.transpose_ins(a, ("warp", "register", "lane")), ("col", "row"))
    shaped = f2.reshape_ins(a, {"p": 1 << 150, "q": 1 << 50})
    masked, grown = f2.mask_out(a, "row", 1 << 40), f2.resize_out(a, "row", 1 << 95)
    taken = LinearLayout((("lane", 50),), (("lane", 70),), tuple(1 << k for k in rng.sample(range(70), 50)))
    acted = f2.map_in(a, taken)
    beside = f2.concat_ins(a, f2.rename_ins(b, {n: n + "2" for n, _ in INS}))
    above = f2.concat_outs(a, f2.rename_outs(b, {n: n + "2" for n, _ in OUTS}))
    for x in some(rng, a.in_dims):
        y = evaluate(a, x)
        assert a.apply(x) == y == {n: v for n, v in evaluate(turned, x).items() if n in y}
        flat = sum(
            x[name] << low for name, low in (("register", 0), ("lane", INS[0][1]), ("warp", INS[0][1] + INS[1][1]))
        )
        assert a.apply([[flat]]).tolist() == [[a.at(flat)]]
        assert evaluate(back, y) == x
        assert evaluate(after, x) == evaluate(outer, y)
        assert evaluate(a, evaluate(to_a.particular, x)) == evaluate(b, x)
        assert evaluate(flipped, x) == evaluate(a, x | {"lane": a.in_dims["lane"] - 1 - x["lane"]})
        assert evaluate(moved, x) == y | {"row": y["row"] ^ 5}
        assert evaluate(window, x | {"lane": x["lane"] >> 20}) == evaluate(
            a, x | {"lane": (1 << 50) + (x["lane"] >> 20)}
        )
        assert evaluate(fixed, x) == evaluate(a, x | {"warp": 3 << 60})
        assert evaluate(part, x) == {"col": evaluate(a, {"register": 0, "lane": x["lane"], "warp": 0})["col"]}
        flat = x["register"] | x["lane"] << 60 | x["warp"] << 130
        assert evaluate(shaped, {"p": flat % (1 << 150), "q": flat >> 150}) == y
        assert evaluate(masked, x) == y | {"row": y["row"] % (1 << 40)}
        assert evaluate(grown, x) == y
        lane = {"lane": x["lane"] >> 20}
        assert evaluate(acted, x | lane) == evaluate(a, x | evaluate(taken, lane))
        assert evaluate(above, x) == y | {n + "2": v for n, v in evaluate(b, x).items()}
        pair = x | {n + "2": v for n, v in reversed(x.items())}
        assert evaluate(beside, pair) == {n: v ^ evaluate(b, x)[n] for n, v in y.items()}
        sizes = a.in_dims
        high = {n: x[n] + sizes[n] * v for n, v in reversed(x.items())}
        assert evaluate(both, high) == {n: v + a.out_dims[n] * evaluate(b, x)[n] for n, v in y.items()}
    assert f2.divide_left(both, a) == b
    assert f2.divide_right(both, b) == a
    assert parse_linear(str(a)) == a == eval(repr(a))
    assert f2.minimal_conversion(a, a) == f2.empty()
    assert f2.quotient(to_a.particular * LinearLayout.identity({"spare": 1 << 99}), "spare") == to_a.particular
    assert f2.num_consecutive(wide_tile) == 1 << BITS
    register = (("register", BITS),)
    shuffled = LinearLayout(register, register, tuple(1 << k for k in rng.sample(range(BITS), BITS)))
    found = f2.permutation_for_divide(f2.map_in(wide_tile, shuffled), wide_tile)
    assert shuffled @ found == LinearLayout.identity({"register": 1 << BITS})
    assert f2.additive_strides(f2.map_in(wide_tile, shuffled))[0] == 1 << BITS
    with pytest.raises(BudgetError, match="LA211"):
        a.table()


@pytest.mark.parametrize("seed", range(3))
def test_solution_sets_and_subspaces_of_200_bits(seed: int) -> None:
    rng = random.Random(seed)
    copies = LinearLayout(INS, OUTS, tuple(rng.randrange(1 << 120) for _ in range(BITS)), rng.randrange(1 << BITS))
    inside = dense(rng, (("lane", 70), ("warp", 10)), INS)
    found = f2.solve(copies, copies @ inside)
    assert len(found.kernel) >= BITS - 120
    assert found.contains(inside)
    for objective in ("smallest", "local"):
        chosen = found.choose(objective)
        for x in some(rng, inside.in_dims):
            assert evaluate(copies, evaluate(chosen, x)) == evaluate(copies, evaluate(inside, x))
    space = (("x", 80), ("y", 120))
    left, right = (Subspace.spanned(space, [rng.randrange(1 << BITS) for _ in range(k)]) for k in (120, 130))
    shared, total = left.intersection(right), left.sum(right)
    assert shared.dimension + total.dimension == left.dimension + right.dimension
    assert left.includes(shared)
    assert right.includes(shared)
    common = left.common_complement(right)
    assert common.dimension == BITS - max(left.dimension, right.dimension)
    # in general position: the sums are direct
    assert common.sum(left).dimension == common.dimension + left.dimension
    assert common.sum(right).dimension == common.dimension + right.dimension
    across = left.annihilator()
    assert across.dimension == BITS - left.dimension
    assert all((vector & other).bit_count() % 2 == 0 for vector in left.basis for other in across.basis)
