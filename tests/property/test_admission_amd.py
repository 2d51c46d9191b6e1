"""AMD's instructions against simulations: registers of MFMA and WMMA, LDS reads and writes, loads into LDS."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Unknown
from layoutalg.synth.admission.lds import ACCESSES, UNDOCUMENTED
from layoutalg.synth.lds import FILLS, WIDTHS
from layoutalg.targets import model_of
from layoutalg.targets.layouts.amd import mfma_accumulator, mfma_operand, wmma_accumulator, wmma_operand
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA
from layoutalg.targets.layouts.shared import transposed_read
from layoutalg.targets.registry import AMD, TARGETS
from tests.judges.bank_words import judged

INSTRUCTIONS = [
    (arch, name) for arch in AMD for name in model_of(arch).instructions
    if model_of(arch).fragment(name, "D").out_dims["matrix"] == 1
]  # fmt: skip
DTYPES = {32: "f32", 16: "f16", 8: "s8", 4: "s4", 64: "f64"}


def repeated(fragment, rng, word):
    """The fragment with two more register bits and one warp bit, whole words in any order."""
    names = list(fragment.out_dims)[:2]
    sizes = [fragment.out_dims[name] for name in names]
    steps = [(sizes[0], 0), (0, sizes[1]), (2 * sizes[0], 0), (0, 2 * sizes[1])]
    rng.shuffle(steps)
    low = word.bit_length() - 1
    held = [basis[:2] for basis in fragment.bases["register"]]
    free = [*held[low:], *map(tuple, steps[:2])]
    rng.shuffle(free)
    registers = [*held[:low], *(tuple(int(part) for part in entry) for entry in free)]
    lanes = [basis[:2] for basis in fragment.bases["lane"]]
    dims = {"dim0": 4 * sizes[0], "dim1": 4 * sizes[1]}
    return {"register": registers, "lane": lanes, "warp": [tuple(steps[2])]}, dims


@pytest.mark.parametrize("arch", AMD)
def test_tilings_of_every_instruction_are_admitted_and_certified_and_others_not(arch):
    rng = np.random.default_rng(7)
    for name in [name for where, name in INSTRUCTIONS if where == arch][::2]:
        for operand in "ABD":
            fragment = model_of(arch).fragment(name, operand)
            many = fragment.in_dims["register"]
            table = (MFMA if arch in MFMA else WMMA)[arch][name.partition(".")[2]]
            bits = table.element_bits if operand in "AB" else table.result_bits
            word = 1 if arch == "gfx1100" and operand == "D" else min(max(1, 32 // bits), many)
            bases, dims = repeated(fragment, rng, word)
            layout = la.LinearLayout.from_bases(bases, dims)
            found = la.admissible(layout, f"{name}.{operand}", arch, DTYPES[bits])
            assert isinstance(found, la.Admitted), (name, operand, str(found))
            assert found.certificate.check()
            assert len(found.descriptor.tiling.registers) == 4
            lane = int(rng.integers(len(bases["lane"])))
            bases["lane"][lane] = tuple(part ^ 1 for part in bases["lane"][lane])
            refused = la.admissible(la.LinearLayout.from_bases(bases, dims), f"{name}.{operand}", arch, DTYPES[bits])
            assert isinstance(refused, la.Refused)
            assert refused.rules == ("FRAGMENT",)
            assert refused.witness["lane"] == 1 << lane


def test_compilers_tiles():
    cases = [
        (mfma_accumulator((128, 128), (32, 32), (2, 2)), "mfma.v_mfma_f32_32x32x8_f16.D", "gfx942", "f32"),
        (mfma_operand("A", (128, 64), (32, 32), (4, 1), 4), "mfma.v_mfma_f32_32x32x8_f16.A", "gfx942", "f16"),
        (mfma_operand("B", (64, 128), (16, 16), (1, 4), 4), "mfma.v_mfma_f32_16x16x16bf16_1k.B", "gfx90a", "bf16"),
        (wmma_accumulator((64, 64), 2, [(1, 0), (0, 1)]), "wmma.v_wmma_f32_16x16x16_f16.D", "gfx1201", "f32"),
        (wmma_operand("A", (64, 32), 1, [(1, 0)], 16), "wmma.v_wmma_f32_16x16x16_f16.A", "gfx1100", "f16"),
    ]
    for layout, consumer, arch, dtype in cases:
        found = la.admissible(layout, consumer, arch, dtype)
        assert isinstance(found, la.Admitted), (consumer, str(found))
        assert found.certificate.check()
        assert found.to_json()["descriptor"]["schema"] == "layoutalg/fragment-plan/2"


def test_an_instruction_of_another_chip_is_refused_with_one_that_fits():
    layout = mfma_operand("A", (32, 16), (32, 32), (1, 1), 4)
    found = la.admissible(layout, "mfma.v_mfma_f32_32x32x16_f16.A", "gfx942", "f16")
    assert found.rules == ("MATRIX_INSTRUCTION",)
    assert found.repairs[0].name == "use v_mfma_f32_32x32x8_f16"
    for repair in found.repairs:
        assert la.admissible(layout, repair.detail.split()[0], "gfx942", "f16")
    assert la.admissible(layout, "mfma.v_mfma_f32_32x32x8_f16.A", "gfx942", "f64").rules == ("MATRIX_DTYPE",)
    assert la.admissible("(64,64):(64,1)", "mfma.v_mfma_f32_32x32x8_f16.A", "gfx942").rules == ("REGISTER_AXES",)
    assert la.admissible(layout, "wmma.v_wmma_f32_16x16x16_f16.A", "gfx942", "f16").rules == ("NO_WMMA",)
    for wrong in ("mfma.v_mfma_f32_1x1x1_f16.A", "mfma.v_mfma_f32_32x32x8_f16.E", "mfma"):
        with pytest.raises(MalformedError, match="LA801"):
            la.admissible(layout, wrong, "gfx942")
    with pytest.raises(MalformedError, match=r"for registers name the instruction, such as mfma\.v_"):
        la.admissible(layout, "mfma.A", "gfx942")


def exchange(name, many, lanes):
    if "_tr_" not in name:
        return {(lane, register): (register, lane) for lane in range(lanes) for register in range(many)}
    layout = transposed_read(int(name.rpartition("_b")[2]))
    return {
        (lane, register): tuple(layout(register=register, lane=lane)[part] for part in ("slot", "source"))
        for lane in range(lanes) for register in range(many)
    }  # fmt: skip


def moves(name, places, held, size, lanes):
    """Whether whole accesses move the registers: some address of every lane explains all that it leads to."""
    width = WIDTHS.get(name, 8)
    many = width // size
    if width % size or held.shape[1] != lanes or held.shape[2] % many:
        return False
    flat = places.reshape(-1, order="F")
    table = exchange(name, many, lanes)
    grain = 4 if width == 12 else width
    taken = {}
    for warp, first in itertools.product(range(len(held)), range(0, held.shape[2], many)):
        leads = {}
        for (lane, register), (slot, source) in table.items():
            element = held[warp, lane, first + register]
            leads.setdefault(source, set()).add(int(flat[element]) - slot * size)
            if taken.setdefault(int(flat[element]), element) != element and "write" in name:
                return False
        if any(len(found) > 1 or min(found) % grain for found in leads.values()):
            return False
    return True


def random_tile(rng):
    rows, cols = int(rng.choice([16, 32, 48])), int(rng.choice([16, 32, 48, 64]))
    kind = rng.integers(4)
    if kind == 0:
        layout = np.arange(rows * cols).reshape(rows, cols)
    elif kind == 1:
        layout = np.arange(rows * cols).reshape(cols, rows).T
    elif kind == 2:
        layout = np.arange(rows)[:, None] * (cols + int(rng.choice([4, 8, 2, 1]))) + np.arange(cols)
    else:
        layout = np.arange(rows)[:, None] * cols + (np.arange(cols) ^ (np.arange(rows)[:, None] % 4 * 8))
    return layout.copy()


def test_reads_and_writes_of_given_registers_agree_with_the_simulation():
    rng = np.random.default_rng(11)
    seen = set()
    for _ in range(160):
        arch = str(rng.choice(AMD))
        name = str(rng.choice([*WIDTHS, "ds_read_b64_tr_b16", "ds_read_b64_tr_b8"]))
        lanes = TARGETS[arch].lanes
        if "_tr_" in name and arch != "gfx950":
            continue
        size = int(name[-2:].strip("b")) // 8 if "_tr_" in name else int(rng.choice([2, 4]))
        many = WIDTHS.get(name, 8) // size
        places = random_tile(rng)
        table = exchange(name, many, lanes)
        rows, cols = places.shape
        held = np.zeros((1, lanes, 2 * many), dtype=np.int64)
        for access in range(2):
            corner = [(int(rng.integers(rows)), many * int(rng.integers(cols // many))) for _ in range(lanes)]
            for (lane, register), (slot, source) in table.items():
                row, col = corner[source]
                held[0, lane, access * many + register] = row + rows * (col + slot)
        if rng.random() < 0.4:
            at = tuple(int(rng.integers(extent)) for extent in held.shape)
            held[at] = int(rng.integers(rows * cols))
        found = asked(places, held, name, arch, size)
        expected = moves(name, places * size, held, size, lanes)
        assert isinstance(found, tuple) == expected, (arch, name, found)
        seen.add(("_tr_" in name, "write" in name, expected))
    assert {(True, False, True), (False, True, True), (False, False, True), (False, False, False)} <= seen


def asked(places, held, name, arch, size):
    return la.synth.lds.read_or_write(arch, name, places * size, held, size, TARGETS[arch].lanes)


def test_operands_of_a_matrix_instruction_are_read_from_lds():
    tile, text = (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)"
    rows = mfma_operand("A", tile, (32, 32), (2, 1), 8)
    found = la.admissible(text, "ds_read_b128", "gfx950", "bf16", registers=rows)
    assert isinstance(found, la.Admitted), str(found)
    assert found.certificate.check()
    assert len(found.descriptor.addresses) == 2 * rows.in_dims["register"] // 8
    offsets = np.asarray(la.parse(text).table()).reshape(tile, order="F")
    at = dict.fromkeys(rows.in_dims, 0) | {"lane": 37}
    coordinate = rows(**at)
    assert found.descriptor.addresses[0][37] == 2 * offsets[coordinate["dim0"], coordinate["dim1"]]
    columns = mfma_operand("B", tile, (32, 32), (1, 2), 8)
    assert la.admissible(text, "ds_read_b128", "gfx950", "bf16", registers=columns).rules == ("LDS_CONTIGUOUS",)
    with pytest.raises(MalformedError, match="registers"):
        la.admissible("(32,64):(64,1)", "ds_read_b128", "gfx950", "bf16", registers=rows)


def operand_reads(arch, extents, many, size):
    """The (row, k) at which each lane of each read of operand A starts, as AMD's calculator prints the operand.

    A lane's registers hold one row: lane l that of number l mod 16 (or 32). CDNA deals runs along k to lanes of equal
    rows one after the other; gfx1100 gives both halves of the wave the same 16; gfx1201 deals runs of at least 4. None
    where blocks do not divide the tile, or the target multiplies no such elements.
    """
    rows, cols = extents
    if many & (many - 1) or (size == 4 and arch.startswith("gfx1")):
        return None
    if arch.startswith("gfx9"):
        fits = [(side, 64 // side * many) for side in (16, 32) if rows % side == 0 and cols % (64 // side * many) == 0]
        side, depth = fits[0] if fits else (0, 0)
        steps = [[(lane % side, lane // side * many) for lane in range(64)]] if fits else []
    else:
        run = 16 if arch == "gfx1100" else max(many, 4)
        side, depth = 16, 16 if arch == "gfx1100" else max(16, 2 * run)
        half = 0 if arch == "gfx1100" else run
        starts = [first + at for first in range(0, depth, run + half) for at in range(0, run, many)]
        steps = [[(lane % 16, lane // 16 * half + start) for lane in range(32)] for start in starts]
    if not steps or rows % side or cols % depth:
        return None
    blocks = itertools.product(range(0, rows, side), range(0, cols, depth), steps)
    return [[(row + top, k + left) for row, k in step] for top, left, step in blocks]


@pytest.mark.parametrize("name", sorted(WIDTHS))
def test_whole_tiles_are_read_as_operands_and_written_row_by_row(name):
    rng = np.random.default_rng(len(name))
    seen, told = set(), set()
    for _ in range(24):
        arch = str(rng.choice(AMD))
        dtype, size = [("bf16", 2), ("f32", 4), ("u8", 1)][rng.integers(3)]
        places = random_tile(rng)
        many = WIDTHS[name] // size
        found = la.admissible(places, name, arch, dtype)
        cols = places.shape[1]
        grain = 4 if WIDTHS[name] == 12 else WIDTHS[name]
        whole = cols % many == 0 and all(
            np.array_equal(run, run[0] + np.arange(many)) and run[0] * size % grain == 0
            for run in places.reshape(-1, many)
        )
        if "write" in name:
            whole = whole and len(set(places.reshape(-1).tolist())) == places.size
        assert isinstance(found, la.Admitted) == whole, (name, arch, str(found))
        seen.add(whole)
        if not whole:
            assert isinstance(found, la.Refused)
            continue
        assert found.certificate.check()
        operand = operand_reads(arch, places.shape, many, size) if "read" in name else None
        if operand is None:
            got = [at for access in found.descriptor.addresses for at in access if at is not None]
            assert got == (places.reshape(-1, many)[:, 0] * size).tolist()
            assert found.descriptor.lanes == "along dimension 1"
        else:
            wanted = [tuple(int(places[point]) * size for point in lanes) for lanes in operand]
            assert sorted(found.descriptor.addresses) == sorted(wanted)
            assert found.descriptor.lanes.startswith("of operand A of ")
        told.add(operand is None)
        turns = [model_of(arch).turns(name, list(access)) for access in found.descriptor.addresses]
        assert found.descriptor.turns == (None if isinstance(turns[0], Unknown) else sum(turns))
    assert seen == {True, False}
    assert told == {True, False} if "read" in name and "96" not in name else {True}


def test_an_operand_of_plain_rows_has_the_conflicts_of_its_lanes():
    """Rows of 128 bytes lie in the same banks of gfx950: an operand of 16 rows meets there, a run of rows does not."""
    plain = la.admissible("(64,64):(64,1)", "ds_read_b128", "gfx950", "f16").descriptor
    assert (len(plain.addresses), plain.turns) == (8, 8 * 16)
    assert plain.turns == sum(judged("gfx950", "ds_read_b128", access)[0] for access in plain.addresses)
    swizzled = la.admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "ds_read_b128", "gfx950", "f16").descriptor
    assert swizzled.turns == 8 * 4
    assert str(plain).startswith("8 x ds_read_b128, 128 turns, lanes of operand A of MFMA 16x16, 8 along k each")
    best = la.suggest(((512, 512), None, "f16"), (64, 64), ["ds_read_b128"], "gfx950", fill="threads").best
    assert str(best.smem) == "Sw<3,3,3> o 0 o (64,64):(64,1)"


@pytest.mark.parametrize("name", sorted(FILLS))
def test_loads_into_lds_fill_exactly_the_tile(name):
    rng = np.random.default_rng(len(name))
    seen = set()
    for _ in range(40):
        places = random_tile(rng)
        dtype, size = [("bf16", 2), ("f32", 4)][rng.integers(2)]
        found = la.admissible(places, name, "gfx950", dtype)
        seen.add(type(found))
        if isinstance(found, la.Admitted):
            assert found.certificate.check()
            image = {}
            for base, wave in zip(found.descriptor.bases, found.descriptor.starts, strict=True):
                for lane, start in enumerate(wave):
                    for step in range(FILLS[name] // size if start else 0):
                        at = base + lane * FILLS[name] + step * size
                        assert at not in image
                        image[at] = (start[0], start[1] + step)
            assert image == {int(places[at]) * size: at for at in np.ndindex(places.shape)}
        elif isinstance(found, la.Refused) and found.rules[0] == "GLOBAL_CONTIGUOUS":
            many = FILLS[name] // size
            runs = places.reshape(places.shape[0], -1, many)
            assert (runs != runs[..., :1] + np.arange(many)).any()
    assert la.Admitted in seen


@pytest.mark.parametrize("arch", sorted(TARGETS))
def test_every_consumer_on_every_target_has_an_answer(arch):
    layouts = ["(64,64):(64,1)", "(12,5):(7,3)", "(8,8):(0,1)", mfma_accumulator((64, 64), (32, 32), (1, 1))]
    consumers = [*ACCESSES, *UNDOCUMENTED, "mfma.v_mfma_f32_32x32x8_f16.D", "wmma.v_wmma_f32_16x16x16_f16.A"]
    for layout, consumer, dtype in itertools.product(layouts, consumers, ("bf16", "f32", "s4")):
        if not isinstance(layout, str) and "." not in consumer:
            continue
        found = la.admissible(layout, consumer, arch, dtype)
        assert isinstance(found, (la.Admitted, la.Refused, Unknown))
        if TARGETS[arch].vendor == "nvidia":
            assert isinstance(found, la.Refused)
            assert found.rules[0].startswith(("NO_", "LOAD_LDS"))


def test_repairs_are_looked_for_where_a_transposing_read_would_need_powers_of_two():
    refused = la.admissible("Sw<2,1,4> o 1 o (12,64):(66,1)", "ds_read_b64", target="gfx942", dtype="bf16")
    assert "LDS_CONTIGUOUS" in refused.rules or "LDS_ALIGN" in refused.rules
    assert any("store the tile densely" in str(repair) for repair in refused.repairs)
