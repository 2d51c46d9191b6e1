"""The operations on linear layouts against enumeration of every point."""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg import f2
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError

NAMES = ("register", "lane", "warp")
OUTS = ("row", "col", "lane")
CASES = settings(max_examples=60, deadline=None)
Point = dict[str, int]


@st.composite
def axes(draw: st.DrawFn, names: tuple[str, ...], most: int = 5, fewest: int = 0) -> tuple[tuple[str, int], ...]:
    chosen = draw(st.permutations(names))[: draw(st.integers(fewest, len(names)))]
    found, room = [], most
    for name in chosen:
        bits = draw(st.integers(0, min(room, 3)))
        room -= bits
        found.append((name, bits))
    return tuple(found)


@st.composite
def layouts(
    draw: st.DrawFn,
    inputs: tuple[tuple[str, int], ...] | None = None,
    outputs: tuple[tuple[str, int], ...] | None = None,
    onehot: bool | None = None,
) -> LinearLayout:
    ins = draw(axes(NAMES)) if inputs is None else inputs
    outs = draw(axes(OUTS)) if outputs is None else outputs
    n, m = sum(b for _, b in ins), sum(b for _, b in outs)
    single = draw(st.booleans()) if onehot is None else onehot
    value = st.sampled_from([0, *(1 << bit for bit in range(m))]) if single else st.integers(0, (1 << m) - 1)
    columns = tuple(draw(st.lists(value, min_size=n, max_size=n)))
    return LinearLayout(ins, outs, columns, draw(st.sampled_from([0, draw(st.integers(0, (1 << m) - 1))])))


def points(dims: Mapping[str, int]) -> Iterator[Point]:
    """Every point, the first axis fastest."""
    names = list(dims)
    for values in itertools.product(*(range(dims[name]) for name in reversed(names))):
        yield dict(zip(names, reversed(values), strict=True))


def function(layout: LinearLayout) -> list[Point]:
    return [dict(layout.apply(point)) for point in points(layout.in_dims)]


def sound(layout: LinearLayout) -> None:
    """Results are made without checks, so check them here."""
    again = LinearLayout(layout.in_axes, layout.out_axes, layout.columns, layout.constant)
    assert again == layout == eval(repr(layout)) == pickle.loads(pickle.dumps(layout))
    assert hash(again) == hash(layout)


