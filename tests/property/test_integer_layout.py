"""Integer layouts against enumeration: every operation, any extents, moduli up to 40."""

from __future__ import annotations

import itertools
import math
import pickle
import random
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg import integer
from layoutalg.convert import to_cute, to_integer
from layoutalg.cute.layout import CuteLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.integer import IntegerLayout, parse_integer
from layoutalg.integer.access import access
from layoutalg.integer.engines import collision, value_set

NAMES = ("i", "j", "k", "l")
extent = st.sampled_from([0, 1, 2, 2, 3, 3, 4, 5, 7])
modulus = st.one_of(st.just(0), st.integers(1, 40))


@st.composite
def layouts(draw, outs=("x", "y"), low=0, moduli=modulus, extents=extent, numbers=None, count=3):
    numbers = (
        numbers
        if numbers is not None
        else draw(st.sampled_from([st.integers(-4, 4), st.integers(-30, 30), st.sampled_from([0, 1, 2, 4])]))
    )
    inputs = tuple((name, draw(extents)) for name in NAMES[: draw(st.integers(0, count))])
    outputs = tuple((name, draw(moduli)) for name in outs[: draw(st.integers(low, len(outs)))])
    rows = tuple(tuple(draw(numbers) for _ in inputs) for _ in outputs)
    return IntegerLayout(inputs, outputs, rows, tuple(draw(numbers) for _ in outputs))


def single(**more):
    return layouts(outs=("x",), low=1, **more)


def points(layout):
    """All points of the box in the order of the flat index."""
    return [point[::-1] for point in itertools.product(*(range(e) for e in layout.extents[::-1]))]


def value(layout, point):
    """The definition, written out."""
    answer = []
    for row, b, (_, m) in zip(layout.matrix, layout.offset, layout.outputs, strict=True):
        total = b + sum(a * x for a, x in zip(row, point, strict=True))
        answer.append(total % m if m else total)
    return tuple(answer)


def values(layout):
    return [value(layout, point) for point in points(layout)]


@given(layouts())
def test_values_text_and_copies(layout):
    wanted = values(layout)
    table = layout.table()
    assert table.shape == ((layout.size,) if len(layout.outputs) == 1 else (layout.size, len(layout.outputs)))
    assert [tuple(row) for row in table.reshape(layout.size, len(layout.outputs)).tolist()] == wanted
    for index, point in enumerate(points(layout)[:8]):
        named = dict(zip(layout.in_dims, point, strict=True))
        assert tuple(layout(**named).values()) == wanted[index] == layout.value(point)
        assert layout.at(index) == (wanted[index][0] if len(wanted[index]) == 1 else wanted[index])
        assert layout.coordinate(index) == point
    some = np.arange(layout.size)[::-2].reshape(-1, 1)
    assert layout.apply(some).tolist() == table[some].tolist()
    assert parse_integer(str(layout)) == layout
    assert eval(repr(layout)) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert hash(eval(repr(layout))) == hash(layout)
    if layout.size:
        for (low, high), row, b in zip(layout.spans(), layout.matrix, layout.offset, strict=True):
            raw = [b + sum(a * x for a, x in zip(row, p, strict=True)) for p in points(layout)]
            assert (low, high) == (min(raw), max(raw))


@given(layouts(), layouts())
def test_same_function(f, g):
    g = IntegerLayout(
        f.inputs,
        f.outputs,
        tuple(
            tuple(row[: len(f.inputs)]) + (0,) * (len(f.inputs) - len(row))
            for row in (*g.matrix, *f.matrix)[: len(f.outputs)]
        ),
        (*g.offset, *f.offset)[: len(f.outputs)],
    )
    assert integer.same_function(f, g) == (values(f) == values(g))
    assert values(integer.normal_form(f)) == values(f)


