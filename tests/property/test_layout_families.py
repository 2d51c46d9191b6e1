"""Layout families against enumeration: who holds which element, what a product needs, where padding puts things."""

from contextlib import suppress
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.interop import triton as interop
from layoutalg.notation.triton import SHARED_AXES, THREAD_AXES
from layoutalg.targets.layouts import amd, blocked, nvidia, padding, scales, shared, tmem

EXAMPLES = settings(max_examples=40, deadline=None)


def held(layout, axes=("lane", "warp", "block")):
    """Return {(lane, warp, block): list of coordinates, one per register}."""
    names = [name for name, _ in layout.in_axes]
    found = {}
    sizes = layout.out_dims
    for index, value in enumerate(layout.table().tolist()):
        coords, rest = {}, index
        for name in names:
            coords[name], rest = rest % layout.in_dims[name], rest // layout.in_dims[name]
        point = []
        for size in sizes.values():
            point.append(value % size)
            value //= size
        found.setdefault(tuple(coords[axis] for axis in axes), []).append(tuple(point))
    return found


def digits(index, sizes, order):
    """Return the coordinates of a flat index in a box, ``order[0]`` fastest."""
    found = [0] * len(sizes)
    for dim in order:
        found[dim], index = index % sizes[dim], index // sizes[dim]
    return found


@st.composite
def boxes(draw, rank, bits):
    parts = [0] * rank
    for _ in range(draw(st.integers(0, bits))):
        parts[draw(st.integers(0, rank - 1))] += 1
    return tuple(1 << part for part in parts)


@st.composite
def clusters(draw, rank):
    blocks = draw(boxes(rank, 3))
    split = tuple(1 << draw(st.integers(0, size.bit_length() - 1)) for size in blocks)
    order = tuple(draw(st.permutations(range(rank))))
    return blocks, split, order


@st.composite
def blocked_arguments(draw):
    rank = draw(st.integers(1, 3))
    return (
        draw(boxes(rank, 3)),
        draw(boxes(rank, 5)),
        draw(boxes(rank, 2)),
        tuple(draw(st.permutations(range(rank)))),
        tuple(1 << draw(st.integers(0, 4 if rank > 1 else 7)) for _ in range(rank)),
    )


