"""Texts that show a tensor map: what tools print of it, what is wrong with a text, and calls of the driver."""

from __future__ import annotations

import json
import shutil
import subprocess
from enum import IntEnum

import jsonschema
import pytest
from fuzz.dumps import CALL
from hypothesis import given
from hypothesis import strategies as st
from judges.commands import run

import layoutalg as la
from layoutalg.cli import PROVED, REFUTED, USAGE
from layoutalg.cli.schemas import schema_text
from layoutalg.codegen.host import host_map
from layoutalg.ground.errors import LayoutError, MalformedError, TargetRuleError
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.targets import dumps
from layoutalg.targets.nvidia import im2col, tcgen05, tensormap, wgmma
from layoutalg.targets.nvidia.tensormap import ENUMERATORS, TensorMap, diagnose, read_map, texts
from layoutalg.targets.nvidia.tensormap.fields import name_of_enumerator

TM = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=0x7F0000001000)
RAW = tensormap.encode(TM)


@pytest.mark.parametrize(
    "command",
    [
        "xxd", "xxd -e", "xxd -e -g8", "xxd -e -g2", "xxd -g1 -u", "xxd -g8", "xxd -c 8", "xxd -c 5 -g1", "xxd -p",
        "xxd -i", "hexdump", "hexdump -C", "hexdump -v", "hexdump -C -v", "od -A x -t x1", "od -t x1z", "od -t x2",
        "od -t x4 -v", "od -A d -t x8", "od -A n -t x1 -v",
    ],
)  # fmt: skip
def test_the_tools_are_read(command, tmp_path):
    if shutil.which(command.split()[0]) is None:
        pytest.skip("the tool is not here")
    file = tmp_path / "map"
    file.write_bytes(RAW)
    text = subprocess.run([*command.split(), str(file)], capture_output=True, text=True, check=True).stdout
    assert dumps.is_dump(text)
    assert read_map(text).raw == RAW
    assert diagnose(text).tensor_map == TM
    assert la.explain(text)["dims"] == [512, 1024]


def test_a_debugger_is_read(tmp_path):
    if shutil.which("gdb") is None:
        pytest.skip("the tool is not here")
    core = tmp_path / "map"
    core.write_bytes(RAW)
    for units in ("16gx", "32wx", "64hx", "128bx"):
        size = {"g": 8, "w": 4, "h": 2, "b": 1}[units[-2]]
        words = [int.from_bytes(RAW[at : at + size], "little") for at in range(0, 128, size)]
        per = {8: 2, 4: 4, 2: 8, 1: 8}[size]
        lines = [f"(gdb) x/{units} &map"]
        for row in range(0, len(words), per):
            shown = "\t".join(f"0x{word:0{2 * size}x}" for word in words[row : row + per])
            lines.append(f"0x7fffffffe{row * size:03x} <map+{row * size}>:\t{shown}")
        found = read_map("\n".join(lines))
        assert found.raw == RAW
        assert found.form.startswith(f"gdb: {len(words)} numbers of {8 * size} bits")


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (RAW.hex()[:100] + "g" + RAW.hex()[101:], 1, 101, "'g' is not a hexadecimal digit"),
        ("00 10\n0O 00 " + "00 " * 124, 2, 2, "'O' is not a hexadecimal digit"),
        ("00 10 0 " + "00 " * 126, 1, 7, "a group of 1 digits, where others have 2; 257 digits in all"),
        ("00000000: 0010 0z00  ..\n00000004: 0000 0000  ..", 1, 17, "'z' is not a hexadecimal digit"),
        ("00000000: 0010 0000  ..\n00000008: 0000 0000  ..", 2, 1, "has 4 bytes, and this one is at 00000008"),
        ("00000000  00 00  |..|\n*\n", 2, 1, "need an address after them"),
        ("00000000  00 00  |..|\n*\n00000005  00 00  |..|\n", 2, 1, "no whole number of rows"),
        ("00000000  00 00  |..|\n*\nfffffff0  00 00  |..|\n", 2, 1, "are repeated here, more than the 128"),
        ("{0x10, 08}", 1, 8, "'08' is not an integer of C"),
        ("{0x10, x}", 1, 8, "'x' is not an integer of C"),
        ("{0x10, 1}, {2}", 1, 12, "a second array begins"),
        ("{0x10, 1", 1, 1, "the brace is not closed"),
        ("{0x10, 0 <repeats 4000 times>}", 1, 10, "a repetition of up to 1024"),
        ("b'\\x0'", 1, 3, "is not a character of bytes as Python writes them"),
        ("b'\\x00", 1, 7, "expected ' at the end"),
        ("b'\\x00' 1", 1, 8, "expected the end"),
    ],
)
def test_what_is_wrong_has_its_place(text, line, column, words):
    with pytest.raises(MalformedError) as caught:
        read_map(text)
    found = caught.value.diagnostic
    assert found.code == "LA989"
    assert found.because.startswith(f"line {line}, column {column}: ")
    assert words in found.because


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "0 digits, needed 256 hexadecimal digits"),
        (RAW.hex() + "00", "258 digits, needed 256 hexadecimal digits"),
        (RAW.hex()[:-1], "255 digits, needed 256 hexadecimal digits"),
        ("uint64_t x[3] = {1, 2, 3};", "3 numbers of 64 bits, needed 16 of these"),
        ("{0x10, 0x20}", "2 numbers of 8 bits, needed 128 of these"),
        ("b'abc'", "3 bytes, needed 256 hexadecimal digits"),
        ("0x" + "0" * 20, "20 digits, needed 256 hexadecimal digits"),
    ],
)
def test_another_size_says_what_was_found_and_needed(text, found):
    with pytest.raises(MalformedError) as caught:
        read_map(text)
    assert caught.value.diagnostic.because == f"found {found} (128 bytes)"
    with pytest.raises(MalformedError, match=r"\(128 bytes\), or .* \(64 bytes\)"):
        diagnose(text)