@settings(max_examples=300)
@given(layouts(outs=("i", "j"), low=2), st.data())
def test_composition(inner, data):
    box = {name: data.draw(st.sampled_from([m or 1, 3, 8, 30, 200])) for name, m in inner.outputs}
    outer = data.draw(layouts().map(lambda f: f))
    rows = tuple(tuple(data.draw(st.integers(-5, 5)) for _ in box) for _ in outer.outputs)
    order = data.draw(st.permutations(list(box.items())))
    outer = IntegerLayout(tuple(order), outer.outputs, rows, outer.offset)
    middle = values(inner)
    places = [("i", "j").index(name) for name, _ in order]
    outside = [
        p
        for p, v in zip(points(inner), middle, strict=True)
        if any(not 0 <= v[k] < box[n] for k, n in enumerate(("i", "j")))
    ]
    if outside:
        with pytest.raises(AdmissibilityError) as error:
            outer @ inner
        assert error.value.diagnostic.code == "LA729"
        assert tuple(error.value.diagnostic.witness["coordinate"].values()) == outside[0]
        return
    wanted = [value(outer, [v[k] for k in places]) for v in middle]
    # the judge of representability: the one affine candidate, at every point
    exact = affine(inner.extents, wanted, outer.moduli, points(inner))
    try:
        found = outer @ inner
    except RepresentabilityError as error:
        assert error.diagnostic.code == "LA730"
        assert exact is not None
        assert tuple(error.diagnostic.witness["coordinate"].values()) == points(inner)[exact]
        assert error.diagnostic.witness["value"] == wanted[exact]
    else:
        assert exact is None
        assert values(found) == wanted
        assert found == inner.then(outer)


def affine(extents, wanted, moduli, box):
    """Index of the first point where no affine map (modulo the moduli) agrees with the values, or None."""
    at = dict(zip(box, wanted, strict=True))
    if not box:
        return None
    origin = at[box[0]]
    units = [tuple(int(k == place) for k in range(len(extents))) if e > 1 else None for place, e in enumerate(extents)]
    for index, point in enumerate(box):
        for k, m in enumerate(moduli):
            guess = origin[k] + sum(x * (at[u][k] - origin[k]) for x, u in zip(point, units, strict=True) if u)
            gap = guess - wanted[index][k]
            if gap % m if m else gap:
                return index
    return None


@given(single(), st.data())
def test_flips_slices_fixes(layout, data):
    if not layout.inputs:
        return
    name, size = data.draw(st.sampled_from(layout.inputs))
    place = list(layout.in_dims).index(name)
    at = dict(zip(points(layout), values(layout), strict=True))

    def moved(point, x):
        return (*point[:place], x, *point[place + 1 :])

    flipped = integer.flip(layout, name)
    assert values(flipped) == [at[moved(p, size - 1 - p[place])] for p in points(flipped)]
    if not size:
        return
    start, end = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    count = data.draw(st.integers(0, abs(end - start) + 1))
    step = 1 if end >= start else -1
    cut = integer.slice(layout, name, start, count, step)
    assert values(cut) == [at[moved(p, start + step * p[place])] for p in points(cut)]
    held = integer.fix(layout, name, start)
    assert values(held) == [at[(*p[:place], start, *p[place:])] for p in points(held)]
    order = data.draw(st.permutations(list(layout.in_dims)))
    turned = integer.permute(layout, order)
    back = [order.index(n) for n in layout.in_dims]
    assert values(turned) == [at[tuple(p[k] for k in back)] for p in points(turned)]
    assert values(integer.shift(layout, [5])) == [
        tuple((v + 5) % m if m else v + 5 for v, m in zip(w, layout.moduli, strict=True)) for w in values(layout)
    ]


@given(layouts(low=1))
def test_outputs(layout):
    names = list(layout.out_dims)
    assert values(integer.select_outputs(layout, names[::-1])) == [v[::-1] for v in values(layout)]