@EXAMPLES
@given(st.data())
def test_blocked_by_counting_elements(data):
    per_thread, lanes, warps, order, shape = data.draw(blocked_arguments())
    rank = len(shape)
    blocks, split, cga_order = data.draw(clusters(rank))
    # a cluster no tensor dimension can be divided by holds copies; keep to clusters that divide it
    split = tuple(min(parts, size) for parts, size in zip(split, shape, strict=True))
    layout = blocked.blocked(per_thread, lanes, warps, order, shape, blocked.cluster_bases(blocks, split, cga_order))
    part = [size // parts for size, parts in zip(shape, split, strict=True)]
    for (lane, warp, block), points in held(layout).items():
        t, w = digits(lane, lanes, order), digits(warp, warps, order)
        b = digits(block, blocks, cga_order)
        axes = []
        for dim in range(rank):
            tile = per_thread[dim] * lanes[dim] * warps[dim]
            base = per_thread[dim] * (t[dim] + lanes[dim] * w[dim])
            start = part[dim] * (b[dim] % split[dim])
            runs = max(1, part[dim] // tile)
            axes.append(
                {start + (e + base + tile * r) % part[dim] for e in range(per_thread[dim]) for r in range(runs)}
            )
        assert len(points) == prod(map(len, axes))
        assert set(points) == set(product(*axes))


@EXAMPLES
@given(st.data())
def test_slices_hold_the_projection(data):
    arguments = data.draw(blocked_arguments().filter(lambda a: len(a[4]) > 1))
    parent = blocked.blocked(*arguments)
    dim = data.draw(st.integers(0, len(arguments[4]) - 1))
    expected = held(parent)
    for where, points in held(blocked.slice_of(parent, dim)).items():
        assert len(points) == len(set(points))
        assert set(points) == {point[:dim] + point[dim + 1 :] for point in expected[where]}


PRODUCTS = {
    "mma": lambda m, n, k, warps: (
        nvidia.mma_accumulator((m, n), warps),
        nvidia.mma_operand("A", (m, k), warps, 2),
        nvidia.mma_operand("B", (k, n), warps, 2),
    ),
    "mma f64": lambda m, n, k, warps: (
        nvidia.mma_accumulator((m, n), warps, (8, 8)),
        nvidia.mma_operand("A", (m, k), warps, 1, (8, 8)),
        nvidia.mma_operand("B", (k, n), warps, 1, (8, 8)),
    ),
    "wgmma": lambda m, n, k, warps: (
        nvidia.wgmma_accumulator((m, n), (4, warps[1]), 16),
        nvidia.wgmma_operand("A", (m, k), (4, warps[1]), 2),
        None,
    ),
    "mfma 32": lambda m, n, k, warps: (
        amd.mfma_accumulator((m, n), (32, 32), warps),
        amd.mfma_operand("A", (m, k), (32, 32), warps, 4),
        amd.mfma_operand("B", (k, n), (32, 32), warps, 4),
    ),
    "mfma 16 tiles": lambda m, n, k, warps: (
        amd.mfma_accumulator((m, n), (16, 16), warps, True, tiles_per_warp=(2, 2)),
        amd.mfma_operand("A", (m, k), (16, 16), warps, 4, (2, 2)),
        amd.mfma_operand("B", (k, n), (16, 16), warps, 4, (2, 2)),
    ),
    "wmma 1": lambda m, n, k, warps: (
        amd.wmma_accumulator((m, n), 1, wave_bases(warps)),
        amd.wmma_operand("A", (m, k), 1, wave_bases(warps), 16),
        amd.wmma_operand("B", (k, n), 1, wave_bases(warps), 16),
    ),
    "wmma 2": lambda m, n, k, warps: (
        amd.wmma_accumulator((m, n), 2, wave_bases(warps)),
        amd.wmma_operand("A", (m, k), 2, wave_bases(warps), 8),
        amd.wmma_operand("B", (k, n), 2, wave_bases(warps), 8),
    ),
    "blocked": lambda m, n, k, warps: (
        blocked.blocked((2, 2), (8, 4), warps, (1, 0), (m, n)),
        blocked.blocked_operand("A", (2, 2), (8, 4), warps, (1, 0), (m, k)),
        blocked.blocked_operand("B", (2, 2), (8, 4), warps, (1, 0), (k, n)),
    ),
}


def wave_bases(warps):
    """Return wave bases of a box of waves, the last dimension fastest."""
    return blocked.cluster_bases(warps)


@pytest.mark.parametrize("name", PRODUCTS)
@settings(max_examples=6, deadline=None)
@given(m=st.integers(4, 6), n=st.integers(3, 6), k=st.integers(3, 5), warps=boxes(2, 3))
def test_every_warp_holds_what_its_results_need(name, m, n, k, warps):
    m, n, k = 1 << m, 1 << n, 1 << k
    result, a, b = PRODUCTS[name](m, n, k, warps)
    rows, columns = {}, {}
    for (warp,), points in held(result, ("warp",)).items():
        rows[warp] = {row for row, _ in points}
        columns[warp] = {column for _, column in points}
    assert result.is_surjective
    for operand, index, needed in ((a, 0, rows), (b, 1, columns)):
        if operand is None:
            continue
        assert operand.is_surjective
        for (warp,), points in held(operand, ("warp",)).items():
            every = range(k)
            expected = {(row, inner) if index == 0 else (inner, row) for row in needed[warp] for inner in every}
            assert set(points) == expected


@EXAMPLES
@given(
    rows=st.integers(0, 5),
    columns=st.integers(0, 6),
    vec=st.integers(0, 4),
    per_phase=st.integers(0, 3),
    max_phase=st.integers(0, 4),
    flipped=st.booleans(),
)
def test_swizzled_shared_by_its_formula(rows, columns, vec, per_phase, max_phase, flipped):
    height, width = 1 << rows, 1 << columns
    shape = (width, height) if flipped else (height, width)
    order = (0, 1) if flipped else (1, 0)
    layout = shared.swizzled_shared(shape, 1 << vec, 1 << per_phase, 1 << max_phase, order)
    assert layout.is_invertible
    for offset in range(height * width):
        row, place = offset // width, offset % width
        column = place ^ ((1 << vec) * ((row >> per_phase) % (1 << max_phase)) % width)
        point = (column, row) if flipped else (row, column)
        assert tuple(layout(offset=offset, block=0).values()) == point


@EXAMPLES
@given(
    swizzle=st.sampled_from([32, 64, 128]),
    bits=st.sampled_from([8, 16, 32, 64]),
    rows=st.integers(3, 9),
    columns=st.integers(0, 2),
)
def test_nvmma_shared_by_its_formula(swizzle, bits, rows, columns):
    width = 8 * swizzle // bits
    height, across = 1 << rows, width << columns
    layout = shared.nvmma_shared((height, across), swizzle, bits)
    chunk = 128 // bits
    for offset in range(0, height * across, 37):
        # one column of cores is filled box by box along the rows, then the next column
        within, block = offset % (width * height), offset // (width * height)
        place, row = within % width, within // width
        column = place ^ (chunk * ((row % 8) // (128 // swizzle)))
        assert layout(offset=offset, block=0) == {"dim0": row, "dim1": column + width * block}


@st.composite
def paddings(draw):
    intervals = draw(st.lists(st.integers(0, 6), unique=True, max_size=3))
    return tuple((1 << interval, 1 << draw(st.integers(0, 5))) for interval in intervals)


@EXAMPLES
@given(bits=st.integers(0, 7), pairs=paddings())
def test_padded_shared_by_laying_out_memory(bits, pairs):
    padded = padding.padded_shared((1 << bits,), pairs, order=(0,))
    memory = []
    for element in range(1 << bits):
        memory.append(element)
        for interval, extra in pairs:
            if (element + 1) % interval == 0:
                memory += [None] * extra
    expected = [memory.index(element) for element in range(1 << bits)]
    assert padded.addresses().tolist() == expected
    assert padded.to_piecewise().table().tolist() == expected
    assert padded.cosize == expected[-1] + 1
    linear = all(
        expected[x ^ y] == expected[x] ^ expected[y] for x in range(1 << bits) for y in (1 << b for b in range(bits))
    )
    try:
        layout = padded.to_linear()
    except RepresentabilityError as error:
        x, y = error.diagnostic.witness["x"], error.diagnostic.witness["y"]
        assert not linear
        assert expected[x ^ y] != expected[x] ^ expected[y]
    else:
        assert linear
        assert [layout(offset=offset, block=0)["address"] for offset in range(1 << bits)] == expected


@EXAMPLES
@given(
    rows=st.sampled_from([64, 128]),
    m=st.integers(0, 1),
    n=st.integers(2, 6),
    atom=st.sampled_from(sorted(tmem.ATOMS)),
    warps=st.sampled_from([4, 8, 16]),
    bits=st.sampled_from([8, 16, 32]),
    unpacked=st.booleans(),
)
def test_tensor_memory_registers_reach_every_element_from_the_right_quarter(rows, m, n, atom, warps, bits, unpacked):
    stride = 32 // bits if unpacked else 1
    memory = tmem.tensor_memory((rows << m, 1 << n), (rows, 1 << n), stride)
    try:
        layout = tmem.tmem_registers(memory, atom, warps, bits)
    except LayoutError:
        return
    assert layout.is_surjective
    quarter = {}
    for (row, _, _), points in held(memory, ("row", "col", "block")).items():
        quarter.setdefault(row // 32, set()).update(points)
    for (warp,), points in held(layout, ("warp",)).items():
        # hardware: warp w reaches rows 32 (w mod 4) to 32 (w mod 4) + 31
        assert set(points) <= quarter[warp % 4]


@st.composite
def surjective_layouts(draw):
    """Return random layouts onto dim0, ... that reach everything: a unit per output bit, mixed, plus copies."""
    rank = draw(st.integers(1, 3))
    bits = [draw(st.integers(1, 3)) for _ in range(rank)]
    units = [tuple(1 << b if d == dim else 0 for d in range(rank)) for dim in range(rank) for b in range(bits[dim])]
    images = []
    for index, unit in enumerate(units):
        image = unit
        for other in units[:index]:
            if draw(st.booleans()):
                image = tuple(x ^ y for x, y in zip(image, other, strict=True))
        images.append(image)
    images += [tuple([0] * rank)] * draw(st.integers(0, 2))
    images = draw(st.permutations(images))
    axes = draw(st.sampled_from([THREAD_AXES, SHARED_AXES]))
    bases = {axis: [] for axis in axes}
    for image in images:
        bases[draw(st.sampled_from(axes))].append(image)
    return LinearLayout.from_bases(bases, {f"dim{d}": 1 << b for d, b in enumerate(bits)})


@EXAMPLES
@given(surjective_layouts())
def test_texts_read_back(layout):
    slanted = [image for axis, vectors in layout.bases.items() if axis != "warp" for image in vectors]
    if "lane" in layout.bases and any(sum(map(bool, image)) > 1 for image in slanted):
        with pytest.raises(RepresentabilityError, match="moves in two dimensions"):
            interop.to_attribute(layout)
        return
    text = interop.to_attribute(layout)
    assert interop.from_attribute(text) == layout
    images = [image for vectors in layout.bases.values() for image in vectors if any(image)]
    steps = all(sum(part.bit_count() for part in image) == 1 for image in images) and len(set(images)) == len(images)
    assert text.startswith(
        "#ttg.shared_linear<" if "offset" in layout.bases else f"#ttg.{'' if steps else 'generic_'}linear<"
    )
    if steps or "offset" in layout.bases:
        assert interop.from_gluon(interop.to_gluon(layout)) == layout
    else:
        with pytest.raises(RepresentabilityError, match="generic_linear"):
            interop.to_gluon(layout)
    assert interop.from_bases(*interop.to_bases(layout)) == layout


@EXAMPLES
@given(st.text(alphabet="#tg.linershdo_f<{}>=[]0123,- abw", max_size=60))
def test_any_text_is_read_or_refused(text):
    for read in (interop.from_attribute, interop.from_gluon):
        for prefix in ("", "#ttg.linear<{", "SharedLinearLayout("):
            with suppress(LayoutError):
                assert isinstance(read(prefix + text), LinearLayout)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-3, 70),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-2, 65), st.none(), st.lists(st.integers(-1, 4), max_size=3)), max_size=4),
)