def test_the_order_of_bytes_is_never_guessed(monkeypatch):
    words = [int.from_bytes(RAW[at : at + 4], "big") for at in range(0, 128, 4)]
    text = " ".join(f"0x{word:08x}" for word in words)
    assert read_map(text).form == "digits: 32 numbers of 32 bits, highest byte first"
    broken = text.replace("0x10650000", "0x10650001")  # a reserved bit: no order makes a map
    assert "in no byte order a map that a driver writes" in diagnose(broken).read_as
    monkeypatch.setattr(texts, "_is_map", lambda *_: True)
    with pytest.raises(MalformedError, match="LA989 the dump is ambiguous"):
        read_map(text)


def test_no_map_is_another_with_its_bytes_turned():
    """The alignment that a map states stays none in every other order, so at most one order is a map."""
    for alignment in (16, 256, 512, 1024):
        raw = alignment.to_bytes(8, "little")
        for size in (2, 4, 8):
            turned = b"".join(raw[at : at + size][::-1] for at in range(0, 8, size))
            assert int.from_bytes(turned, "little") not in (16, 256, 512, 1024)


def test_numbers_are_those_of_c():
    text = ", ".join(["0x10", "0b10000", "020", "16", "1'6ull", "0X10u", *["0"] * 122])
    assert dumps.readings(f"uint8_t x[] = {{{text}}};", (128,))[0].raw == bytes([16] * 6 + [0] * 122)


def test_other_kinds_of_maps():
    column = im2col.encode(im2col.Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64))
    words = ", ".join(f"0x{int.from_bytes(column[at : at + 8], 'big'):016x}" for at in range(0, 128, 8))
    assert read_map(words).raw == column
    assert diagnose(words).troubles[0].rule == "IM2COL"
    packed = TensorMap("u4_align16", (256, 64), (128,), (128, 8), swizzle="128B_ATOM_32B")
    raw = tensormap.encode_documented(packed, "sm_100a")
    words = ", ".join(f"0x{int.from_bytes(raw[at : at + 4], 'big'):08x}" for at in range(0, 128, 4))
    assert read_map(words, "sm_100a").raw == raw
    assert diagnose(RAW[:64].hex(" ")).tensor_map == TM  # the half that has fields