@given(layouts(extents=st.sampled_from([1, 2, 3, 4, 6])), st.data())
def test_mixed_radix(layout, data):
    flat = values(layout)
    if layout.inputs:
        name, size = data.draw(st.sampled_from(layout.inputs))
        low = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        parts = integer.split(layout, name, {"low": low, "high": size // low})
        assert values(parts) == flat
        assert integer.same_function(integer.merge(parts, ["low", "high"], name), layout)
    rest, dims = layout.size, []
    for k in range(3):
        part = data.draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0])) if k < 2 else rest
        dims.append((f"d{k}", part))
        rest //= part
    box = [p[::-1] for p in itertools.product(*(range(e) for _, e in dims[::-1]))]
    wrong = affine([e for _, e in dims], flat, layout.moduli, box)
    try:
        found = integer.reshape(layout, dims)
    except RepresentabilityError as error:
        assert error.diagnostic.witness["flat"] == wrong
        assert error.diagnostic.witness["value"] == flat[wrong]
    else:
        assert wrong is None
        assert values(found) == flat
    wrong = affine([layout.size], flat, layout.moduli, [(k,) for k in range(layout.size)])
    if layout.inputs:
        try:
            merged = integer.merge(layout, list(layout.in_dims), "all")
        except RepresentabilityError as error:
            assert error.diagnostic.witness["flat"] == wrong
            assert error.diagnostic.witness["value"] == flat[wrong]
        else:
            assert wrong is None
            assert values(merged) == flat


@given(layouts(low=2), layouts(low=2), modulus, modulus)
def test_coalesced_form_is_complete(f, g, m, k):
    f, g = (IntegerLayout(h.inputs, (("x", m), ("y", k)), h.matrix, (0, 0)) for h in (f, g))
    assert (integer.coalesced(f) == integer.coalesced(g)) == (values(f) == values(g))


@settings(max_examples=300)
@given(
    single(
        extents=st.integers(0, 5),
        moduli=st.one_of(st.just(0), st.integers(1, 12)),
        numbers=st.sampled_from([0, 1, -1, 2, 3, 4, -4, 5, 6]),
    )
)
def test_inverse(layout):
    seen = [v for (v,) in values(layout)]
    try:
        found = layout.inverse()
    except AdmissibilityError as error:
        assert sorted(seen) != list(range(layout.size))
        witness = error.diagnostic.witness
        if "missed" in witness:
            assert 0 <= witness["missed"] < layout.size
            assert witness["missed"] not in seen
        elif "first" in witness:
            assert witness["first"] != witness["second"]
            assert all(layout(**witness[k])["x"] == witness["value"] for k in ("first", "second"))
        else:
            assert witness["value"] < 0
            assert witness["value"] in seen
    except RepresentabilityError:
        assert sorted(seen) == list(range(layout.size))
        assert layout.moduli[0]
    else:
        assert [found.at(layout.at(i)) for i in range(layout.size)] == list(range(layout.size))
        assert found.size == layout.size


@settings(max_examples=200)
@given(layouts(low=1))
def test_injective(layout):
    verdict = integer.injective(layout)
    seen = values(layout)
    assert isinstance(verdict, (Proved, Refuted))
    assert bool(verdict) == (len(set(seen)) == len(seen))
    if isinstance(verdict, Refuted):
        x, y = (tuple(verdict.witness[k].values()) for k in ("first", "second"))
        assert x != y
        assert x in points(layout)
        assert y in points(layout)
        assert value(layout, x) == value(layout, y) == tuple(verdict.witness["value"].values())


@settings(max_examples=200)
@given(single(extents=st.integers(1, 7)))
def test_bitset_of_values(layout):
    m = layout.moduli[0]
    found = value_set(layout.matrix[0], layout.offset[0], m, layout.extents, 10**6)
    seen = [v for (v,) in values(layout)]
    assert {found.low + k for k in range(found.count) if found.bits >> k & 1} == set(seen)
    if found.collision is None:
        assert len(set(seen)) == len(seen)
    else:
        x, y = found.collision
        assert x != y
        assert value(layout, x) == value(layout, y)
    for low, high in ((min(seen), max(seen) + 1), (0, m or 9), (-3, 3), (4, 4)):
        missing = [v for v in range(low, high) if v not in seen]
        assert found.first_missing(low, high) == (missing[0] if missing else None)


