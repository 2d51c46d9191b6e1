"""Scale factors and AMD's shared memory against enumeration: a wave holds the scales of what it multiplies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import LayoutError
from layoutalg.targets.layouts import amd, blocked, nvidia, padding, scales, shared, tmem

EXAMPLES = settings(max_examples=12, deadline=None)


def coordinates(layout):
    """Return {axis or dimension: int64 array} over the whole domain."""
    value, index = layout.table(), np.arange(layout.size)
    found = {}
    for name, size in layout.in_dims.items():
        found[name], index = index % size, index // size
    for name, size in layout.out_dims.items():
        found[name], value = value % size, value // size
    return found


def held(layout, axes):
    """Return who holds what: the distinct rows (axes..., coordinates...), sorted."""
    found = coordinates(layout)
    return np.unique(np.stack([found[name] for name in (*axes, *layout.out_dims)], axis=1), axis=0)


def needed(operand, name, group, axes):
    """Return who needs which scale of the operand: the distinct rows (axes..., row of A or column of B, group of k)."""
    found = coordinates(operand)
    outer, inner = ("dim1", "dim0") if name == "B" else ("dim0", "dim1")
    columns = [*(found[axis] for axis in axes), found[outer], found[inner] // group]
    return np.unique(np.stack(columns, axis=1), axis=0)


@st.composite
def boxes(draw, bits):
    first = draw(st.integers(0, bits))
    return (1 << first, 1 << draw(st.integers(0, bits - first)))


OPERAND = st.sampled_from("AB")


@EXAMPLES
@given(
    operand=OPERAND,
    rows=st.sampled_from([16, 32]),
    m=st.integers(4, 6),
    k=st.integers(5, 8),
    warps=boxes(3),
    tiles=boxes(1),
)
def test_mfma_lanes_hold_the_scales_of_their_own_elements(operand, rows, m, k, warps, tiles):
    # 4-bit operands: a lane's 32 neighbours along k are one group
    shape = (1 << m, 1 << k) if operand == "A" else (1 << k, 1 << m)
    elements = amd.mfma_operand(operand, shape, (rows, rows), warps, 32, tiles)
    layout = scales.mfma_scale(operand, (1 << m, 1 << (k - 5)), (rows, rows), warps, tiles)
    assert layout.is_surjective
    axes = ("lane", "warp")
    assert np.array_equal(held(layout, axes), needed(elements, operand, 32, axes))


@EXAMPLES
@given(
    operand=OPERAND,
    tile=st.sampled_from([(16, 16), (32, 16)]),
    transposed=st.booleans(),
    group=st.sampled_from([16, 32]),
    m=st.integers(4, 6),
    k=st.integers(7, 8),
    warps=boxes(2),
    registers=boxes(1),
    blocks=boxes(1),
)
def test_wmma_waves_hold_the_scales_they_need(operand, tile, transposed, group, m, k, warps, registers, blocks):
    level = blocked.cluster_bases((registers[0] * warps[0], registers[1] * warps[1]))
    count = registers[0].bit_length() + registers[1].bit_length() - 2
    waves = {"register_bases": level[:count], "warp_bases": level[count:], "transposed": transposed}
    cluster = blocked.cluster_bases(blocks)
    shape = (1 << m, 1 << k) if operand == "A" else (1 << k, 1 << m)
    elements = amd.wmma_operand(operand, shape, 3, k_width=16, instruction=(*tile, 128), cga=cluster, **waves)
    layout = scales.wmma_scale(operand, (1 << m, (1 << k) // group), scale_group=group, tile=tile, cga=cluster, **waves)
    assert layout.is_surjective
    axes = ("warp", "block")
    assert np.array_equal(held(layout, axes), needed(elements, operand, group, axes))
    # lanes 0..15 alone hold the scales of the first 16 rows
    found = coordinates(layout)
    assert set(range(16)) <= set(found["dim0"][found["lane"] < 16].tolist())


@EXAMPLES
@given(operand=OPERAND, m=st.integers(4, 7), k=st.integers(5, 8), warps=boxes(3))
def test_mma_warps_hold_the_scales_they_need(operand, m, k, warps):
    shape = (1 << m, 1 << k) if operand == "A" else (1 << k, 1 << m)
    elements = nvidia.mma_operand(operand, shape, warps, 4)
    layout = scales.mma_scale(operand, (1 << m, 1 << (k - 5)), warps)
    assert layout.is_surjective
    assert np.array_equal(held(layout, ("warp",)), needed(elements, operand, 32, ("warp",)))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("tile", [(16, 16), (32, 16)])
@settings(max_examples=4, deadline=None)
@given(m=st.integers(5, 6), n=st.integers(5, 6), warps=boxes(2))
def test_wmma_waves_hold_what_their_results_need(tile, transposed, m, n, warps):
    waves = blocked.cluster_bases(warps)
    k, shape = 128, (1 << m, 1 << n)
    result = held(amd.wmma_accumulator(shape, 3, waves, (), transposed, tile), ("warp",))
    instruction = (*tile, 128)
    a = held(amd.wmma_operand("A", (shape[0], k), 3, waves, 16, (), instruction, transposed=transposed), ("warp",))
    b = held(amd.wmma_operand("B", (k, shape[1]), 3, waves, 16, (), instruction, transposed=transposed), ("warp",))
    for warp in np.unique(result[:, 0]):
        rows, columns = (np.unique(result[result[:, 0] == warp][:, index]) for index in (1, 2))
        for operand, index, needs in ((a, 1, rows), (b, 2, columns)):
            mine = operand[operand[:, 0] == warp]
            assert np.array_equal(np.unique(mine[:, index]), needs)
            assert len(mine) == k * len(needs)


@EXAMPLES
@given(m=st.integers(4, 9), k=st.integers(0, 5), warps=st.sampled_from([4, 8, 16]))
def test_every_quarter_of_tensor_memory_holds_every_scale(m, k, warps):
    memory = scales.tensor_memory_scales((1 << m, 1 << k))
    found = coordinates(memory)
    for quarter in range(4):
        here = found["row"] // 32 == quarter
        assert len(np.unique(found["dim0"][here] + (found["dim1"][here] << m))) == 1 << (m + k)
    for atom in tmem.ATOMS:
        try:
            registers = tmem.tmem_registers(memory, atom, warps, 8)
        except LayoutError:
            continue
        assert registers.is_surjective


@EXAMPLES
@given(data=st.data(), rank=st.integers(1, 3))
def test_padding_keeps_elements_apart_in_any_arrangement(data, rank):
    sizes = tuple(1 << data.draw(st.integers(0, 3)) for _ in range(rank))
    steps = [tuple(1 << b if d == dim else 0 for d in range(rank)) for dim in range(rank) for b in range(4)]
    steps = [step for step in steps if all(part < size for part, size in zip(step, sizes, strict=True))]
    images = []
    for index, step in enumerate(steps):
        for other in steps[:index]:
            if data.draw(st.booleans()):
                step = tuple(x ^ y for x, y in zip(step, other, strict=True))
        if any(part & (part - 1) for part in step):
            step = steps[index]
        images.append(step)
    pairs = [(1 << i, 1 << data.draw(st.integers(0, 4))) for i in data.draw(st.lists(st.integers(0, 5), unique=True))]
    padded = padding.padded_shared(sizes, pairs, offset_bases=data.draw(st.permutations(images)))
    owner = {}
    for offset, address in enumerate(padded.addresses().tolist()):
        owner[address] = tuple(padded.linear(offset=offset, block=0).values())
    count = padded.linear.in_dims["offset"]
    assert len(owner) == len(set(owner.values())) == count
    assert padded.cosize == max(owner) + 1


@EXAMPLES
@given(
    bits=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    partitions=st.integers(1, 2),
    groups=st.integers(0, 2),
    data=st.data(),
)
def test_partitions_divide_the_tensor_evenly(bits, partitions, groups, data):
    rank = len(bits)
    sizes = tuple(1 << bit for bit in bits)
    piece = shared.rotating_shared(sizes, 1, 1, 2, tuple(data.draw(st.permutations(range(rank)))))
    dim = data.draw(st.integers(0, rank - 1))
    layout = shared.partitioned_shared(piece, 1 << partitions, 1 << groups, dim)
    assert layout.is_invertible
    found = coordinates(layout)
    assert np.array_equal(found[f"dim{dim}"] // sizes[dim] % (1 << partitions), found["partition"])
