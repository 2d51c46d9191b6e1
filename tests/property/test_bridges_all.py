"""Every pair of families: bridges are right or refused with a true witness, judged by tables and brute force."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg import convert
from layoutalg.bridges.equal import ENGINES, equivalent
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout, TableMap
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

SIZES = (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 16, 18)
BRIDGES: dict[str, Callable[[Any], Any]] = {
    "cute": convert.to_cute,
    "linear": convert.to_linear,
    "integer": convert.to_integer,
    "piecewise": convert.to_piecewise,
}
FAMILIES = (
    "cute",
    "composed",
    "linear",
    "piecewise",
    "integer",
    "digits",
    "bits",
    "mixed",
    "table",
    "pieces",
    "listed",
)


def factors(size: int, rng: random.Random) -> list[int]:
    """Random extents with this product."""
    extents = []
    while size > 1:
        extent = rng.choice([n for n in range(2, size + 1) if size % n == 0])
        extents.append(extent)
        size //= extent
    if rng.random() < 0.2:
        extents.insert(rng.randrange(len(extents) + 1), 1)
    return extents or [1]


def steps(count: int, rng: random.Random) -> list[int]:
    return [rng.choice((0, 1, 2, 3, 4, 8, 5, -1, -2)) for _ in range(count)]


def box_of(extents: list[int], name: str) -> Box:
    return Box(tuple((f"{name}{k}", extent) for k, extent in enumerate(extents)))


def bijection(kind: str, size: int, rng: random.Random) -> DigitMap | TableMap:
    if kind == "digits":
        extents = factors(size, rng)
        order = rng.sample(range(len(extents)), len(extents))
        strides, weight = [0] * len(extents), 1
        for place in order:
            strides[place] = weight * rng.choice((1, 1, -1))
            weight *= extents[place]
        return DigitMap(tuple(zip(extents, strides, strict=True)))
    if kind == "bits":
        bits = size.bit_length() - 1
        columns = [1 << k for k in range(bits)]
        for _ in range(2 * bits if bits > 1 else 0):
            a, b = rng.sample(range(bits), 2)
            columns[a] ^= columns[b]
        return DigitMap.from_bits(tuple(columns), rng.randrange(size))
    if kind == "mixed":  # digits of extent 2 that flip several bits of the target, beside others
        parts = [(2, extent // 2) if extent % 2 == 0 else (extent,) for extent in factors(size, rng)]
        extents = [extent for part in parts for extent in part if extent > 1]
        weights, weight = [0] * len(extents), 1
        for place in rng.sample(range(len(extents)), len(extents)):
            weights[place], weight = weight, weight * extents[place]
        images = {place: {weights[place]} for place, extent in enumerate(extents) if extent == 2}
        for _ in range(len(images) if len(images) > 1 else 0):
            a, b = rng.sample(sorted(images), 2)
            images[a] ^= images[b]
        modes = tuple((n, tuple(sorted(images[k])) if k in images else weights[k]) for k, n in enumerate(extents))
        flips = sorted({w for image in images.values() for w in image if rng.random() < 0.3})
        return DigitMap(modes, tuple(flips))
    values = list(range(size))
    for _ in range(rng.choice((1, 1, 40))):
        a, b = rng.randrange(size), rng.randrange(size)
        values[a], values[b] = values[b], values[a]
    if rng.random() < 0.3:
        unit = rng.choice([u for u in range(1, size + 1) if math.gcd(u, size) == 1])
        values = [i * unit % size for i in range(size)]
    return TableMap(tuple(values))


def random_layout(family: str, rng: random.Random, size: int | None = None) -> Any:
    size = rng.choice(SIZES) if size is None else size
    if family in ("linear", "bits"):
        size = 1 << (size.bit_length() - 1)
    extents = factors(size, rng)
    if family == "cute":
        return CuteLayout(tuple(extents), tuple(steps(len(extents), rng)))
    if family == "composed":
        bits = rng.randrange(3)
        swizzle = Swizzle(bits, rng.randrange(2), rng.choice((1, -1)) * rng.randint(max(bits, 1), 3))
        layout = ComposedLayout(
            swizzle, rng.choice((0, 0, 3, 8, -4)), CuteLayout(tuple(extents), tuple(steps(len(extents), rng)))
        )
        return ComposedLayout(Swizzle(1, 0, 2), rng.choice((0, 1)), layout) if rng.random() < 0.2 else layout
    if family == "linear":
        count = size.bit_length() - 1
        columns = tuple(rng.choice((rng.randrange(16), 1 << rng.randrange(4))) for _ in range(count))
        low = rng.randint(0, count)
        return LinearLayout((("a", low), ("b", count - low)), (("x", 3), ("y", 1)), columns, rng.choice((0, 0, 5, 9)))
    if family == "integer":
        modulus = rng.choice((0, 0, 2, 4, 8, 5, 7, 16))
        names = [(f"k{place}", extent) for place, extent in enumerate(extents)]
        return IntegerLayout.from_strides(names, steps(len(extents), rng), rng.choice((0, 0, 3, -2)), "y", modulus)
    if family == "listed":  # the table of another family, perhaps with one entry changed
        values = random_layout(rng.choice(("cute", "composed", "digits", "pieces")), rng, size).table().tolist()
        if rng.random() < 0.4:
            values[rng.randrange(size)] = rng.choice((0, 1, 5, -1))
        return ListedLayout(tuple(extents), tuple(values))
    if family == "pieces":  # any small values at all
        top = rng.choice((1, 2, 4, 7))
        points = "; ".join(f"[i] -> [{rng.randint(0, top)}] : i = {i}" for i in range(size))
        return PiecewiseLayout(f"{{ {points} }}", ("y",))
    if family == "piecewise":
        names = [f"k{place}" for place in range(len(extents))]
        total = " + ".join(f"{a}*{n}" for a, n in zip(steps(len(extents), rng), names, strict=True))
        value = rng.choice(("{t}", "({t}) mod 7", "floor(({t} + 1)/2)", "3 + {t}")).format(t=total)
        box = " and ".join(f"0 <= {n} < {extent}" for n, extent in zip(names, extents, strict=True))
        return PiecewiseLayout(f"{{ [{', '.join(names)}] -> [{value}] : {box} }}", ("y",))
    return HierarchicalLayout(box_of(extents, "s"), box_of(factors(size, rng), "t"), bijection(family, size, rng))


def values_of(layout: Any) -> list[int]:
    """The table, read point by point as well."""
    values: list[int] = layout.table().tolist()
    assert values == [convert.value_at(layout, i) for i in range(layout.size)]
    return values


def boxes(size: int) -> Iterator[list[int]]:
    """Every ordered factorisation."""
    if size == 1:
        yield []
    for extent in range(2, size + 1):
        if size % extent == 0:
            for rest in boxes(size // extent):
                yield [extent, *rest]


def defects(values: list[int], box: list[int]) -> list[int]:
    answer = []
    for index, value in enumerate(values):
        weight, forced, rest = 1, values[0], index
        for extent in box:
            forced += rest % extent * (values[weight] - values[0])
            rest //= extent
            weight *= extent
        answer.append(value - forced)
    return answer


def is_strided(values: list[int]) -> bool:
    return any(not any(defects(values, box)) for box in boxes(len(values)))


def is_modular(values: list[int]) -> bool:
    if min(values) < 0:
        return False
    for box in boxes(len(values)):
        wrong = defects(values, box)
        top = max(map(abs, wrong))
        if any(all(d % m == 0 for d in wrong) for m in range(max(values) + 1, top + 1)):
            return True
    return False


def is_affine(values: list[int]) -> bool:
    bits = len(values).bit_length() - 1
    for index, value in enumerate(values):
        forced = values[0]
        for bit in range(bits):
            if index >> bit & 1:
                forced ^= values[1 << bit] ^ values[0]
        if forced != value:
            return False
    return True


def behind_a_swizzle(values: list[int]) -> bool:
    """Some Sw with Sw o values strided, found by trying all."""
    width = max(abs(v) for v in values).bit_length() + 1
    for low in range(width):
        for distance in range(1, width + 1):
            for bits in range(1, distance + 1):
                mask = ((1 << bits) - 1) << low
                left = [v ^ (v >> distance & mask) for v in values]
                right = [v ^ ((v & mask) << distance) for v in values]
                if is_strided(left) or is_strided(right):
                    return True
    return False


def check_refusal(target: str, values: list[int], error: LayoutError) -> None:
    """The refusal is the truth about the values, and its witness can be checked on them."""
    code, witness = error.diagnostic.code, dict(error.diagnostic.witness or {})
    size = len(values)
    if target == "linear":
        assert code == ("LA231" if size.bit_count() != 1 else "LA232" if is_affine(values) else "LA230")
        if code == "LA232":
            assert values[witness["coordinate"]] == witness["value"] < 0
        if code == "LA230":
            x, y = witness["x"], witness["y"]
            assert values[x ^ y] == witness["f(x^y)"] != witness["f(x)^f(y)^f(0)"]
            assert values[x] ^ values[y] ^ values[0] == witness["f(x)^f(y)^f(0)"]
        return
    assert code == {"cute": "LA235", "integer": "LA660"}[target]
    assert not is_strided(values)
    if "x" in witness:
        x, y = witness["x"], witness["y"]
        assert values[x + y] == witness["f(x+y)"] != witness["f(x)+f(y)-f(0)"]
        assert values[x] + values[y] - values[0] == witness["f(x)+f(y)-f(0)"]
    else:
        at = witness["coordinate"]
        assert values[at] == witness["value"] != witness["strided"]
        # no strided layout agrees up to the witness
        assert all(any(defects(values, box)[: at + 1]) for box in boxes(size))
    if target == "cute":
        assert not behind_a_swizzle(values)
    else:
        assert "no modulus helps" in (error.diagnostic.because or "") or min(values) < 0
        assert not is_modular(values)


def judged(target: str, layout: Any, values: list[int]) -> Any:
    try:
        answer = BRIDGES[target](layout)
    except RepresentabilityError as error:
        check_refusal(target, values, error)
        return None
    assert answer.table().tolist() == values
    return answer


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_direction_is_exact_or_refused_with_a_true_witness(family: str, rng: random.Random) -> None:
    layout = random_layout(family, rng)
    values = values_of(layout)
    for target in BRIDGES:
        answer = judged(target, layout, values)
        if answer is None:
            continue
        # a bridge keeps what every other bridge needs
        other = rng.choice(sorted(BRIDGES))
        judged(other, answer, values)
        verdict = equivalent(layout, answer)
        assert isinstance(verdict, Proved)
        assert verdict.engine in ("normal-form", "table")


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_pairs_of_all_families_are_decided_as_the_tables_say(family: str, rng: random.Random) -> None:
    f = random_layout(family, rng)
    left = values_of(f)
    kinds = [kind for kind in FAMILIES if len(left).bit_count() == 1 or kind not in ("linear", "bits")]
    g = random_layout(rng.choice(kinds), rng, len(left))
    if rng.random() < 0.4:
        with contextlib.suppress(RepresentabilityError, BudgetError):
            g = BRIDGES[rng.choice(sorted(BRIDGES))](f)
    right = values_of(g)
    engines = ENGINES if rng.random() < 0.3 else ("normal-form", "table")
    for engine in engines:
        verdict = equivalent(f, g, _engines=(engine,))
        if isinstance(verdict, Unknown):
            assert engine != "table"
            continue
        assert bool(verdict) == (left == right), engine
        assert verdict.engine == engine
        if isinstance(verdict, Refuted):
            at = verdict.witness["coordinate"]
            assert isinstance(at, int)
            assert (verdict.witness["f"], verdict.witness["g"]) == (left[at], right[at])
            assert left[at] != right[at]
    assert bool(equivalent(f, g)) == bool(equivalent(g, f)) == (left == right)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_several_outputs_are_compared_one_by_one(rng: random.Random) -> None:
    size = rng.choice((4, 6, 8, 12))

    def two() -> IntegerLayout:
        names = [(f"k{place}", extent) for place, extent in enumerate(factors(size, rng))]
        rows = tuple(tuple(rng.choice((0, 1, 2, 3)) for _ in names) for _ in range(2))
        return IntegerLayout(tuple(names), (("p", rng.choice((0, 4))), ("q", 0)), rows, (rng.choice((0, 1)), 0))

    f = two()
    g = rng.choice((two, lambda: convert.to_piecewise(f), lambda: f))()
    left, right = f.table().tolist(), g.table().tolist()
    for engine in ENGINES:
        verdict = equivalent(f, g, _engines=(engine,))
        if isinstance(verdict, Unknown):
            assert engine == "normal-form"
            continue
        assert bool(verdict) == (left == right), engine
        if isinstance(verdict, Refuted):
            at = verdict.witness["coordinate"]
            assert isinstance(at, int)
            assert (list(verdict.witness["f"]), list(verdict.witness["g"])) == (left[at], right[at])  # type: ignore[call-overload]
    assert isinstance(equivalent(f, CuteLayout(size)), Refuted)
    for bridge in (convert.to_cute, convert.to_linear):
        with pytest.raises(LayoutError) as caught:
            bridge(f)
        assert caught.value.diagnostic.code in ("LA234", "LA231")


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_partial_tiles_are_refused_and_compared_with_what_they_leave_out(rng: random.Random) -> None:
    size = rng.choice((2, 4, 6, 8, 12))
    kind = rng.choice(("digits", "table"))
    source, target = box_of(factors(size, rng), "s"), box_of(factors(size, rng), "t")
    mapping = bijection(kind, size, rng)

    def tile() -> HierarchicalLayout:
        box = box_of(factors(size, rng), "g")
        bounds = tuple(rng.randint(0, extent) for _, extent in box.axes)
        return HierarchicalLayout(source, target, mapping, (Guard(bijection(kind, size, rng), box, bounds),))

    f = tile()
    whole = HierarchicalLayout(source, target, mapping)
    table = f.table().tolist()
    if -1 in table:
        for bridge in BRIDGES.values():
            with pytest.raises(RepresentabilityError) as caught:
                bridge(f)
            assert caught.value.diagnostic.code == "LA661"
            assert table[caught.value.diagnostic.witness["coordinate"]] == -1  # type: ignore[index, call-overload]
    holes = CuteLayout(size, -1) if size == 2 else CuteLayout((2, size // 2), (-1, 0))
    for g, other in ((whole, whole.table().tolist()), (t := tile(), t.table().tolist()), (holes, None)):
        verdict = equivalent(f, g)
        assert bool(verdict) == (other == table)
        if isinstance(verdict, Refuted):
            at = verdict.witness["coordinate"]
            assert isinstance(at, int)
            assert verdict.witness["f"] == (None if table[at] == -1 else table[at])
            assert verdict.witness["f"] != verdict.witness["g"]


def test_a_value_of_minus_one_is_not_a_hole() -> None:
    box, identity = Box.of(i=2), DigitMap(((2, 1),))
    tile = HierarchicalLayout(box, box, identity, (Guard(identity, box, (1,)),))
    for engine in ("normal-form", "table"):
        for f, g in ((tile, CuteLayout(2, -1)), (CuteLayout(2, -1), tile)):
            verdict = equivalent(f, g, _engines=(engine,))
            assert isinstance(verdict, Refuted)
            assert verdict.witness["coordinate"] == 1
            assert {verdict.witness["f"], verdict.witness["g"]} == {None, -1}


def test_a_modulus_must_exceed_every_value() -> None:
    layout = PiecewiseLayout("{ [i] -> [0] : i = 0; [i] -> [2] : i = 1; [i] -> [1] : 2 <= i < 4 }")
    with pytest.raises(RepresentabilityError, match="no modulus helps"):
        convert.to_integer(layout)


def test_large_layouts_are_converted_and_compared_by_algebra() -> None:
    wide = IntegerLayout.from_strides({"i": 2**40, "j": 3}, (3, 2**50), 7)
    assert convert.to_cute(convert.to_piecewise(wide)) == convert.to_cute(wide)
    strided = convert.to_cute(wide)
    assert str(strided) == "7 + (1099511627776,3):(3,1125899906842624)"
    assert convert.to_integer(strided).matrix == wide.matrix
    for other in (strided, convert.to_piecewise(wide)):
        assert isinstance(equivalent(wide, other), Proved)
    turns = IntegerLayout.from_strides({"i": 9 * 2**40}, (3,), 1, modulus=9)
    assert str(convert.to_cute(turns)) == f"1 + (3,{3 * 2**40}):(3,0)"
    bank = IntegerLayout.from_strides({"i": 2**30, "j": 2**20}, (4, 2**33), modulus=2**34)
    linear = convert.to_linear(bank)
    assert isinstance(equivalent(bank, linear), Proved)
    huge = IntegerLayout.from_strides({"i": 2**70}, (2**70,))
    assert convert.to_linear(huge).columns == tuple(1 << (70 + k) for k in range(70))
    with pytest.raises(RepresentabilityError, match="LA235"):
        convert.to_cute(huge)
    with pytest.raises(RepresentabilityError, match="LA660"):
        convert.to_cute(IntegerLayout.from_strides({"i": 3}, (2**70,)))
    with pytest.raises(BudgetError, match="LA233"):
        convert.to_cute(IntegerLayout.from_strides({"i": 2**40}, (5,), modulus=7))
    with pytest.raises(RepresentabilityError, match="LA660"):  # a size beyond 64 bits, all values 0
        convert.to_cute(LinearLayout((("i", 70),), (), (0,) * 70))
    half = PiecewiseLayout(f"{{ [i] -> [i mod 8] : 0 <= i < {2**40} }}")
    assert str(convert.to_cute(half)) == f"(8,{2**37}):(1,0)"
    assert convert.to_linear(half).columns == (1, 2, 4, *(0,) * 37)
    box = Box.of(i=8 * 3**30)
    swizzled = HierarchicalLayout(box, box, DigitMap(((2, 1), (2, (2, 4)), (2, 4), (3**30, 8))))
    assert str(convert.to_cute(swizzled)) == f"Sw<1,1,-1> o 0 o {8 * 3**30}:1"
    # two bits are added at different distances, which no swizzle does
    mixed = HierarchicalLayout(box, box, DigitMap(((2, (1, 4)), (2, (2, 4)), (2, 4), (3**30, 8))))
    for bridge in (convert.to_cute, convert.to_integer):
        with pytest.raises(BudgetError, match="LA233"):
            bridge(mixed)
    assert convert.to_piecewise(mixed).at(8 * 3**29 + 2) == 8 * 3**29 + 6


def random_stack(rng: random.Random, most: int) -> tuple[ComposedLayout, list[int]]:
    """Two or three swizzles with offsets over any modes, and its values by the definitions."""
    extents = [rng.choice((2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)) for _ in range(rng.randint(1, 3))]
    while math.prod(extents) > most:
        extents.pop(0)
    extents = extents or [rng.randint(1, 5)]
    strides = [rng.choice((1, 2, 3, 4, 5, 8, 13, 16, 20, 64, -1, -3)) for _ in extents]
    values = [0]
    for extent, stride in zip(extents, strides, strict=True):
        values = [value + digit * stride for digit in range(extent) for value in values]
    layout: CuteLayout | ComposedLayout = CuteLayout(tuple(extents), tuple(strides))
    for _ in range(rng.choice((2, 2, 3))):
        bits, base, offset = rng.randint(1, 3), rng.randrange(4), rng.choice((0, 0, 3, 8, 12, 17, -5))
        shift = rng.randint(bits, 4)
        field = (1 << bits) - 1 << base
        values = [value + offset for value in values]
        if rng.random() < 0.5:  # the upper field is xored into the lower one
            values = [value ^ (value >> shift & field) for value in values]
        else:
            values, shift = [value ^ (value & field) << shift for value in values], -shift
        layout = ComposedLayout(Swizzle(bits, base, shift), offset, layout)
    assert isinstance(layout, ComposedLayout)
    return layout, values


def test_stacks_of_swizzles_have_pieces() -> None:
    rng = random.Random(20)
    refused = 0
    for most in (*(5, 5, 10, 10, 20, 40) * 49, *(300,) * 6):
        layout, values = random_stack(rng, most)
        try:
            answer = convert.to_piecewise(layout)
        except BudgetError as error:
            assert (error.diagnostic.code, layout.size > 128) == ("LA222", True)
            refused += 1
            continue
        assert answer.table().tolist() == values
        extents = [extent for _, extent in answer.inputs]
        assert math.prod(extents) == len(values)
        if most != 20 or len(set(values)) < len(values) or min(values) < 0:
            continue
        inverse = la.left_inverse(layout, widen=True)
        assert not isinstance(inverse, Swizzle)
        assert inverse.table()[values].tolist() == list(range(len(values)))
    assert refused <= 3  # ISL may give up on a large one


def test_a_stack_of_any_size_has_pieces_by_its_period() -> None:
    rng = random.Random(3)
    for text, pieces in (
        ("Sw<1,4,2> o -7 o (Sw<1,5,2> o 3 o (96,1000003):(16,-48))", 8),
        ("Sw<1,50,2> o -7 o (Sw<1,48,2> o 3 o (3,5000):(-281474976710656,562949953421312))", 8),
        # a whole period would leave 64 bits
        ("Sw<1,58,3> o 5000000000000000000 o (Sw<1,57,2> o 3 o (3,5000):(18014398509481984,0))", 8),
    ):
        layout = la.parse(text)
        answer = convert.to_piecewise(layout)
        assert answer.inputs == tuple((f"c{k}", n) for k, n in enumerate(layout.base.shape))
        assert answer.text.count("->") <= pieces
        for _ in range(200):
            index = rng.randrange(layout.size)
            first, second = index % layout.base.shape[0], index // layout.base.shape[0]
            value = first * layout.base.stride[0] + second * layout.base.stride[1]
            for swizzle, offset in reversed(layout.stages):
                value += offset
                value ^= value >> swizzle.shift & (1 << swizzle.bits) - 1 << swizzle.base
            assert convert.value_at(answer, index) == value


def test_a_table_of_many_runs_is_over_the_limit_of_pieces() -> None:
    values = list(range(400))
    random.Random(1).shuffle(values)
    box = Box.of(i=400)
    with pytest.raises(BudgetError, match="LA662"):
        convert.to_piecewise(HierarchicalLayout(box, box, TableMap(tuple(values))))


@pytest.mark.parametrize("bad", [None, 3, Box.of(i=2), DigitMap(((2, 1),))])
def test_other_values_are_refused(bad: object) -> None:
    for bridge in BRIDGES.values():
        with pytest.raises(MalformedError, match="LA234"):
            bridge(bad)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(FAMILIES[:5]), st.randoms(use_true_random=False))
def test_the_text_of_a_layout_reads_back(family: str, rng: random.Random) -> None:
    layout = random_layout(family, rng)
    found = la.parse(str(layout))
    assert type(found) is type(layout)
    assert str(found) == str(layout)
    assert found.table().tolist() == layout.table().tolist()