@settings(max_examples=15)
@given(layouts(low=1, extents=st.integers(1, 5)))
def test_solver(layout):
    found = collision(layout, 5)
    seen = values(layout)
    assert (found is None) == (len(set(seen)) == len(seen))
    if found is not None:
        assert found[0] != found[1]
        assert value(layout, found[0]) == value(layout, found[1])


@settings(max_examples=200)
@given(layouts(low=1), st.data())
def test_covers(layout, data):
    box = {}
    for name, m in layout.outputs:
        low = data.draw(st.integers(0, 2)) if m else data.draw(st.integers(-3, 3))
        low = min(low, m) if m else low
        high = data.draw(st.integers(low, min(low + 9, m))) if m else low + data.draw(st.integers(0, 9))
        box[name] = (low, high)
    verdict = integer.covers(layout, box)
    seen = set(values(layout))
    wanted = [p for p in itertools.product(*(range(*side) for side in box.values())) if p not in seen]
    assert bool(verdict) == (not wanted)
    if wanted:
        assert tuple(verdict.witness["missed"].values()) in wanted
    if all(m for _, m in layout.outputs):
        assert bool(integer.covers(layout)) == (len(seen) == math.prod(layout.moduli))


@settings(max_examples=150)
@given(layouts(low=1))
def test_kernel_lattices(f):
    lattice = integer.kernel_lattice(f)
    for d in itertools.product(range(-3, 4), repeat=len(f.inputs)):
        zero = all(
            (t % m == 0) if m else t == 0
            for t, m in (
                (sum(a * x for a, x in zip(row, d, strict=True)), m) for row, m in zip(f.matrix, f.moduli, strict=True)
            )
        )
        assert (d in lattice) == zero


def least_points(layout):
    """Each value with its least point, comparing the first axis first."""
    least = {}
    for p in points(layout):
        v = value(layout, p)
        least[v] = min(p, least.get(v, p))
    return least


@settings(max_examples=60)
@given(layouts(low=1, extents=st.integers(1, 4), numbers=st.sampled_from([0, 1, -1, 2, 3, -3, 4, 6, 12])))
def test_right_inverse(layout):
    try:
        found = integer.right_inverse(layout)
    except BudgetError:
        assert layout.size > 16
        return
    if isinstance(found, integer.ImageInverse):
        inputs, outputs = found.layout.graph()
        pairs = {tuple(map(int, y)): tuple(map(int, x)) for y, x in zip(inputs, outputs, strict=True)}
        assert pairs == least_points(layout)
        return
    for c in points(found.layout):
        assert value(layout, value(found.layout, c)) == value(found.values, c)
        assert value(found.layout, c) in points(layout)
    wanted = set(itertools.product(*(range(*side) for _, side in found.box)))
    assert set(values(found.values)) == wanted
    assert found.layout.size == len(wanted)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.data())
def test_rotations_have_integer_layouts_as_inverses(extents, data):
    """Every axis is turned by multiples of the last one, modulo its extent."""
    size = len(extents)
    rows = tuple(
        tuple(int(i == j) if i >= j or j < size - 1 else data.draw(st.integers(-5, 5)) for j in range(size))
        for i in range(size)
    )
    layout = IntegerLayout(
        tuple(zip(NAMES, extents, strict=False)),
        tuple((f"y{k}", extents[k]) for k in range(size)),
        rows,
        (*(data.draw(st.integers(0, 9)) for _ in extents[1:]), 0),
    )
    found = integer.right_inverse(layout)
    assert isinstance(found, integer.RightInverse)
    assert found.layout.size == layout.size
    assert {value(layout, value(found.layout, c)) for c in points(found.layout)} == set(values(layout))


