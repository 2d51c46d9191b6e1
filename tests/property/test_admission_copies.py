"""cp.async of tiles: both sides, sizes and zero fill, against copies made element by element."""

from __future__ import annotations

import random

import numpy as np
import pytest

import layoutalg as la

SIZES = {"u8": 1, "f16": 2, "f32": 4}


def expected(shared, source, size, width, bounds):
    """By enumeration: along some dimension every run of the tile is one aligned run on both sides."""
    if len(np.unique(shared)) != shared.size:
        return False
    for turned in (False, True):
        one, other = (shared.T, source.T) if turned else (shared, source)
        limits = bounds[::-1] if turned else bounds
        run = width // size
        if not run or one.shape[1] % run or one.size // run % 32:
            continue
        good = True
        for row in range(one.shape[0]):
            for start in range(0, one.shape[1], run):
                for table in (one, other):
                    held = [int(table[row, start + step]) * size for step in range(run)]
                    good &= held[0] % width == 0 and held == list(range(held[0], held[0] + width, size))
                inside = [row < limits[0] and start + step < limits[1] for step in range(run)]
                good &= inside == sorted(inside, reverse=True)
        if good:
            return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_decided_as_by_enumeration_and_move_every_byte(seed):
    rng = random.Random(seed)
    admitted = 0
    for _ in range(40):
        dtype = rng.choice(list(SIZES))
        size, width = SIZES[dtype], rng.choice([4, 8, 16])
        rows, columns = rng.choice([16, 32]), rng.choice([32, 64])
        pads = [rng.choice([0, 16, 8, 4, 1]) if rng.random() < 0.4 else 0 for _ in range(2)]
        shapes = [(columns + pad, 1) if rng.random() < 0.8 else (1, rows + pad) for pad in pads]
        bounds = (rng.choice([rows, rows - 3]), rng.choice([columns, columns - 5]))
        layouts = [la.CuteLayout((rows, columns), strides) for strides in shapes]
        name = f"cp.async.{'cg' if width == 16 else 'ca'}.{width}"
        answer = la.admissible(layouts[0], name, dtype=dtype, **{"global": layouts[1], "bounds": bounds})
        tables = [np.asarray(layout.table()).reshape((rows, columns), order="F") for layout in layouts]
        assert bool(answer) == expected(*tables, size, width, bounds), (answer, layouts)
        if not answer:
            assert answer.rules[0].startswith(("ACCESS_", "ASYNC_"))
            continue
        admitted += 1
        assert answer.certificate.check()
        plan = answer.descriptor
        memory = np.random.default_rng(seed).integers(1, 256, (int(tables[1].max()) + 1) * size)
        image = np.zeros((int(tables[0].max()) + 1) * size, dtype=np.int64)
        places = zip(
            plan.addresses.table().tolist(), plan.global_bytes.table().tolist(), plan.source_bytes, strict=True
        )
        for to, start, count in places:
            image[to : to + width] = 0
            image[to : to + count] = memory[start : start + count]
        for row in range(rows):
            for column in range(columns):
                for byte in range(size):
                    inside = row < bounds[0] and column < bounds[1]
                    wanted = int(memory[int(tables[1][row, column]) * size + byte]) if inside else 0
                    assert image[int(tables[0][row, column]) * size + byte] == wanted
    assert admitted > 3


def test_the_widest_size_and_the_repairs():
    assert la.admissible("(32,64):(64,1)", "cp.async", dtype="f16").descriptor.instruction == "cp.async.cg.16"
    four = {"global": "(32,64):(66,1)"}
    assert la.admissible("(32,64):(64,1)", "cp.async", dtype="f16", **four).descriptor.instruction == "cp.async.ca.4"
    answer = la.admissible("(32,64):(64,1)", "cp.async.cg.16", dtype="f16", **four)
    assert answer.rules == ("ASYNC_GLOBAL",)
    assert answer.repairs[0].detail == "cp.async.ca.4"
    assert la.admissible("(32,64):(64,1)", "cp.async", "gfx942", "f16").rules
