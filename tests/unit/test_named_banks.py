"""Bank conflicts of accesses by their names, and the layouts that end them: counted here once more, by hand."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.cli import main
from layoutalg.synth.named_accesses import NAMES, name_of, named
from layoutalg.targets.target_model import model_of

PLAIN = "(128,32):(32,1)"


def wavefronts(layout: object, rows: int, columns: int, bits: int) -> tuple[int, int]:
    """Turns of ldmatrix on all matrices of 8 rows of 16 bytes, and the most words of one bank: by enumeration."""
    width, turns, most = 128 // bits, 0, 0
    for top in range(0, rows, 8):
        for left in range(0, columns, width):
            words: dict[int, set[int]] = {}
            for row in range(top, top + 8):
                for column in range(left, left + width):
                    word = layout(row, column) * bits // 32  # type: ignore[operator]
                    words.setdefault(word % 32, set()).add(word)
            turns += max(map(len, words.values()))
            most = max(most, *map(len, words.values()))
    return turns, most


@pytest.mark.parametrize("columns", [32, 64, 128])
@pytest.mark.parametrize("name", ["ldmatrix", "ldmatrix.x4"])
def test_turns_and_ways_of_rows(name: str, columns: int) -> None:
    shared = la.CuteLayout((64, columns), (columns, 1))
    report = la.banks(name, shared)
    assert (report.turns, report.ways) == wavefronts(shared, 64, columns, 16)
    assert report.ideal == 64 * columns // 64
    assert not report.conflict_free


@pytest.mark.parametrize("shared", [PLAIN, "(128,64):(64,1)", "(64,128):(128,1)", "Sw<1,3,3> o 0 o (64,64):(64,1)"])
def test_the_cure_of_ldmatrix_is_a_swizzle_of_the_same_bytes(shared: str) -> None:
    layout, report = la.parse(shared), la.banks("ldmatrix", shared)
    cure = report.cure
    assert sorted(cure.table().ravel().tolist()) == sorted(layout.table().ravel().tolist())
    rows, columns = (size for size in cure.base.shape)
    assert wavefronts(cure, rows, columns, 16) == (report.ideal, 1)
    assert la.banks("ldmatrix", cure).conflict_free
    assert la.banks("rows", cure, kind="store").conflict_free  # what fills the tile row by row


def test_what_is_said() -> None:
    text = str(la.banks("ldmatrix", PLAIN)).splitlines()
    assert text[0] == "16 x ldmatrix.x4: 256 turns (wavefronts) where 64 would do, a 4-way conflict"
    assert text[-1] == "cure   Sw<2,3,3> o 0 o (128,32):(32,1): free of bank conflicts, in the same 8192 bytes"
    free = la.banks("ldmatrix", "Sw<2,3,3> o 0 o (128,32):(32,1)")
    assert (free.cure, free.ways, str(free)) == (None, 1, "16 x ldmatrix.x4: 64 turns, free of bank conflicts")
    assert "8 lanes per 8 x 16-byte matrix" in free.lanes


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("ldmatrix", "stmatrix")])
@pytest.mark.parametrize("bits", [16, 32])
def test_every_name_is_counted_and_cured(name: str, bits: int) -> None:
    if name.startswith(("mfma", "wmma")):
        target, bits = ("gfx942", 32) if name[1] == "f" else ("gfx1100", 16 if name[-1] in "AB" else 32)
        report = la.banks(name, "(64,64):(64,1)", bits, target=target)
        assert report.cure is None or la.banks(name, report.cure, bits, target=target).conflict_free
        with pytest.raises(la.AdmissibilityError, match=f"LA991.*(?s:.)*sm_90a has no {name[:4]}"):
            la.banks(name, "(64,64):(64,1)", bits)
        return
    if bits == 32 and name.endswith("trans"):
        with pytest.raises(la.MalformedError, match="16 for a transposed matrix"):
            la.banks(name, "(64,64):(64,1)", bits)
        return
    report = la.banks(name, "(64,64):(64,1)", bits)
    assert report.conflict_free == (report.cure is None)
    if report.cure is not None:
        assert la.banks(name, report.cure, bits).turns == report.ideal


def test_other_families_and_padding_as_a_cure() -> None:
    triton = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"
    layout = la.parse(triton, (64, 64))
    assert str(la.banks("ldmatrix", layout, tile=(64, 64)).cure) == "Sw<3,3,3> o 0 o (64,64):(64,1)"
    padded = la.banks("ldmatrix", "(64,64):(72,1)")
    assert padded.conflict_free
    registers = "(32,32):(32,1)"
    assert la.banks(registers, "(32,32):(32,1)", 32).cure is None  # no conflict
    assert la.banks("(32,8):(64,1)").cure is None  # no shared layout was named


def test_what_was_assumed_is_said() -> None:
    alone = la.banks("(32,8):(64,1)")
    assert alone.assumed.startswith("read as (thread, value) -> element offset")
    assert alone.assumed in str(alone)
    assert la.banks("ldmatrix", PLAIN).assumed == ""
    assert la.banks("(_128,_32):(_32,_1)", "ldmatrix") == la.banks("ldmatrix", PLAIN)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rowz", PLAIN), "LA990.*(?s:.)*near: rows"),
        (("ldmatrix",), "must be the shared layout of the tile for ldmatrix"),
        (("mma.A", "(48,64):(64,1)"), "power-of-two"),
        (("rows", "(6,40):(40,1)"), "all lanes active"),
        (("ldmatrix", PLAIN, 16, "store"), "must be omitted"),
        (("mma.A", "(8,64):(64,1)"), "at least 16 x 16"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(la.MalformedError, match=words):
        la.banks(*arguments)


@pytest.mark.parametrize("tile", [(-8, 8), (8, 0)])
def test_extents_of_a_tile_are_positive(tile: tuple[int, int]) -> None:
    with pytest.raises(la.MalformedError, match=r"tile\[[01]\]\s+since  must be at least 1"):
        la.banks("ldmatrix", PLAIN, tile=tile)


def test_one_name_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    tile = (64, 64)
    for short, full in (("ldmatrix", "ldmatrix.x4"), ("stmatrix.trans", "stmatrix.x4.trans")):
        answers = [
            (
                la.banks(name, "(64,64):(64,1)").turns,
                la.swizzle(["rows:store", name], tile=tile).turns,
                la.padding(tile, ["rows", name]).turns,
                la.admissible("(64,64):(64,1)", name, dtype="f16"),
                la.suggest(la.Tensor(tile), tile, [name], fill="threads").best,
            )
            for name in (short, full)
        ]
        assert answers[0] == answers[1]
    for words in (["ldmatrix", PLAIN], ["(_128,_32):(_32,_1)", "ldmatrix"]):
        assert main(["banks", *words]) == 0
        assert "Sw<2,3,3> o 0 o (128,32):(32,1)" in capsys.readouterr().out


def test_columns_of_vectors_are_read_down_the_rows():
    """Eight lanes read 16 bytes each at a pitch of 128 bytes, from the same four banks; 16 reads of 32 lanes."""
    assert la.banks("columns:8", "(64,64):(64,1)", 16).turns == 16 * 4 * 8


def test_what_a_target_lacks_is_named():
    with pytest.raises(la.AdmissibilityError, match=r"LA991.*(?s:.)*sm_90a has no ldmatrix\.m16n16\.x1\.trans\.b8"):
        la.banks("ldmatrix.m16n16.x1.trans.b8", "(64,64):(64,1)", 8, target="sm_90a")


OF_TARGETS = {
    "sm_90a": "mma.m8n8k4.f64.f64 mma.m16n8k16.f64.f64 mma.m16n8k16.f32.bf16 mma.m16n8k8.f32.tf32 mma.m16n8k32.s32.s8",
    "gfx942": "mfma.v_mfma_f32_32x32x8_f16 mfma.v_mfma_f32_16x16x16_bf16 mfma.v_mfma_f64_16x16x4_f64",
    "gfx1201": "wmma.v_wmma_f32_16x16x16_f16",
}
INSTRUCTIONS = [
    (target, name, side) for target, names in OF_TARGETS.items() for name in names.split() for side in "ABD"
]


@pytest.mark.parametrize(("target", "instruction", "side"), INSTRUCTIONS)
def test_an_operand_of_an_instruction_is_its_fragment_repeated(target: str, instruction: str, side: str) -> None:
    """Element by element: each lane has the elements of its fragment in every block of the tile, and no others."""
    fragment = model_of(target).fragment(instruction, side)
    sizes = [*fragment.out_dims.values()][:2]
    held: dict[int, set[tuple[int, int]]] = {}
    for lane in range(fragment.in_dims["lane"]):
        for register in range(fragment.in_dims["register"]):
            point = tuple(fragment(register=register, lane=lane).values())[:2]
            held.setdefault(lane, set()).add(point)
    rows, columns = (64, 64)
    bits = next(b for b in (8, 16, 32, 64) if _named(instruction, side, (rows, columns), b, target) is not None)
    layout = _named(instruction, side, (rows, columns), bits, target)
    for lane in (0, 1, 5, 17, fragment.in_dims["lane"] - 1):
        found = set()
        for register in range(layout.in_dims["register"]):
            row, column = layout(register=register, lane=lane).values()
            at = (column, row) if side == "B" else (row, column)
            assert (at[0] % sizes[0], at[1] % sizes[1]) in held[lane]
            found.add((row, column))
        assert len(found) == layout.in_dims["register"] == len(held[lane]) * rows * columns // (sizes[0] * sizes[1])


def _named(instruction: str, side: str, tile: tuple[int, int], bits: int, target: str) -> la.LinearLayout | None:
    try:
        return named(name_of(f"{instruction}.{side}"), tile, bits, target)
    except la.MalformedError as error:
        assert "elements of" in str(error)
        return None


@pytest.mark.parametrize("side", "ABCD")
def test_all_shapes_of_f64_have_the_lanes_of_the_role(side: str) -> None:
    role = la.banks(f"mma.{side}", "(16,16):(16,1)", "f64")
    for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
        each = la.banks(f"mma.{shape}.f64.f64.{side}", "(16,16):(16,1)", "f64")
        assert (each.turns, each.ideal, each.accesses) == (role.turns, role.ideal, role.accesses)
    with pytest.raises(la.AdmissibilityError, match=r"sm_80 has no m16n8k8(?s:.*)use mma.m8n8k4.f64.f64"):
        la.banks(f"mma.m16n8k8.f64.f64.{side}", "(16,16):(16,1)", "f64", target="sm_80")


def test_a_role_names_the_instructions_that_have_it() -> None:
    lanes = la.banks("mfma.A", "(32,32):(32,1)", "f16", target="gfx942").lanes
    assert lanes.endswith("operand A of mfma (v_mfma_f32_16x16x16_f16, v_mfma_f32_16x16x16_bf16)")
    assert la.banks("mfma.A", "(32,32):(32,1)", "f64", target="gfx942").lanes.endswith("(v_mfma_f64_16x16x4_f64)")
    found = la.banks("mfma.v_mfma_f32_32x32x8_f16.D", "(64,64):(64,1)", "f32", target="gfx942")
    assert (found.turns, found.lanes) == (128, "the lanes of one wave as in operand D of v_mfma_f32_32x32x8_f16")
    for name, bits, words in (
        ("mfma.v_mfma_f32_32x32x8_f16.A", 32, "elements of 16 bits"),
        ("mfma.v_mfma_f32_4x4x4_16b_f16.A", 16, "one product"),
        ("mma.m16n8k16.f32.bf15.A", 16, "LA990"),
    ):
        with pytest.raises(la.MalformedError, match=words):
            la.banks(name, "(64,64):(64,1)", bits, target="gfx942" if "mfma" in name else "sm_90a")