def test_layouts_are_not_taken_for_dumps():
    for text in (
        "(4,8):(1,4)", "64:1", "1024: 64", "4:1", "Sw<3,4,3> o 0 o (64,64):(64,1)", "{ [i] -> [2i] : 0 <= i < 4 }",
        "[N] -> { [i] : 0 <= i < N }", "F2[lane=(1,0)(0,1) -> dim0:2, dim1:2]", "lane 4:1, register 2:4 -> x:8",
        "x 8:1 -> x_in:4, x_out:2 | x<5", "[[ T0:0, T0:1]\n[ T1:0, T1:1]]", "Warp0:\n( 0,0), ( 1,0)", "12345678",
    ):  # fmt: skip
        assert not dumps.is_dump(text), text


def test_matrix_descriptors():
    word = wgmma.MatrixDescriptor(32, 16, 1024, 0, "128B").encode()
    found = la.explain(f" {word:#018x}ull ")
    assert (found.kind, found["stride_bytes"], found["swizzle"]) == ("descriptor", 1024, "128B")
    assert la.explain(wgmma.decode(word)).to_json() == found.to_json()
    other = tcgen05.MatrixDescriptor(32, 16, 1024, 0, "128B").encode()
    assert la.explain(f"{other:#x}", target="sm_100a")["matrix"]["of"] == "tcgen05"
    with pytest.raises(MalformedError, match=r"reserved bits \[48:46\] are set"):
        la.explain(f"{other:#x}")
    assert run("explain", f"{word:#x}")[0] == PROVED
    assert run("explain", f"{other:#x}")[0] == REFUTED
    assert run("explain", f"{word:#x}", "--target", "sm_100a")[0] == REFUTED


# --- the command line -------------------------------------------------------------------------------------------------


def test_commands_read_files_pipes_and_texts(tmp_path):
    binary, text = tmp_path / "map", tmp_path / "dump.txt"
    binary.write_bytes(RAW)
    text.write_text("".join(f"{at:08x}: {RAW[at : at + 16].hex(' ', 2)}  abcd\n" for at in range(0, 128, 16)))
    for verb in ("explain", "diagnose"):
        plain = run(verb, RAW.hex())
        assert plain[0] == PROVED
        assert run(verb, str(binary)) == plain
        assert run(verb, "-", stdin=RAW) == plain
        code, out, _ = run(verb, str(text))
        assert code == PROVED
        assert "xxd: in the order of memory" in out
        assert run(verb, "-", stdin=text.read_text())[1] == out
    emitted = run("emit", "bytes", RAW.hex())[1]
    assert run("emit", "raw", str(text), "-o", str(tmp_path / "raw"))[0] == PROVED
    assert (tmp_path / "raw").read_bytes() == RAW
    assert run("explain", emitted)[0] == PROVED
    code, _, told = run("explain", RAW.hex() + "0")
    assert code == USAGE
    assert "found 257 digits, needed 256 hexadecimal digits (128 bytes)" in told


def test_an_address_is_an_argument(tmp_path):
    plan = la.tensormap(((1024, 512), None, "bf16"), (64, 64))
    at = 0x7F0000001000
    assert tensormap.decode(plan.encode(base_address=at)).base_address == at
    assert plan.encode() == plan.raw
    later = la.synth.synthesize_tensormap(plan.problem.to_json() | {"base_elem_offset": 64})
    assert tensormap.decode(later.encode(at)).base_address == at + 128
    for wrong, rule in ((at + 8, "BASE_ALIGN"), (1 << 57, "BASE_RANGE")):
        with pytest.raises(TargetRuleError) as caught:
            plan.encode(wrong)
        assert caught.value.rule == rule
    for wrong in (-16, 1.5, "x", True, None):
        with pytest.raises(MalformedError, match="base_address"):
            plan.encode(wrong)
    with pytest.raises(MalformedError, match=r"plan\.encode\(base_address=\.\.\.\)"):
        plan.with_changes(base_address=at)
    assert plan.with_changes(oob="weak").oob == "weak"
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    code, out, _ = run("emit", "bytes", str(file), "--base-address", hex(at))
    assert code == PROVED
    assert read_map(out).raw == plan.encode(at)
    assert read_map(run("emit", "bytes", RAW.hex(), "--base-address", "4096")[1]).raw[:8] == (4096).to_bytes(
        8, "little"
    )
    assert "BASE_ALIGN" in run("emit", "bytes", str(file), "--base-address", "0x8")[2]
    assert run("emit", "host", str(file), "--base-address", "0x1000")[0] == USAGE
    assert run("emit", "bytes", str(file), "--base-address", "x")[0] == USAGE


