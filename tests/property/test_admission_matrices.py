"""ldmatrix, stmatrix, ld.shared and st.shared of tiles and registers, against a simulator and every assignment."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest
from judges import matrix_moves

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.targets.layouts.nvidia import mma_accumulator, mma_operand
from layoutalg.targets.nvidia import accesses

WIDTHS = {"u8": 1, "f16": 2, "f32": 4, "f64": 8}
M8N8 = [f"{kind}matrix.x{count}{trans}" for kind in ("ld", "st") for count in (1, 2, 4) for trans in ("", ".trans")]
NARROW = ["ldmatrix.m16n16.x1.trans.b8", "ldmatrix.m16n16.x2.trans.b8"] + [
    f"stmatrix.m16n8.x{count}.trans.b8" for count in (1, 2, 4)
]
VECTORS = [
    "ld.shared.v4.b32", "st.shared.v2.b32", "ld.shared.b32", "st.shared.b16", "ld.shared.b8",
    "st.async.v4.b32", "st.async.b64",
]  # fmt: skip


def tile_of(rng, size):
    """A random tile: strided, padded, swizzled, a matrix over F2, or rows in a random order; with its extents."""
    rows, columns = rng.choice([8, 16, 24, 32]), rng.choice([8, 16, 32, 48])
    how = rng.randrange(6)
    pitch = columns + rng.choice([0, 0, 16 // size if size < 16 else 1, 8, 4, 1])
    if how == 0:
        return la.CuteLayout((rows, columns), (pitch, 1)), (rows, columns)
    if how == 1:
        return la.CuteLayout((rows, columns), (1, rows + rng.choice([0, 8, 16, 2]))), (rows, columns)
    if how == 2:
        base = rng.choice([0, 1, 2, 3, 4])
        text = f"Sw<{rng.choice([1, 2, 3])},{base},{rng.choice([3, 4])}> o 0 o (16,64):(64,1)"
        return la.parse(text), (16, 64)
    if how == 3:
        bits = list(range(8))
        rng.shuffle(bits) if rng.random() < 0.5 else bits[4:].reverse()
        columns = [1 << bit for bit in bits]
        columns[rng.randrange(8)] ^= 16 << rng.randrange(4) & 0xFF
        bases = {"dim0": [(x,) for x in columns[4:]], "dim1": [(x,) for x in columns[:4]]}
        return la.LinearLayout.from_bases(bases, {"offset": 256}), (16, 16)
    order = list(range(2 * rows))
    rng.shuffle(order)
    step = max(pitch, columns) + (rng.randrange(8) if how == 5 else -pitch % 16)
    table = np.array([[order[row] * step + column for column in range(columns)] for row in range(rows)])
    return table, (rows, columns)


def offsets_of(layout, extents):
    if isinstance(layout, np.ndarray):
        return layout
    if isinstance(layout, la.LinearLayout):
        return np.asarray(layout.table()).reshape(extents, order="F")
    return np.asarray(layout.table()).reshape(extents, order="F")


def blocks_are_rows(instruction, offsets, size):
    """By enumeration: the tile is cut into blocks along a dimension, and every row of a block is a row of memory."""
    matrix = "matrix" in instruction
    high = 16 if "m16n16" in instruction else 8 if matrix else 1
    wide = matrix_moves.row_bytes(instruction)
    at_once = (1 if not matrix else int(instruction.split(".x")[1][0])) if matrix else 32
    if matrix and "trans" in instruction and size != (1 if "b8" in instruction else 2):
        return False
    for turned in (False, True) if "trans" in instruction else (False,):
        table = offsets.T if turned else offsets
        run = wide // size
        if not run or table.shape[1] % run or table.shape[0] % high:
            continue
        if (table.size // run // high) % at_once:
            continue
        good = True
        for row, start in itertools.product(range(table.shape[0]), range(0, table.shape[1], run)):
            first = int(table[row, start]) * size
            good &= first % wide == 0 and all(
                int(table[row, start + step]) * size == first + step * size for step in range(run)
            )
        if good:
            return True
    return False


def simulated(answer, size, instruction):
    """The requested byte of every slot is the one that the simulator moves."""
    plan = answer.descriptor
    addresses = np.asarray(plan.addresses.table())
    reach = int(addresses.max()) + 16
    memory = np.arange(reach, dtype=np.int64)
    lanes = np.asarray(list(plan.addresses.in_dims.values()))
    shaped = addresses.reshape(accesses.access_form(instruction).addresses, -1, order="F")
    requested = np.asarray(plan.requested.table()).reshape(-1, 32, shaped.shape[1], order="F")
    assert lanes.prod() == addresses.size
    for one in range(shaped.shape[1]):
        found = matrix_moves.loaded(instruction, memory, shaped[:, one].tolist())
        width = min(size, found.shape[1])
        slots = found.reshape(32, -1, width)[..., 0]
        if requested.shape[0] == slots.shape[1]:
            assert np.array_equal(slots.T, requested[:, :, one])
        else:  # elements wider than a word are seen by their words
            words = found.reshape(32, -1, 4)[..., 0]
            assert np.array_equal(words.T, requested[:, :, one])


@pytest.mark.nightly(one_of=5)
@pytest.mark.parametrize("seed", range(6))
def test_whole_tiles_are_decided_as_by_enumeration(seed):
    rng = random.Random(seed)
    admitted = 0
    for _ in range(60):
        dtype = rng.choice(list(WIDTHS))
        instruction = rng.choice(M8N8 * 2 + VECTORS + (NARROW if dtype == "u8" else []))
        layout, extents = tile_of(rng, WIDTHS[dtype])
        target = "sm_100a" if instruction in NARROW else "sm_90a"
        answer = la.admissible(layout, instruction, target, dtype, tile=extents)
        offsets = offsets_of(layout, extents)
        size = WIDTHS[dtype]
        clear = "st" not in instruction[:2] or len(np.unique(offsets)) == offsets.size
        wide = "matrix" in instruction or size <= matrix_moves.register_bits(instruction) // 8
        assert bool(answer) == (clear and wide and blocks_are_rows(instruction, offsets, size)), (answer, layout)
        json.dumps(answer.to_json())
        if answer:
            admitted += 1
            assert answer.certificate.check()
            simulated(answer, size, instruction)
            values = np.asarray(answer.descriptor.registers.table()).reshape(-1)
            words = max(1, size // 4) if "matrix" in instruction else 1
            assert sorted(values.tolist()) == list(range(offsets.size * words))
        else:
            for repair in answer.repairs:
                assert repair.detail
    assert admitted > 5


def registers_of(rng):
    """A small layout of registers and the tile it speaks of."""
    made = [
        mma_operand("A", (16, 8 << rng.randrange(2)), (1, 1), 2),
        mma_operand("B", (16, 8), (1, 1), 2),
        mma_accumulator((16, 8), (1, 1)),
        mma_accumulator((16, 16), (1, 2)),
    ]
    layout = rng.choice(made)
    names = {name: size for name, size in layout.out_dims.items() if name.startswith("dim")}
    columns = {
        axis: [tuple(vector[: len(names)]) for vector in bases] for axis, bases in bases_of(layout, names).items()
    }
    if rng.random() < 0.3:
        rng.shuffle(columns["register"])
    if rng.random() < 0.3:
        rng.shuffle(columns["lane"])
    if rng.random() < 0.2:
        columns["register"][0], columns["lane"][0] = columns["lane"][0], columns["register"][0]
    return la.LinearLayout.from_bases(columns, names), tuple(names.values())


def bases_of(layout, names):
    """The image of every bit of the axes register, lane and warp."""
    found = {}
    for axis in ("register", "lane", "warp"):
        size = layout.in_dims[axis]
        zero = {name: np.zeros(1, dtype=np.int64) for name in layout.in_dims}
        images = []
        for bit in range(size.bit_length() - 1):
            point = layout.apply(zero | {axis: np.array([1 << bit])})
            images.append(tuple(int(point[name][0]) for name in names))
        found[axis] = images
    return found


@pytest.mark.parametrize("seed", range(6))
def test_registers_are_divided_as_by_every_assignment(seed):
    rng = random.Random(100 + seed)
    admitted = refused = 0
    for _ in range(40):
        registers, extents = registers_of(rng)
        dtype = rng.choice(["u8", "f16", "f16", "f32"])
        size = WIDTHS[dtype]
        how = rng.randrange(4)
        rows, columns = extents
        pad = rng.choice([0, 8, 16, 4])
        if how == 0:
            layout = la.CuteLayout(extents, (columns + pad, 1))
        elif how == 1:
            layout = la.CuteLayout(extents, (1, rows + pad))
        elif how == 2:
            layout = la.parse(f"Sw<{rng.choice([1, 2])},{rng.choice([2, 3])},3> o 0 o {extents}:({columns},1)")
        else:
            order = rng.sample(range(64), rows)
            layout = np.array([[at * 16 + column for column in range(columns)] for at in order])
        instruction = rng.choice(
            [
                "ldmatrix.x1",
                "ldmatrix.x2",
                "stmatrix.x1.trans",
                "ldmatrix.x1.trans",
                "ld.shared.b32",
                "st.shared.v2.b32",
            ]
        )
        answer = la.admissible(layout, instruction, dtype=dtype, tile=extents, registers=registers)
        offsets = offsets_of(layout, extents)
        flat = np.asarray(registers.table()).reshape(-1, 32, registers.in_dims["warp"], order="F")
        places = offsets.reshape(-1, order="F")[flat] * size
        distinct = {places[register].tobytes(): places[register] for register in range(len(places))}
        if len(distinct) > 4:
            continue
        store = instruction.startswith("st") and len(np.unique(offsets)) != offsets.size
        expected = not store and movable(instruction, list(distinct.values()), size)
        assert bool(answer) == expected, (answer, layout, registers, instruction)
        admitted, refused = admitted + expected, refused + (not expected)
        if answer:
            simulated(answer, size, instruction)
            assert answer.certificate.check()
            order = answer.descriptor.order
            held = sorted({register for one in order for register in one})
            assert {places[register].tobytes() for register in held} == set(distinct)
        else:
            assert answer.reasons[0]
    assert admitted > 2
    assert refused > 5


def movable(instruction, columns, size):
    """The same order of registers serves every warp: the lanes of all warps side by side."""
    warps = columns[0].shape[1]
    many = matrix_moves.register_bits(instruction) // 8 // size
    if not many or len(columns) % many:
        return False
    for order in itertools.permutations(range(len(columns))):
        groups = [order[at : at + many] for at in range(0, len(order), many)]
        if all(
            matrix_moves.one_instruction(instruction, [columns[at][:, warp] for at in group], size)
            for group in groups
            for warp in range(warps)
        ):
            return True
    return False


def test_every_form_means_what_the_simulator_does():
    for name, form in accesses.FORMS.items():
        if name.startswith("cp.") or "m8n16" in name:
            continue
        unit = max(1, form.row_bits // 8)
        addresses = [3 * unit * (row + 1) for row in range(form.addresses)]
        memory = np.arange(4096 * 4, dtype=np.int64)
        bits = 8
        meaning = accesses.layout(name, [addresses], bits)
        table = np.asarray(meaning.table()).reshape(-1, 32, order="F")
        assert np.array_equal(table.T, matrix_moves.loaded(name, memory, addresses)), name


def test_repairs_are_admitted():
    answer = la.admissible("(64,64):(65,1)", "ldmatrix.x4", dtype="f16")
    named = {repair.name: repair.detail for repair in answer.repairs}
    assert la.admissible(named["pad to whole rows"], "ldmatrix.x4", dtype="f16")
    assert la.admissible("(64,64):(65,1)", named["move vectors"], dtype="f16")
    assert named["move vectors"] == "ld.shared.b16"
    swizzled = la.admissible("Sw<3,2,3> o 0 o (64,64):(64,1)", "ldmatrix.x4", dtype="f16")
    repairs = {repair.name: repair.detail for repair in swizzled.repairs}
    assert la.admissible(repairs["swizzle whole rows"], "ldmatrix.x4", dtype="f16")
    aligned = la.admissible("(64,64):(64,1)", "ldmatrix.x4", dtype="f16", align_bytes=8)
    assert aligned.repairs[0].detail == "align_bytes=16"


@pytest.mark.parametrize(
    ("target", "instruction", "verdict"),
    [
        ("sm_80", "ldmatrix.x4", la.Admitted),
        ("sm_80", "stmatrix.x4", la.Refused),
        ("sm_80", "st.async.b32", la.Refused),
        ("sm_121a", "st.async.v2.b64", la.Admitted),
        ("sm_90a", "ldmatrix.m16n16.x1.trans.b8", la.Refused),
        ("sm_120a", "ldmatrix.m16n16.x1.trans.b8", la.Admitted),
        ("sm_100", "ldmatrix.m16n16.x1.trans.b8", la.Unknown),
        ("gfx942", "ldmatrix.x4", la.Refused),
    ],
)
def test_targets(target, instruction, verdict):
    answer = la.admissible("(64,64):(64,1)", instruction, target, "u8")
    assert isinstance(answer, verdict)
    if isinstance(answer, la.Admitted):
        assert answer.evidence == "documented"
        turns = [line for line in str(answer).splitlines() if line.lstrip().startswith("turns")]
        assert all(f"assumed for {target})" in line for line in turns)
        assert bool(turns) == (instruction == "ldmatrix.x4")


@pytest.mark.parametrize(
    "consumer",
    [
        "ldmatrix.x3",
        "ldmatrix.b16",
        "ldmatrix.x4.b8",
        "ld.shared.v4.b64",
        "stmatrix.m16n16.x1",
        "st.async.v4.b64",
        "st.async.b16",
    ],
)
def test_what_is_no_instruction_is_named(consumer):
    with pytest.raises(MalformedError):
        la.admissible("(64,64):(64,1)", consumer)


def test_packed_rows_of_four_and_six_bits():
    four = la.admissible("(8,16):(32,1)", "ldmatrix.m8n16.x1.b8x16.b4x16_p64", "sm_100a", "e2m1")
    assert four.descriptor.addresses.table().tolist() == [16 * row for row in range(8)]
    assert la.admissible("(8,16):(16,1)", "ldmatrix.m8n16.x1.b8x16.b4x16_p64", "sm_100a", "e2m1").rules == (
        "ACCESS_ALIGNED",
    )
