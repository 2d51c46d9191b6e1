"""Problems made of layouts: the layout in every family gives the problem of the JSON digits, and the same plan.

The judge is enumeration in plain Python: the addresses of a problem are those of the digits, one element at a time.
"""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.digits import merge
from layoutalg.hierarchy import Box
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.proofs.wgmma import OperandProblem, requested_addresses
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.testing.problems import random_problem

XORS = {
    "NONE": [], "32B": [(4, 7)], "64B": [(4, 7), (5, 8)], "128B": [(4, 7), (5, 8), (6, 9)],
    "128B_ATOM_32B": [(5, 7), (6, 8)], "128B_ATOM_32B_FLIP_8B": [(5, 7), (6, 8), (3, 7)], "128B_ATOM_64B": [(6, 7)],
}  # fmt: skip
ELEMENT_SWIZZLES = {"32B": (1, 4, 3), "64B": (2, 4, 3), "128B": (3, 4, 3), "128B_ATOM_32B": (2, 5, 2)}
WIDTHS = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}


def xored(name: str, address: int) -> int:
    for target, source in XORS[name]:
        address ^= (address >> source & 1) << target
    return address


def listed(modes, swizzle: str, width: int, base: int = 0) -> list[int]:
    """The byte address of every element, last dimension fastest, digit by digit."""
    axes = []
    for digits in modes:
        axis = []
        for t in range(math.prod(extent for extent, _ in digits)):
            offset = 0
            for extent, stride in digits:
                t, digit = divmod(t, extent)
                offset += digit * stride
            axis.append(offset)
        axes.append(axis)
    return [xored(swizzle, width * (base + sum(parts))) for parts in itertools.product(*axes)]


def random_digits(rng: random.Random, powers: bool):
    """A tile of 1 to 5 dimensions whose digits lie in random order in shared memory, sometimes with gaps."""
    rank = rng.randint(1, 5)
    tile = [rng.choice((1, 2, 4, 8, 16, 32) if powers else (1, 2, 3, 4, 5, 6, 8, 12)) for _ in range(rank)]
    while math.prod(tile) > 2048:
        tile[rng.randrange(rank)] = 2
    pieces = []
    for dim, extent in enumerate(tile):
        while extent > 1:
            part = rng.choice([p for p in range(2, extent + 1) if extent % p == 0])
            part = part if rng.random() < 0.4 else extent
            pieces.append([dim, part, 0])
            extent //= part
    stride = 1
    for piece in sorted(pieces, key=lambda piece: (piece[0] != rank - 1, rng.random())):
        piece[2] = stride
        stride *= piece[1]
        if rng.random() < 0.15:
            stride *= 2 if powers else rng.choice((2, 3))
    modes = []
    for dim in range(rank):
        digits: list[tuple[int, int]] = []
        for _, extent, step in (piece for piece in pieces if piece[0] == dim):
            if digits and step == digits[-1][0] * digits[-1][1]:
                digits[-1] = (digits[-1][0] * extent, digits[-1][1])
            else:
                digits.append((extent, step))
        modes.append(tuple(digits))
    return tuple(tile), tuple(modes)