# --- the driver's names and calls -------------------------------------------------------------------------------------


def test_enumerators_are_names_of_fields():
    for field, names in ENUMERATORS.items():
        for name, enumerator in names.items():
            assert name_of_enumerator(field, enumerator) == name
            assert name_of_enumerator(field, f"CUtensorMapX::{enumerator}") == name
            other = "dtype" if field != "dtype" else "swizzle"
            assert name_of_enumerator(other, enumerator) == enumerator
    given = TensorMap(
        "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", (512, 1024), (1024,), (64, 64), (), "CU_TENSOR_MAP_INTERLEAVE_NONE",
        "CU_TENSOR_MAP_SWIZZLE_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_256B", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    )  # fmt: skip
    assert given == TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", l2_promotion="256B")
    bindings = IntEnum("CUtensorMapSwizzle", {"CU_TENSOR_MAP_SWIZZLE_64B": 2})
    assert TensorMap("u8", (64,), (), (16,), swizzle=bindings.CU_TENSOR_MAP_SWIZZLE_64B).swizzle == "64B"
    with pytest.raises(MalformedError, match="CU_TENSOR_MAP_INTERLEAVE_NONE is a value of interleave"):
        TensorMap("u8", (64,), (), (16,), swizzle="CU_TENSOR_MAP_INTERLEAVE_NONE")
    problem = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"},
        "tile": [64, 64], "oob_fill": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA",
        "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "CU_TENSOR_MAP_SWIZZLE_128B"},
    }  # fmt: skip
    found = TensorMapProblem.from_json(problem)
    assert (found.dtype, found.swizzle, found.oob_fill) == ("bf16", "128B", "NAN")
    of = TensorMapProblem.of(
        ((1024, 512), None, "bf16"), (64, 64), "(64,64):(64,1)", swizzle="CU_TENSOR_MAP_SWIZZLE_128B"
    )
    assert of.swizzle == "128B"
    operand = OperandProblem.of("A", "bf16", "(64,64):(64,1)", swizzle="CU_TENSOR_MAP_SWIZZLE_128B").to_json()
    operand["smem"]["swizzle"] = "CU_TENSOR_MAP_SWIZZLE_128B"
    assert OperandProblem.from_json(operand).swizzle == "128B"


def test_a_call_of_the_driver_is_read():
    found = diagnose(CALL)
    assert found.tensor_map == TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096)
    assert la.explain(CALL)["swizzle"] == "128B"
    written = host_map(TM)
    assert diagnose(written).tensor_map == TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")
    assert "the address 'address' taken as 0" in diagnose(written).read_as
    literal = (
        "cuTensorMapEncodeTiled(&m, CUtensorMapDataType(9), 2u, reinterpret_cast<void*>(0x1000),"
        "(cuuint64_t[]){512, 1024}, (cuuint64_t[1]){2 * N}, (cuuint32_t[]){64, 64}, (cuuint32_t[]){1, 1},"
        "(CUtensorMapInterleave)0, (CUtensorMapSwizzle)3, CU_TENSOR_MAP_L2_PROMOTION_NONE, 0)"
    )
    with pytest.raises(MalformedError, match=r"globalStrides\[0\] must be a number, not '2 \* N'"):
        diagnose(literal.replace("CUtensorMapDataType(9)", "9"))
    made = literal.replace("CUtensorMapDataType(9)", "(CUtensorMapDataType)9").replace("2 * N", "1024")
    assert diagnose(made).tensor_map == found.tensor_map
    refused = la.explain(CALL.replace("64, 64}", "64, 300}"))
    assert (refused.holds, "BOX_RANGE" in str(refused)) == (False, True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("steps,\n", "\n", "has 11 arguments, not 12"),
        ("SWIZZLE_128B", "SWIZZLE_96B", "swizzle must be an enumerator of cuda.h or a number"),
        ("{64, 64}, steps", "{64, n}, steps", "boxDim[1] must be a number, not 'n'"),
        (" dims, strides", " extents, strides", "globalDim is 'extents', and the text has no array of this name"),
        (", 0);", ", 0", "is not closed"),
        ("NONE, 0);", "NONE, 0); cuTensorMapEncodeTiled(1);", "has 2 calls"),
        ("SWIZZLE_128B", "INTERLEAVE_16B", "CU_TENSOR_MAP_INTERLEAVE_16B is a value of interleave"),
    ],
)
def test_calls_that_cannot_be_read_name_the_argument(old, new, words):
    assert old in CALL
    with pytest.raises(LayoutError) as caught:
        diagnose(CALL.replace(old, new))
    assert words in caught.value.diagnostic.because


