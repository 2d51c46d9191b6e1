"""Thread-value partitions against their definition, element by element."""

from __future__ import annotations

import itertools

import pytest

import layoutalg as la
from layoutalg.cute import CopyAtom, CuteLayout, TiledCopy, make_layout_tv, make_tiled_copy
from layoutalg.targets.layouts.nvidia import ldmatrix_fragment, ldmatrix_rows

PAIRS = [
    ("(4,8):(8,1)", "(2,2):(2,1)"), ("(4,8):(8,1)", "(1,4):(0,1)"), ("(32,1):(1,0)", "(1,8):(0,1)"),
    ("(3,4):(4,1)", "(2,1):(1,0)"), ("(8,4):(1,8)", "(3,2):(1,3)"), ("(16,2):(2,1)", "(4,4):(1,4)"),
]  # fmt: skip


@pytest.mark.parametrize(("threads", "values"), PAIRS)
def test_the_tile_is_shared_out_as_the_two_layouts_say(threads: str, values: str) -> None:
    owner, number = la.parse(threads), la.parse(values)
    tile, tv = make_layout_tv(owner, number)
    sizes = [[mode.size for mode in layout] for layout in (owner, number)]
    assert tile == tuple(t * v for t, v in zip(*sizes, strict=True))
    for t0, t1, v0, v1 in itertools.product(*(range(size) for size in sizes[0] + sizes[1])):
        place = (v0 + sizes[1][0] * t0) + tile[0] * (v1 + sizes[1][1] * t1)
        assert tv(owner(t0, t1), number(v0, v1)) == place


@pytest.mark.parametrize(("threads", "values"), PAIRS)
@pytest.mark.parametrize("swizzle", ["", "Sw<2,1,3> o 4 o "])
def test_partitions_are_the_values_of_the_thread_in_every_tile(threads: str, values: str, swizzle: str) -> None:
    copy = make_tiled_copy(la.parse(threads), la.parse(values))
    rows, columns = copy.tiler
    tensor = la.parse(f"{swizzle}({2 * rows},{3 * columns}):({3 * columns + 1},1)")
    whole = copy.tidfrg_S(tensor)
    seen = []
    for thread in range(copy.threads):
        part = copy.partition_S(tensor, thread)
        assert part.table().tolist() == copy.partition_D(tensor, thread).table().tolist()
        for value, i, j in itertools.product(range(copy.layout_tv[1].size), range(2), range(3)):
            place = copy.layout_tv(thread, value)
            at = tensor(place % rows + rows * i, place // rows + columns * j)
            assert part(value, i, j) == at
            assert whole(thread, value, i + 2 * j) == at
            seen.append(at)
    assert sorted(seen) == sorted(tensor.table().tolist())


def test_a_vector_keeps_its_values_together() -> None:
    copy = make_tiled_copy(la.parse("(4,8):(8,1)"), la.parse("(1,8):(0,1)"), CopyAtom.vector(4))
    part = copy.partition_S(CuteLayout((4, 64), (64, 1)), 3)
    assert str(part) == "24 + ((4,2),1,1):((1,4),0,0)"
    with pytest.raises(la.LayoutError):
        make_tiled_copy(la.parse("(4,8):(8,1)"), la.parse("(1,6):(0,1)"), CopyAtom.vector(4))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_the_atoms_of_ldmatrix_are_the_fragments_of_the_instruction(matrices: int, transposed: bool) -> None:
    atom = CopyAtom.ldmatrix(matrices, transposed)
    fragment, rows = ldmatrix_fragment(matrices, transposed=transposed), ldmatrix_rows(matrices)
    for lane, value in itertools.product(range(32), range(2 * matrices)):
        point = fragment(register=value, lane=lane)
        assert atom.destination(lane, value) == 64 * point["matrix"] + 8 * point["row"] + point["col"]
    for lane, column in itertools.product(range(8 * matrices), range(8)):
        point = rows(lane=lane)
        assert atom.source(lane, column) == 64 * point["matrix"] + 8 * point["row"] + column


def test_a_lane_of_ldmatrix_supplies_the_row_that_others_get() -> None:
    fragment = CuteLayout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))  # mma.sync operand A of 16 x 16
    copy = TiledCopy(fragment, (16, 16), CopyAtom.ldmatrix(4))
    tensor = la.parse("Sw<3,3,3> o 0 o (32,64):(64,1)")
    for lane in range(32):
        got = copy.partition_D(tensor, lane)
        supplied = copy.partition_S(tensor, lane)
        for i, j in itertools.product(range(2), range(4)):
            for value in range(8):
                place = fragment(lane, value)
                assert got(value, i, j) == tensor(place % 16 + 16 * i, place // 16 + 16 * j)
                row, column = lane % 16, 8 * (lane // 16)
                assert supplied(value, i, j) == tensor(row + 16 * i, column + value + 16 * j)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_layout_tv(CuteLayout((4, 8), (8, 0)), CuteLayout((1, 1))),
        lambda: make_layout_tv(CuteLayout((4, 8), (16, 1)), CuteLayout((1, 1))),
        lambda: TiledCopy(CuteLayout(32), (32,), CopyAtom.vector()),
        lambda: TiledCopy(CuteLayout((32, 4)), (32, 4), 4),
        lambda: CopyAtom(CuteLayout((1, 4)), CuteLayout((1, 4), (0, 2))),
        lambda: CopyAtom(CuteLayout(4), CuteLayout((1, 4))),
        lambda: CopyAtom.ldmatrix(3),
        lambda: CopyAtom.vector(0),
        lambda: make_tiled_copy(CuteLayout((4, 8)), CuteLayout((1, 4))).partition_S(CuteLayout((8, 32)), 32),
        lambda: make_tiled_copy(CuteLayout((4, 8)), CuteLayout((1, 4))).partition_S(CuteLayout((7, 32)), 0),
    ],
)
def test_what_is_no_tiled_copy_is_refused(make) -> None:
    with pytest.raises(la.LayoutError):
        make()