@EXAMPLES
@given(
    st.sampled_from(
        [
            (blocked.blocked, 6),
            (blocked.slice_of, 2),
            (nvidia.mma_accumulator, 4),
            (nvidia.mma_operand, 6),
            (nvidia.wgmma_accumulator, 4),
            (nvidia.ldmatrix_fragment, 3),
            (amd.mfma_accumulator, 7),
            (amd.wmma_operand, 8),
            (shared.swizzled_shared, 6),
            (shared.nvmma_shared, 6),
            (padding.padded_shared, 3),
            (tmem.tensor_memory, 5),
            (tmem.tmem_registers, 4),
            (blocked.cluster_bases, 3),
            (scales.mfma_scale, 5),
            (scales.wmma_scale, 8),
            (scales.mma_scale, 4),
            (scales.tensor_memory_scales, 2),
            (shared.rotating_shared, 6),
            (shared.partitioned_shared, 4),
            (shared.transposed_read, 2),
            (tmem.tmem_atom, 3),
        ]
    ),
    st.data(),
)
def test_any_argument_is_taken_or_refused(function, data):
    call, count = function
    arguments = [data.draw(ANYTHING) for _ in range(count)]
    try:
        call(*arguments)
    except LayoutError as error:
        assert error.diagnostic.code.startswith(("LA2", "LA7"))