def test_arguments_follow_their_schema():
    schema = json.loads(schema_text("driver-call"))
    given, _ = tensormap.read_call(CALL)
    document = {"schema": "layoutalg/driver-call/1", **given}
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
    assert diagnose(document).accepted
    for wrong in (document | {"swizzle": "CU_TENSOR_MAP_SWIZZLE_96B"}, document | {"colour": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema, jsonschema.Draft202012Validator)
        with pytest.raises(MalformedError):
            diagnose(wrong)
    with pytest.raises(MalformedError, match="the schema must be"):
        diagnose(document | {"schema": "layoutalg/driver-call/2"})


TYPES, SWIZZLES = {"u8": 0, "f16": 6, "f32": 7, "bf16": 9}, {"NONE": 0, "32B": 1, "64B": 2, "128B": 3}
PROMOTIONS = {"NONE": 0, "64B": 1, "128B": 2, "256B": 3}


def printed(tm: TensorMap, entries: int = 5) -> str:
    """What CUTLASS prints of a map that the driver refuses; TileLang prints as many entries as there are dimensions."""
    size, rank = {"u8": 1, "f32": 4}.get(tm.dtype, 2), len(tm.dims)

    def row(numbers: tuple[int, ...], rest: int) -> str:
        return "(" + ",".join(map(str, (*numbers, *[rest] * (entries - len(numbers))))) + ")"

    rows = {
        "format": TYPES[tm.dtype], "dim": rank, "gmem_address": hex(tm.base_address) if tm.base_address else "0",
        "globalDim": row(tm.dims, 1), "globalStrides": row((size, *tm.strides_bytes), 0), "boxDim": row(tm.box, 1),
        "elementStrides": row(tm.element_strides, 1), "interleave": 0, "swizzle": SWIZZLES[tm.swizzle],
        "l2Promotion": PROMOTIONS[tm.l2_promotion], "oobFill": 0,
    }  # fmt: skip
    lines = [f"{name:<14} {value}" for name, value in rows.items()]
    return "\n".join(["TMA Desc Addr:   0x7ffd7d2800c0", *lines, "Error: Failed to initialize the TMA descriptor 1"])


@given(data=st.data(), rank=st.integers(1, 5), dtype=st.sampled_from(sorted(TYPES)))
def test_the_lines_of_a_failed_call_are_its_arguments(data, rank, dtype):
    def numbers(most, count):
        return tuple(data.draw(st.lists(st.integers(0, most), min_size=count, max_size=count)))

    tm = TensorMap(
        dtype, numbers(1 << 32, rank), tuple(16 * each for each in numbers(1 << 20, rank - 1)), numbers(300, rank),
        numbers(9, rank), swizzle=data.draw(st.sampled_from(sorted(SWIZZLES))),
        l2_promotion=data.draw(st.sampled_from(sorted(PROMOTIONS))),
        base_address=16 * data.draw(st.integers(0, 1 << 40)),
    )  # fmt: skip
    text = printed(tm, data.draw(st.sampled_from((rank, 5))))
    assert tensormap.texts.is_call(text)
    assert diagnose(text).tensor_map == diagnose(f"{text}\n{text}").tensor_map == tm
    assert diagnose(text).accepted == diagnose(tm).accepted


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("swizzle        3\n", "", "swizzle has no line"),
        ("(2,1024", "(1024", "must begin with the stride of an element, not 1024"),
        ("(64,64", "(64,n", "boxDim[1] must be a number, not 'n'"),
        ("Error", "dim            3\nError", "paste the lines of one map"),
        ("format         9", "format         half", "format must be a number, not 'half'"),
    ],
)
def test_lines_that_cannot_be_read_are_named(old, new, words):
    text = printed(TM)
    assert old in text
    with pytest.raises(LayoutError) as caught:
        diagnose(text.replace(old, new))
    assert words in caught.value.diagnostic.because