@settings(max_examples=300)
@given(
    single(
        extents=st.integers(1, 6),
        moduli=st.one_of(st.just(0), st.just(0), modulus),
        numbers=st.sampled_from([0, 1, 1, 2, 3, 4, 6, 8, 12, -4]),
    ),
    st.sampled_from([0, 0, 4, 6]),
)
def test_vector_width(layout, base):
    seen = [v for (v,) in values(layout)]
    try:
        found = access(layout, base)
    except RepresentabilityError:
        assert layout.moduli[0]
        return

    def works(v):
        return (
            layout.size % v == 0
            and base % v == 0
            and all(
                seen[k] % v == 0 and all(seen[k + t] == seen[k] + t for t in range(v)) for k in range(0, layout.size, v)
            )
        )

    assert found.width == max(v for v in range(1, layout.size + 1) if works(v))
    assert all(works(v) == (found.width % v == 0) for v in range(1, layout.size + 1))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
def test_symbolic_vector_width(extents, data):
    divisor = data.draw(st.integers(1, 12))
    strides = [data.draw(st.sampled_from([1, 2, 4, 6, "ld", "2ld"])) for _ in extents]
    strides[0] = 1
    symbols = [s if isinstance(s, int) else "2*ld" if s == "2ld" else "ld" for s in strides]
    offset = data.draw(st.sampled_from([0, 0, 4, 6]))
    found = integer.symbolic_access(extents, symbols, offset, (f"ld % {divisor} == 0",))
    for factor in (1, 2, 3):
        ld = divisor * factor
        numbers = [s if isinstance(s, int) else ld * (2 if s == "2ld" else 1) for s in strides]
        layout = IntegerLayout.from_strides(list(zip(NAMES, extents, strict=False)), numbers, offset)
        exact = access(layout).width
        assert exact % found.guaranteed == 0
        claimed = eval(found.text, {"gcd": math.gcd, "ld": ld})
        assert exact % claimed == 0
        live = [(s, n) for s, n, e in zip(strides, numbers, extents, strict=True) if e > 1]
        by_chance = live and live[0][1] == 1 and live[0][0] != 1
        if len(integer.coalesced(layout)) == len(live) and not by_chance:
            assert exact == claimed


POLYNOMIALS = ("ld", "2*ld", "ld*h", "ld*h + 8", "4*ld - 2*h", "n*n + n", "K*ld", "K", "(ld + h)*(ld - h)", "12", "1")


@settings(max_examples=80)
@given(st.data())
def test_polynomial_vector_width(data):
    """Right at every value tried, and no larger width is right at all of them."""
    count = data.draw(st.integers(1, 3))
    extents = [data.draw(st.sampled_from([1, 2, 4, 6, "K", "2*K"])) for _ in range(count)]
    strides = [1, *[data.draw(st.sampled_from(POLYNOMIALS)) for _ in range(count - 1)]]
    offset = data.draw(st.sampled_from([0, 4, 6, "ld", "4*h"]))
    known = {}
    for name in ("ld", "h", "K", "n"):
        d = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
        known[name] = (data.draw(st.sampled_from([0, 0, d - 1])), d)
    found = integer.symbolic_access(
        extents, strides, offset, [f"{name} % {d} == {r}" for name, (r, d) in known.items()]
    )
    assert found.exact
    widths = 0
    for turn in itertools.product((1, 2, 3), repeat=len(known)):
        at = {name: r + d * k for (name, (r, d)), k in zip(known.items(), turn, strict=True)}
        sizes, steps = [eval(str(e), {}, at) for e in extents], [eval(str(s), {}, at) for s in strides]
        start = eval(str(offset), {}, at)
        claimed = eval(found.text, {"gcd": math.gcd}, at)
        assert claimed % found.guaranteed == 0
        widths = math.gcd(widths, claimed)
        if max(turn) == 1 and math.prod(sizes) < 500:
            layout = IntegerLayout.from_strides(list(zip(NAMES, sizes, strict=False)), steps, start)
            seen = [v for (v,) in values(layout)]
            for k in range(0, len(seen), claimed):
                assert seen[k] % claimed == 0
                assert seen[k : k + claimed] == list(range(seen[k], seen[k] + claimed))
    assert widths == found.guaranteed