@CASES
@given(layouts(), layouts())
def test_direct_sum(inner: LinearLayout, outer: LinearLayout) -> None:
    try:
        both = inner * outer
    except AdmissibilityError as error:
        name, other = error.diagnostic.witness["axis"], error.diagnostic.witness["other"]
        agree = []
        for side in ("in_axes", "out_axes"):
            one, two = [n for n, _ in getattr(inner, side)], [n for n, _ in getattr(outer, side)]
            if {name, other} <= set(one) and {name, other} <= set(two):
                agree.append((one.index(name) < one.index(other)) == (two.index(name) < two.index(other)))
        assert error.diagnostic.code == "LA242"
        assert False in agree
        return
    sound(both)
    for layout in (inner, outer):
        for side in ("in_axes", "out_axes"):
            order = [n for n, _ in getattr(both, side)]
            kept = [n for n, _ in getattr(layout, side)]
            assert [n for n in order if n in kept] == kept
    for x in points(both.in_dims):
        low = {n: x[n] % s for n, s in inner.in_dims.items()}
        high = {n: x[n] // inner.in_dims.get(n, 1) for n in outer.in_dims}
        one, two = inner.apply(low), outer.apply(high)
        expected = {n: one.get(n, 0) + inner.out_dims.get(n, 1) * two.get(n, 0) for n in both.out_dims}
        assert both.apply(x) == expected
    assert both.is_injective == (inner.is_injective and outer.is_injective)
    assert both.is_surjective == (inner.is_surjective and outer.is_surjective)
    assert f2.divide_left(both, inner) == _spread(outer, both)
    assert f2.divide_right(both, outer) == _spread(inner, both)


def _spread(part: LinearLayout, whole: LinearLayout) -> LinearLayout:
    """``part`` with the axes of ``whole``, those it lacks of size 1."""
    ins, outs = dict(part.in_axes), dict(part.out_axes)
    bases = {name: [] for name in whole.in_dims} | {name: part.bases[name] for name in ins}
    spread = {name: [dict(zip(outs, image, strict=True)) for image in images] for name, images in bases.items()}
    dims = {name: part.out_dims.get(name, 1) for name in whole.out_dims}
    full = {n: [tuple(i.get(o, 0) for o in dims) for i in images] for n, images in spread.items()}
    return LinearLayout.from_bases(full, dims, part.offset)


@CASES
@given(layouts(), layouts(), layouts())
def test_direct_sum_is_associative(a: LinearLayout, b: LinearLayout, c: LinearLayout) -> None:
    assert f2.empty() * a == a == a * f2.empty()
    try:
        left = (a * b) * c
        right = a * (b * c)
    except AdmissibilityError:
        return
    assert left.bases.keys() == right.bases.keys()
    for x in points(left.in_dims):
        assert left.apply(x) == right.apply(x)


@CASES
@given(layouts(), layouts())
def test_division_is_exact_or_refused(layout: LinearLayout, tile: LinearLayout) -> None:
    for divide, left in ((f2.divide_left, True), (f2.divide_right, False)):
        try:
            rest = divide(layout, tile)
        except AdmissibilityError as error:
            assert error.diagnostic.code == "LA247"
            # no layout of the only possible size works: the quotient would have to be this restriction
            guess = _only_candidate(layout, tile, left)
            if guess is not None:
                with contextlib.suppress(AdmissibilityError):
                    assert (tile * guess if left else guess * tile) != layout
        else:
            sound(rest)
            assert (tile * rest if left else rest * tile) == layout
            assert [n for n, _ in rest.in_axes] == [n for n, _ in layout.in_axes]


def _only_candidate(layout: LinearLayout, tile: LinearLayout, left: bool) -> LinearLayout | None:
    ins = {n: s // tile.in_dims.get(n, 1) for n, s in layout.in_dims.items()}
    outs = {n: s // tile.out_dims.get(n, 1) for n, s in layout.out_dims.items()}
    fits = set(tile.in_dims) <= set(ins) and set(tile.out_dims) <= set(outs)
    if not fits or 0 in ins.values() or 0 in outs.values():
        return None

    def value(point: Mapping[str, int]) -> tuple[int, ...]:
        scaled = {n: point[n] * (tile.in_dims.get(n, 1) if left else 1) for n in point}
        image = layout.apply(scaled)
        return tuple(image[n] // tile.out_dims.get(n, 1) if left else image[n] % s for n, s in outs.items())

    origin = value(dict.fromkeys(ins, 0))
    bases = {}
    for n, s in ins.items():
        units = [value({m: 1 << b if m == n else 0 for m in ins}) for b in range(s.bit_length() - 1)]
        bases[n] = [tuple(a ^ b for a, b in zip(unit, origin, strict=True)) for unit in units]
    return LinearLayout.from_bases(bases, outs, origin)


@CASES
@given(st.data())
def test_solutions(data: st.DataObject) -> None:
    outs = data.draw(axes(OUTS, 4))
    outer = data.draw(layouts(data.draw(axes(NAMES, 4)), outs))
    small = tuple((n, data.draw(st.integers(0, b))) for n, b in data.draw(st.permutations(outs)))
    target = data.draw(layouts(data.draw(axes(NAMES, 3)), small))
    wanted = function(target)
    reached = [tuple(sorted(v.items())) for v in function(outer)]
    missing = [v for v in wanted if tuple(sorted(v.items())) not in reached]
    try:
        found = f2.solve(outer, target)
    except AdmissibilityError as error:
        assert error.diagnostic.code == "LA244"
        assert target.apply(error.diagnostic.witness["input"]) == error.diagnostic.witness["value"]
        assert error.diagnostic.witness["value"] in missing
        return
    assert not missing
    assert eval(repr(found), {"SolutionSet": f2.SolutionSet, "LinearLayout": LinearLayout}) == found
    for objective in ("smallest", "local", ("warp",), ("register", "lane")):
        if not isinstance(objective, str) and not set(objective) <= set(outer.in_dims):
            with pytest.raises(MalformedError, match="objective"):
                found.choose(objective)
            continue
        chosen = found.choose(objective)
        sound(chosen)
        assert found.contains(chosen)
        assert [outer.apply(v) for v in function(chosen)] == wanted
    # the smallest solution: every value at a unit input, and at the origin, is the first preimage there is
    inputs = list(points(outer.in_dims))
    values = [outer.apply(x) for x in inputs]
    assert found.particular.offset == inputs[values.index(target.apply(dict.fromkeys(target.in_dims, 0)))]
    assert len(values) == len({tuple(v.items()) for v in values}) << len(found.kernel)
    for value in values:
        first, directions = f2.preimages(outer, value)
        assert first == inputs[values.index(value)]
        assert len(directions) == len(found.kernel)


@CASES
@given(st.data())
def test_the_set_is_complete_and_objectives_are_optimal(data: st.DataObject) -> None:
    ins = (("register", data.draw(st.integers(0, 1))), ("lane", data.draw(st.integers(0, 2))), ("warp", 1))
    outs = (("o", data.draw(st.integers(1, 3))),)
    source = data.draw(layouts(ins, outs))
    target = source @ data.draw(layouts((("register", 1), ("lane", 1)), ins))
    found = f2.solve(source, target)
    if found.freedom > 7:
        return
    everything = _all_solutions(source, target)
    assert len(everything) == 1 << found.freedom
    assert all(map(found.contains, everything))
    _is_least(found.particular, everything)
    for axis in ("lane", "warp", "register"):
        chosen = found.choose((axis,))
        assert _rank(chosen, axis) == min(_rank(c, axis) for c in everything)
        assert _still(chosen, axis) == max(_still(c, axis) for c in everything)
        # ties: among the solutions that move this axis alike, each column is the smallest
        _is_least(chosen, [c for c in everything if _moves(c, axis) == _moves(chosen, axis)])
    local = found.choose("local")
    for axis in ("warp", "lane", "register"):
        least = min(_rank(c, axis) for c in everything)
        assert _rank(local, axis) >= least
        if _rank(local, axis) or _still(local, axis) < local.size:
            assert _rank(local, axis) == least
            break
        everything = [c for c in everything if _still(c, axis) == local.size]
    else:
        _is_least(local, everything)


def _all_solutions(outer: LinearLayout, target: LinearLayout) -> list[LinearLayout]:
    """Every affine C with ``outer(C(x)) == target(x)`` at every x, found by trying all of them."""
    wanted = function(target)
    values = [outer.apply(y) for y in points(outer.in_dims)]
    units = [0, *(1 << bit for bit in range(target.in_bits))]
    # a solution takes each of these inputs to a preimage of the value there; the rest of the inputs decides
    choices = [[y for y, value in enumerate(values) if value == wanted[x]] for x in units]
    found = []
    for origin, *others in itertools.product(*choices):
        one = LinearLayout(target.in_axes, outer.in_axes, tuple(value ^ origin for value in others), origin)
        if [values[one.at(x)] for x in range(one.size)] == wanted:
            found.append(one)
    return found


def _is_least(chosen: LinearLayout, among: list[LinearLayout]) -> None:
    """Each column and the constant is the smallest that occurs."""
    assert chosen in among
    for index, column in enumerate(chosen.columns):
        assert column == min(c.columns[index] for c in among)
    assert chosen.constant == min(c.constant for c in among)


def _moves(c: LinearLayout, axis: str) -> list[int]:
    return [_displacement(c, axis, x) for x in points(c.in_dims)]


def _displacement(c: LinearLayout, axis: str, x: Point) -> int:
    return c.apply(x)[axis] ^ x.get(axis, 0)


def _rank(c: LinearLayout, axis: str) -> int:
    origin = _displacement(c, axis, dict.fromkeys(c.in_dims, 0))
    span = {0}
    for x in points(c.in_dims):
        move = _displacement(c, axis, x) ^ origin
        span |= {move ^ other for other in span}
    return len(span).bit_length() - 1


def _still(c: LinearLayout, axis: str) -> int:
    return sum(not _displacement(c, axis, x) for x in points(c.in_dims))


@CASES
@given(layouts())
def test_inverses(layout: LinearLayout) -> None:
    values = [tuple(v.items()) for v in function(layout)]
    identity = LinearLayout.identity(layout.out_dims)
    try:
        right = f2.right_inverse(layout)
    except AdmissibilityError as error:
        assert tuple(error.diagnostic.witness["missed"].items()) not in values
    else:
        sound(right)
        assert layout @ right == identity
        first = [x for i, x in enumerate(points(layout.in_dims)) if values.index(values[i]) == i]
        assert right.offset in first
    try:
        left = f2.left_inverse(layout)
    except AdmissibilityError as error:
        zero = dict.fromkeys(layout.in_dims, 0)
        step = error.diagnostic.witness["kernel"]
        assert step != zero
        assert layout.apply(step) == layout.apply(zero)
    else:
        sound(left)
        assert left @ layout == LinearLayout.identity(layout.in_dims)
    masks = f2.free_variable_masks(layout)
    kept = [x for x in points(layout.in_dims) if all(not x[n] & masks[n] for n in masks)]
    assert len({tuple(layout.apply(x).items()) for x in kept}) == len(kept) == len(set(values))


def _affine(values: list[int]) -> bool:
    """Whether every second difference at 0 vanishes, by enumeration."""
    return all(a ^ b ^ values[0] == values[i ^ j] for i, a in enumerate(values) for j, b in enumerate(values))


def test_slices_are_judged_by_the_layout_and_not_by_the_sum_alone() -> None:
    # every layout of 4 bits onto one bit, every window: all of the verdicts, both ways
    verdicts = {True: 0, False: 0}
    for mask in range(16):
        layout = LinearLayout((("row", 4),), (("o", 1),), tuple(mask >> bit & 1 for bit in range(4)))
        for bits in range(5):
            for start in range(16 - (1 << bits) + 1):
                window = [layout.at(start + x) for x in range(1 << bits)]
                try:
                    part = f2.slice_in(layout, "row", start, 1 << bits)
                except AdmissibilityError as error:
                    _refuted(layout, start, error.diagnostic.witness)
                    verdicts[False] += 1
                    assert not _affine(window)
                else:
                    verdicts[True] += 1
                    assert part.table().tolist() == window
    assert min(verdicts.values()) > 50


def _refuted(layout: LinearLayout, start: int, witness: Mapping[str, object]) -> None:
    """The witness of a refused slice: four points of the window with xor 0, and values with another xor."""
    steps, coordinates, values = witness["x"], witness["coordinates"], witness["values"]
    assert len(set(steps)) == 4
    assert steps[0] ^ steps[1] ^ steps[2] ^ steps[3] == 0
    assert coordinates == tuple(start + x for x in steps)
    at = dict.fromkeys(layout.in_dims, 0)
    assert values == tuple(layout.apply(at | {"row": coordinate}) for coordinate in coordinates)
    assert any(values[0][axis] ^ values[1][axis] ^ values[2][axis] ^ values[3][axis] for axis in layout.out_dims)


def registers(sources: Sequence[int]) -> LinearLayout:
    """The map of registers whose bit i is bit ``sources[i]`` of three."""
    return LinearLayout((("register", len(sources)),), (("register", 3),), tuple(1 << k for k in sources))


@CASES
@given(st.data())
def test_permutation_for_divide_is_complete(data: st.DataObject) -> None:
    layout = data.draw(layouts((("register", 3), ("lane", 1)), (("offset", 3), ("row", 1))))
    tile = data.draw(
        layouts((("register", data.draw(st.integers(0, 2))),), (("offset", data.draw(st.integers(0, 2))),))
    )
    if data.draw(st.booleans()):
        tile = LinearLayout(tile.in_axes, tile.out_axes, tile.columns)
        shuffled = registers(data.draw(st.permutations(range(3))))
        others = (("register", 3 - tile.in_bits), ("lane", 1)), (("offset", 3 - tile.out_bits), ("row", 1))
        rest = data.draw(layouts(*others))
        layout = f2.map_in(tile * rest if data.draw(st.booleans()) else rest * tile, shuffled)
    for left, divide in ((True, f2.divide_left), (False, f2.divide_right)):

        def works(permutation: LinearLayout, divide: object = divide) -> bool:
            try:
                divide(f2.map_in(layout, permutation), tile)  # type: ignore[operator]
            except AdmissibilityError:
                return False
            return True

        possible = any(works(registers(sources)) for sources in itertools.permutations(range(3)))
        try:
            found = f2.permutation_for_divide(layout, tile, left=left)
        except AdmissibilityError as error:
            assert error.diagnostic.code == "LA256"
            assert not possible
        else:
            assert possible
            assert works(found)


@settings(max_examples=100, deadline=None)
@given(layouts(), layouts(), st.data())
def test_never_anything_but_a_layout_error(a: LinearLayout, b: LinearLayout, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*NAMES, *OUTS, "nowhere", 3, None]))
    size = data.draw(st.sampled_from([0, 1, 2, 3, 8, -4, True, 2.0, "4", 1 << 70]))
    calls = [
        lambda: a * b,
        lambda: a @ b,
        lambda: a.inverse(),
        lambda: f2.solve(a, b),
        lambda: f2.divide_left(a, b),
        lambda: f2.divide_right(a, b),
        lambda: f2.repetitions(a, b),
        lambda: f2.concat_ins(a, b),
        lambda: f2.concat_outs(a, b),
        lambda: f2.quotient(a, name),
        lambda: f2.is_identity_on(a, name),
        lambda: f2.sublayout(a, name, name),
        lambda: f2.resize_in(a, name, size),
        lambda: f2.broadcast_in(a, name, size),
        lambda: f2.resize_out(a, name, size),
        lambda: f2.mask_out(a, name, size),
        lambda: f2.zero_out(a, name, size),
        lambda: f2.remove_zero_bases(a, name),
        lambda: f2.ensure_not_larger(a, {name: size}),
        lambda: f2.ensure_not_smaller(a, {name: size}),
        lambda: f2.combine_cta_cga(a, b, {name: size}),
        lambda: f2.slice_in(a, name, size, size),
        lambda: f2.fix_in(a, {name: size}),
        lambda: f2.xor_in(a, {name: size}),
        lambda: f2.xor_out(a, {name: size}),
        lambda: f2.flip_in(a, name),
        lambda: f2.transpose_ins(a, name),
        lambda: f2.rename_outs(a, {name: name}),
        lambda: f2.squeeze_ins(a, name),
        lambda: f2.reshape_ins(a, {name: size}),
        lambda: f2.flatten_ins(a, name),
        lambda: f2.drop_broadcast(a, name),
        lambda: f2.permutation_for_divide(a, b),
        lambda: f2.largest_vectorisation(a, size, register=name),
        lambda: f2.additive_strides(a, name),
        lambda: f2.minimal_conversion(a, b),
        lambda: f2.preimages(a, size),
        lambda: f2.preimages(a, {name: size}),
        lambda: f2.right_inverse(a, name),
        lambda: f2.identity_1d(size, name, name),
        lambda: f2.strided_1d(2, size, name, name),
        lambda: f2.zeros_1d(size, name, name, size),
        lambda: f2.from_bases_minimal({name: [(size,)]}, ("o",), size),
        lambda: f2.from_bases_minimal(size, name),
        lambda: f2.map_in(a, b),
        lambda: f2.Subspace.spanned(size, [size]),
        lambda: f2.divide_left(a, size),
        lambda: f2.solve(size, a),
    ]
    for call in calls:
        try:
            result = call()
        except LayoutError as error:
            assert str(error)
        else:
            if isinstance(result, LinearLayout) and result.in_bits < 80:
                sound(result)


@CASES
@given(st.one_of(layouts(), layouts(inputs=(("lane", 3),), outputs=(("row", 3),)), layouts(onehot=True)))
def test_kinds_of_layouts_by_their_tables(layout):
    def ones(point: Point) -> tuple[int, ...]:
        """The places of the bits of an output point that are set."""
        return tuple(8 * k + bit for k, value in enumerate(point.values()) for bit in range(8) if value >> bit & 1)

    inputs = list(points(layout.in_dims))
    values = [ones(layout.apply(point)) for point in inputs]
    columns = [value for point, value in zip(inputs, values, strict=True) if len(ones(point)) == 1]
    straight, onto = not values[0], len(set(values)) == math.prod(layout.out_dims.values())
    used = [column for column in columns if column]
    spread = straight and onto and len(set(used)) == len(used) and max(map(len, columns), default=0) <= 1
    stored = straight and onto and len(set(values)) == len(values) and all(1 <= len(c) <= 2 for c in columns)
    assert bool(f2.is_distributed_layout(layout)) is spread
    assert bool(f2.is_memory_layout(layout)) is stored


def test_first_column_that_breaks_a_kind():
    twice = LinearLayout.from_bases({"lane": [(1,), (2,)], "register": [(2,)]}, {"x": 4})
    assert f2.is_distributed_layout(twice).witness["equals"] == "lane[1]"
    assert f2.is_distributed_layout(twice).witness["axis"] == "register"
    assert f2.is_memory_layout(LinearLayout.from_bases({"offset": [(3,), (0,)]}, {"x": 4})).witness["bit"] == 1