def document(rng, tile, modes, swizzle, dtype):
    shape = [extent * rng.randint(1, 4) for extent in tile]
    stride, step = [], 1
    for extent in reversed(shape):
        stride.insert(0, step)
        step *= extent
    return {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": rng.choice(("load", "store")),
        "global": {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": 256}, "tile": list(tile),
        "smem": {"modes": [[list(pair) for pair in digits] for digits in modes], "swizzle": swizzle},
    }  # fmt: skip


def nested(numbers, empty: int):
    return tuple(numbers) if len(numbers) > 1 else numbers[0] if numbers else empty


def as_cute(modes, swizzle: str, width: int):
    """The digits as a CuTe layout, the swizzle on elements; None where CuTe's one swizzle does not hold it."""
    shape = tuple(nested([extent for extent, _ in digits], 1) for digits in modes)
    stride = tuple(nested([step for _, step in digits], 0) for digits in modes)
    layout = la.CuteLayout(shape, stride)
    if swizzle == "NONE":
        return layout
    if swizzle not in ELEMENT_SWIZZLES:
        return None
    return la.ComposedLayout(la.Swizzle(*ELEMENT_SWIZZLES[swizzle], "byte").recast_elements(width), 0, layout)


def is_affine(table):
    """Whether a table over bits is a constant xor a column of each set bit."""
    points = np.arange(len(table))
    images = np.full(len(table), table[0])
    for bit in range(len(table).bit_length() - 1):
        images ^= np.where(points >> bit & 1, table[1 << bit] ^ table[0], 0)
    return bool((images == table).all())


def in_other_families(rng, tile, layout):
    """(family, the same function in it, axes)"""
    names = [f"dim{k}" for k in range(len(tile))]
    table = layout.table()
    if all(extent & (extent - 1) == 0 for extent in tile) and is_affine(table):
        flat = la.convert.to_linear(layout)
        yield "flat linear", flat, None
        order = rng.sample(range(len(tile)), len(tile))
        columns, images = iter(flat.columns), {}
        for name, extent in zip(names, tile, strict=True):
            images[name] = [(next(columns),) for _ in range(extent.bit_length() - 1)]
        named = la.LinearLayout.from_bases({names[k]: images[names[k]] for k in order}, flat.out_dims)
        yield "named linear", named, None
        letters = la.LinearLayout.from_bases({"xyzvw"[k]: images[names[k]] for k in order}, flat.out_dims)
        yield "linear by axes=", letters, tuple("xyzvw"[: len(tile)])
        if len(set(table.tolist())) == len(table) == table.max() + 1:
            yield "offset to coordinates", named.inverse(), None
    if isinstance(layout, la.CuteLayout) and all(not isinstance(mode, tuple) for mode in layout.shape):
        order = rng.sample(range(len(tile)), len(tile))
        yield (
            "integer",
            la.IntegerLayout.from_strides({names[k]: tile[k] for k in order}, [layout.stride[k] for k in order]),
            None,
        )
    if layout.size <= 512:
        yield "piecewise", la.convert.to_piecewise(layout), None
    if len(set(table.tolist())) == len(table) == table.max() + 1:
        yield (
            "hierarchical",
            la.HierarchicalLayout(
                Box(tuple(zip(names, tile, strict=True))), Box.of(offset=layout.size), table_map(table)
            ),
            None,
        )
    yield "text", str(layout), None


def table_map(table):
    from layoutalg.hierarchy.bijection import TableMap

    return TableMap(tuple(table.tolist()))


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_every_family_gives_the_problem_of_the_digits(rng):
    dtype = rng.choice(list(WIDTHS))
    width, swizzle = WIDTHS[dtype], rng.choice(["NONE", "32B", "64B", "128B", "128B_ATOM_32B"])
    tile, modes = random_digits(rng, powers=rng.random() < 0.6)
    stated = document(rng, tile, modes, swizzle, dtype)
    problem = TensorMapProblem.from_json(stated)
    wanted = listed(modes, swizzle, width)
    assert problem.addresses().reshape(-1).tolist() == wanted
    tensor = la.Tensor(stated["global"]["shape"], stated["global"]["stride"], dtype)
    options = {"arch": "sm_90a", "direction": stated["direction"]}
    layout = as_cute(modes, swizzle, width)
    made = TensorMapProblem.of(tensor, tile, layout, **options)
    assert made == problem
    plain = as_cute(modes, "NONE", width)
    assert TensorMapProblem.of(tensor, tile, plain, swizzle=swizzle, **options) == problem
    for family, value, axes in in_other_families(rng, tile, layout):
        found = TensorMapProblem.of(tensor, tile, value, axes=axes, **options)
        assert found.addresses().reshape(-1).tolist() == wanted, family
        if found.swizzle == swizzle:
            assert found == problem, family
        else:  # a tile that the swizzle only moves: the same function by other digits
            assert family != "text"


@pytest.mark.parametrize("seed", range(25))
def test_both_roads_give_the_same_plan(seed):
    rng = random.Random(1000 + seed)
    tile = [rng.choice((8, 16, 64)), 64] if seed % 2 else [2, 8, 32]
    swizzle = rng.choice(("NONE", "64B", "128B")) if seed % 2 else rng.choice(("NONE", "64B"))
    modes, step = [], 1
    for extent in reversed(tile):
        modes.insert(0, ((extent, step),))
        step *= extent
    stated = document(rng, tile, modes, swizzle, "bf16")
    layout = as_cute(modes, swizzle, 2)
    tensor = la.Tensor(stated["global"]["shape"], stated["global"]["stride"], "bf16")
    try:
        plan = synthesize_tensormap(stated)
    except InadmissibleError as error:
        with pytest.raises(InadmissibleError) as caught:
            la.tensormap(tensor, tile, layout, direction=stated["direction"])
        assert caught.value.to_json() == error.to_json()
        return
    for value in (layout, la.convert.to_linear(layout), str(layout)):
        found = la.tensormap(tensor, tile, value, direction=stated["direction"])
        assert found == plan
        assert found.to_json() == plan.to_json()


@pytest.mark.parametrize("seed", range(150))
def test_random_problems_come_back_through_their_layouts(seed):
    """Every field of the statement, any tile of ranks 1 to 5: the problem, and what is planned or refused."""
    rng = random.Random(seed)
    stated = TensorMapProblem.from_json(random_problem(rng))
    modes = tuple(merge(digits) for digits in stated.smem_modes)
    problem = stated.with_changes(smem_modes=modes)
    layout = as_cute(modes, problem.swizzle, problem.element_bytes)
    swizzle = None
    if layout is None:
        layout, swizzle = as_cute(modes, "NONE", problem.element_bytes), problem.swizzle
    tensor = la.Tensor(problem.global_shape, problem.global_strides, problem.dtype, problem.base_align_bytes)
    options = {
        name: getattr(problem, name)
        for name in (
            "arch",
            "direction",
            "base_elem_offset",
            "bounds",
            "element_strides",
            "oob_fill",
            "origin_multiple",
        )
    }
    wanted = listed(modes, problem.swizzle, problem.element_bytes)
    for value in (layout, str(layout)):
        found = TensorMapProblem.of(
            tensor, problem.tile, value, swizzle=swizzle, oob_required=problem.oob_required, **options
        )
        assert found == problem
    assert found.addresses().reshape(-1).tolist() == wanted
    if seed % 3 == 0:
        assert planned(found) == planned(problem.to_json())
        piecewise = TensorMapProblem.of(
            tensor, problem.tile, la.convert.to_piecewise(layout), swizzle=swizzle, **options
        )
        assert piecewise.addresses().reshape(-1).tolist() == wanted


def planned(problem):
    try:
        return synthesize_tensormap(problem, repair=False).to_json()
    except InadmissibleError as error:
        return error.to_json()


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_any_function_is_digits_behind_a_swizzle_or_refused(rng):
    """Random F2 maps of small tiles: accepted exactly where some swizzle's digits make the table."""
    bits = [rng.randint(0, 3), rng.randint(1, 3)]
    near = rng.random() < 0.6
    columns = []
    for bit in rng.sample(range(7), sum(bits)):
        column = 1 << bit
        if near:
            address = xored(rng.choice(["32B", "64B", "128B"]), 16 * column)
            column = address // 16
        elif rng.random() < 0.3:
            column ^= rng.randrange(128)
        columns.append(column)
    images = {"dim0": [(c,) for c in columns[: bits[0]]], "dim1": [(c,) for c in columns[bits[0] :]]}
    layout = la.LinearLayout.from_bases(images, {"offset": 128})
    tile = (1 << bits[0], 1 << bits[1])
    table = layout.table().reshape(tile, order="F")
    possible = [name for name in XORS if separable(table, name)]
    try:
        problem = TensorMapProblem.of(((64, 64), None, "f64"), tile, layout)
    except la.RepresentabilityError as error:
        assert not possible
        assert error.diagnostic.code == "LA377"
        return
    assert problem.swizzle == possible[0]
    assert (problem.addresses() == 8 * table).all()


def separable(table, name: str) -> bool:
    """Whether the swizzle undone leaves a sum of one strided function per dimension, by looking at every element."""
    rows, columns = table.shape
    lines = [[xored(name, 8 * int(value)) for value in row] for row in table]
    if lines[0][0] or any(lines[r][c] != lines[r][0] + lines[0][c] for r in range(rows) for c in range(columns)):
        return False
    for axis in ([row[0] for row in lines], lines[0]):
        for bit in range((len(axis) - 1).bit_length()):  # of 2^n entries: bit by bit, steps of one size, forwards
            if axis[1 << bit] < 0 or any(axis[i | 1 << bit] != axis[i] + axis[1 << bit] for i in range(1 << bit)):
                return False
    return True


@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_operands_of_layouts_want_the_layout_s_addresses(rng):
    swizzle = rng.choice(("NONE", "32B", "64B", "128B"))
    rows, k = rng.choice((64, 128)), rng.choice((16, 32, 64))
    modes = (((rows, 64),), ((k, 1),)) if rng.random() < 0.5 else (((64, 1), (rows // 64, 64 * k)), ((k, 64),))
    modes = tuple(tuple((e, s) for e, s in digits if e > 1) for digits in modes)
    layout = as_cute(modes, swizzle, 2)
    base = rng.choice((0, 0, 64, 512))
    if base and isinstance(layout, la.ComposedLayout):
        layout = la.ComposedLayout(layout.stages[0][0], base, layout.base)
    elif base:
        layout = la.ComposedLayout(la.Swizzle(0, 0, 0), base, layout)
    operand = rng.choice(("A", "B"))
    problem = OperandProblem.of(operand, rng.choice(("f16", "bf16")), layout)
    assert problem.shape == (rows, k)
    assert problem.smem_base_bytes == 2 * base
    assert (problem.smem_modes, problem.swizzle) == (modes, swizzle)
    wanted = np.asarray(listed(modes, swizzle, 2, base)).reshape(rows, k)
    assert (requested_addresses(problem) == wanted).all()
    try:
        other = la.convert.to_linear(layout)
    except la.RepresentabilityError:  # a base that carries
        other = la.convert.to_piecewise(layout)
    found = OperandProblem.of(operand, problem.dtype, other, tile=(rows, k))
    assert (requested_addresses(found) == wanted).all()