@settings(max_examples=200)
@given(single())
def test_index_expressions(layout):
    axes = integer.index_expression(layout)
    assert axes.check()
    assert "/" not in axes.text
    assert ">>" not in axes.text
    if not layout.size:
        return
    flat = integer.index_expression(layout, flat="t")
    assert flat.check()
    divisions = flat.text.count("/") + flat.text.count(">>")
    assert divisions <= max(len(integer.coalesced(layout)) - 1, 0)
    names = {"t": np.arange(layout.size)}
    assert np.broadcast_to(flat.evaluate(names), layout.size).tolist() == [v for (v,) in values(layout)]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-9, 9)), min_size=1, max_size=4))
def test_bridge_to_cute(modes):
    cute = CuteLayout(tuple(e for e, _ in modes), tuple(d for _, d in modes))
    layout = to_integer(cute)
    assert layout.table().tolist() == cute.table().tolist()
    assert to_cute(layout).table().tolist() == cute.table().tolist()
    try:
        flat = integer.reshape(layout, [("i", layout.size)])
    except RepresentabilityError as error:
        at = error.diagnostic.witness["flat"]
        assert cute(at) != error.diagnostic.witness["affine"][0]
    else:
        assert flat.table().tolist() == cute.table().tolist()


@given(single())
def test_bridge_from_residues(layout):
    try:
        cute = to_cute(layout)
    except RepresentabilityError as error:
        assert error.diagnostic.code in ("LA235", "LA660")
    else:
        assert cute.table().tolist() == layout.table().tolist()


def test_index_expressions_as_compiled_c(tmp_path):
    """The text as C of the width it asks for, with overflow trapped, at every point."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    rng = random.Random(3)
    functions, checks = ["#include <stdint.h>"], []
    for case in range(60):
        extents = [rng.randint(1, 5) for _ in range(rng.randint(0, 4))]
        entries = rng.choice([(0, 1, -1, 3), (1, 2, 4, 8, 16), (2**31, -(2**33), 7), range(-50, 50)])
        layout = IntegerLayout.from_strides(
            list(zip(NAMES, extents, strict=False)),
            [rng.choice(entries) for _ in extents],
            rng.choice(entries),
            modulus=rng.choice([0, 0, 1, 8, 12, 2**40]),
        )
        for kind, found in (("a", integer.index_expression(layout)), ("f", integer.index_expression(layout, flat="t"))):
            number = "int32_t" if found.bits <= 32 else "int64_t"
            head = ", ".join(f"{number} {name}" for name, _ in found.variables) or "void"
            functions.append(f"static int64_t {kind}{case}({head}) {{ return {found.text}; }}")
            arguments = points(layout) if kind == "a" else [(t,) for t in range(layout.size)]
            for argument, (wanted,) in zip(arguments, values(layout), strict=True):
                checks.append(f"  if ({kind}{case}({', '.join(map(str, argument))}) != {wanted}LL) return 1;")
    source, program = tmp_path / "text.c", tmp_path / "text"
    source.write_text("\n".join([*functions, "int main(void) {", *checks, "  return 0;", "}"]))
    subprocess.run([compiler, "-w", "-ftrapv", str(source), "-o", str(program)], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 0


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=4, max_size=6), st.data())
def test_many_axes_and_huge_strides(extents, data):
    numbers = st.sampled_from([0, 1, -1, 2, 2**64, -(2**64), 2**64 + 1, 3 * 10**30])
    outputs = tuple((name, data.draw(st.sampled_from([0, 1, 6, 9, 2**70]))) for name in ("x", "y"))
    layout = IntegerLayout(
        tuple(zip("abcdef", extents, strict=False)),
        outputs,
        tuple(tuple(data.draw(numbers) for _ in extents) for _ in outputs),
        tuple(data.draw(numbers) for _ in outputs),
    )
    seen = values(layout)
    assert [tuple(row) for row in layout.table().tolist()] == seen
    assert bool(integer.injective(layout)) == (len(set(seen)) == len(seen))
    flat = integer.coalesced(layout)
    again = IntegerLayout(
        tuple((f"c{k}", extent) for k, (extent, _) in enumerate(flat)),
        outputs,
        tuple(tuple(stride[k] for _, stride in flat) for k in range(2)),
        layout.offset,
    )
    assert values(again) == seen
