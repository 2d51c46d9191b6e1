"""AMD matrix instructions, entry by entry, against tables printed by AMD's matrix instruction calculator."""

import json
from pathlib import Path

import numpy as np
import pytest

from layoutalg.f2 import kernel_of
from layoutalg.targets.layouts import amd
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA, mfma_fragment, wmma_fragment

STORED = json.loads((Path(__file__).parents[1] / "data" / "amd_matrix_fragments.json").read_text())


def fragment(arch, name, operand):
    return (mfma_fragment if arch in MFMA else wmma_fragment)(name, operand, arch)


@pytest.mark.parametrize("operand", ["A", "B", "D"])
def test_every_entry_of_every_dense_instruction(operand):
    compared = 0
    for arch, name, which, table in STORED["cases"]:
        if which != operand:
            continue
        expected = np.array(STORED["tables"][table])
        layout = fragment(arch, name, operand)
        assert list(layout.in_dims) == ["register", "lane"]
        assert layout.table().reshape(expected.shape).tolist() == expected.tolist(), (arch, name)
        compared += 1
    assert compared == 76


def test_the_tables_cover_every_instruction_said_to_be_checked():
    stored = {(arch, name) for arch, name, _, _ in STORED["cases"]}
    claimed = {
        (arch, name)
        for table, archs in ((MFMA, ("gfx90a", "gfx942")), (WMMA, tuple(WMMA)))
        for arch in archs
        for name, shape in table[arch].items()
        if shape.evidence == "calculator"
    }
    assert stored == claimed
    shared = {name for name, shape in MFMA["gfx950"].items() if shape.evidence == "calculator"}
    assert shared <= set(MFMA["gfx942"])


def tensor_layout(arch, shape, operand):
    """Return the tensor layout of one tile of the instruction, from the families that grow tiles."""
    sizes = {"A": (shape.m, shape.k), "B": (shape.k, shape.n), "D": (shape.m, shape.n)}[operand]
    tile = (shape.m, shape.n)
    if arch in MFMA:
        if operand == "D":
            return amd.mfma_accumulator(sizes, tile, (1, 1), result_bits=64 if shape.result_bits == 64 else 32)
        width = min(shape.k * shape.m // 64, 128 // shape.element_bits)
        return amd.mfma_operand(operand, sizes, tile, (1, 1), width)
    version = 1 if arch == "gfx1100" else 2
    if operand == "D":
        return amd.wmma_accumulator(sizes, version, [])
    width = shape.k if version == 1 else min(shape.k // 2, 64 // shape.element_bits)
    return amd.wmma_operand(operand, sizes, version, [], width, instruction=(*tile, shape.k))


@pytest.mark.parametrize("operand", ["A", "B", "D"])
def test_tensor_layouts_of_one_tile_are_the_instructions(operand):
    compared = 0
    for arch, name, which, table in STORED["cases"]:
        shape = (MFMA if arch in MFMA else WMMA)[arch][name]
        if which != operand or shape.matrices != 1 or shape.m == 4:
            continue
        expected = np.array(STORED["tables"][table])
        layout = tensor_layout(arch, shape, operand)
        assert layout.in_dims == {"register": expected.shape[1], "lane": expected.shape[0], "warp": 1, "block": 1}
        assert layout.table().reshape(expected.shape).tolist() == expected.tolist(), (arch, name)
        compared += 1
    assert compared == 47


def closed_form(shape, operand, row, column, matrix):
    """(lane, register element) of one entry by the closed form of CDNA3's manuals, f64 4x4x4 included."""
    if operand in "AB":
        rows = shape.m if operand == "A" else shape.n
        i, k = (row, column) if operand == "A" else (column, row)
        per = shape.k * rows * shape.matrices // 64
        if shape.matrices == 1:
            return i + rows * (k // per), k % per
        if shape.result_bits == 64:
            return i + rows * matrix + 16 * k, 0
        return i + rows * matrix, k
    if shape.result_bits == 64:
        return (16 * (row % 4) + column, row // 4) if shape.m == 16 else (16 * row + 4 * matrix + column, 0)
    if shape.m == 32:
        return 32 * (row // 4 % 2) + column, 16 * matrix + 4 * (row // 8) + row % 4
    if shape.m == 16:
        return 16 * (row // 4) + column, 4 * matrix + row % 4
    return 4 * matrix + column, row


@pytest.mark.parametrize("arch", sorted(MFMA))
def test_closed_form_of_mfma(arch):
    compared = 0
    for name, shape in MFMA[arch].items():
        for operand, extents in (("A", (shape.m, shape.k)), ("B", (shape.k, shape.n)), ("D", (shape.m, shape.n))):
            if "f8f6f4" in name and operand != "D" and shape.element_bits == 8:
                # two runs of 16 bytes per lane, not one of 32
                continue
            layout = mfma_fragment(name, operand, arch)
            assert layout.is_invertible
            table = layout.table().tolist()
            registers = layout.in_dims["register"]
            for matrix in range(shape.matrices):
                for row in range(extents[0]):
                    for column in range(extents[1]):
                        lane, register = closed_form(shape, operand, row, column, matrix)
                        value = row + extents[0] * (column + extents[1] * matrix)
                        assert table[lane * registers + register] == value, (name, operand, row, column)
                        compared += 1
    assert compared > 30000


@pytest.mark.parametrize(("name", "rows"), [("v_mfma_f32_32x32x64_f8f6f4", 32), ("v_mfma_f32_16x16x128_f8f6f4", 16)])
def test_bytes_of_f8f6f4_come_in_two_runs(name, rows):
    layout = mfma_fragment(name, "A", "gfx950")
    groups = 64 // rows
    for lane in range(64):
        for element in range(32):
            k = 16 * (lane // rows) + 16 * groups * (element // 16) + element % 16
            assert layout(register=element, lane=lane) == {"row": lane % rows, "k": k, "matrix": 0}


def test_rdna3_replicates_and_rdna4_does_not():
    old = wmma_fragment("v_wmma_f32_16x16x16_f16", "A", "gfx1100")
    new = wmma_fragment("v_wmma_f32_16x16x16_f16", "A", "gfx1201")
    assert kernel_of(old).points == ({"register": 0, "lane": 16},)
    assert (old.in_dims["register"], new.in_dims["register"]) == (16, 8)
    assert new.is_invertible
    for lane in range(32):
        for element in range(8):
            k = element % 4 + 4 * (lane // 16) + 8 * (element // 4)
            assert new(register=element, lane=lane) == {"row": lane % 16, "k": k, "matrix": 0}
