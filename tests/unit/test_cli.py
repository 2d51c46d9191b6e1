"""The command line: exit codes, JSON answers, files and standard input, and no traceback whatever comes in."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from judges.commands import run

from layoutalg.cli import PROVED, REFUTED, UNKNOWN, USAGE

EXAMPLE = Path(__file__).parents[1] / "data" / "examples" / "problem.json"


def problem(**changes):
    return json.loads(EXAMPLE.read_text(encoding="utf-8")) | changes


def test_synth_check_validate_chain(tmp_path):
    plan = tmp_path / "plan.json"
    code, out, _ = run("synth", "tensormap", str(EXAMPLE), "-o", str(plan))
    assert code == PROVED
    assert out.startswith("admissible    1 issue of box [64, 64] bf16")
    assert run("check", str(plan))[0] == PROVED
    code, out, _ = run("validate", str(plan), "--device", "simulator")
    assert code == PROVED
    assert "simulator" in out
    code, out, _ = run("explain", str(plan))
    assert code == PROVED
    document = json.loads(plan.read_text(encoding="utf-8"))
    code, out, _ = run("explain", document["hex"], "--json")
    assert code == PROVED
    assert json.loads(out)["dtype"] == "bf16"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(4,8):(1,4)", "32:1"), ("F2[i=(2)(1) -> o:4]", "over F2"), ("Z[i:4=(3) -> o]", "4:3"),
        ("{ [i] -> [3i] : 0 <= i < 4 }", "4:3"), ("[N] -> { [i] -> [3i] : 0 <= i < N }", "0 <= i < N"),
        ("x (2,2):(2,1) -> x:4", "F2["), ("x 4:1 -> x:4 | x<3", "the coordinate 3"), ("Sw<3,4,3>", "Sw<3,4,3>"),
    ],
)  # fmt: skip
def test_every_notation_is_explained(text, says):
    code, out, _ = run("explain", text)
    assert code == PROVED
    assert says in out


def test_a_tile_of_any_family_and_rank_is_planned():
    nvmma = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
    for words, says in (
        ((nvmma, "--shape", "128,64"), "digits (128:64, 64:1), swizzle 128B"),
        (("#ttg.padded_shared<[32:+4] {order = [1, 0], shape = [16, 32]}>",), "digits (16:36, 32:1), swizzle NONE"),
        (("(2,8,64):(512,64,1)",), "box [64, 8, 2]"),
        (("col 64:1, row 8:64 -> offset:512",), "box [64, 8]"),
        (("Sw<3,4,3> o 0 o (64,64):(64,1)",), "the closest hardware swizzle is Sw<3,3,3>, 128B"),
    ):
        code, out, _ = run("explain", *words)
        assert code == PROVED
        assert says in out
    assert run("explain", nvmma, "--shape", "128x64")[0] == USAGE
    assert run("explain", nvmma)[0] == USAGE


def test_json_answer_has_the_contract_s_keys():
    code, out, _ = run("synth", "tensormap", str(EXAMPLE), "--json")
    answer = json.loads(out)
    assert code == PROVED
    assert answer["verdict"] == "admissible"
    assert len(bytes.fromhex(answer["hex"])) == 128
    assert answer["issues"] == [{"coords": [0, 0], "smem_offset_bytes": 0}]
    assert (answer["expect_tx_bytes"], answer["smem_align_bytes"], answer["oob"]) == (8192, 1024, "exact")
    assert answer["certificate"]["digest"]


def test_standard_input_and_lists():
    both = [problem(), problem(tile=[64, 64], smem={"modes": [[[64, 1]], [[64, 64]]], "swizzle": "128B"})]
    code, out, _ = run("synth", "tensormap", "-", "--json", stdin=json.dumps(both).encode())
    assert code == REFUTED
    first, second = json.loads(out)
    assert (first["verdict"], second["verdict"]) == ("admissible", "inadmissible")
    assert {violation["rule"] for violation in second["violations"]} == {"INNER_CONTIGUOUS"}
    assert second["repairs"][0]["name"] == "transpose while reading"
    code, _, _ = run("synth", "tensormap", "-", stdin=json.dumps(second["repairs"][0]["document"]).encode())
    assert code == PROVED


def test_a_bad_entry_of_a_list_leaves_the_others_answered():
    code, out, _ = run("synth", "tensormap", "-", "--json", stdin=json.dumps([problem(), {"schema": 1}]).encode())
    assert code == USAGE
    assert [answer["verdict"] for answer in json.loads(out)] == ["admissible", "error"]


def test_a_mutated_plan_is_refuted_with_the_place():
    _, out, _ = run("synth", "tensormap", str(EXAMPLE), "--json")
    plan = json.loads(out)
    plan["issues"][0]["coords"] = [8, 0]
    code, out, _ = run("check", "-", "--json", stdin=json.dumps(plan).encode())
    assert code == REFUTED
    witness = json.loads(out)["witness"]
    assert witness["what"] == "wrong global element"
    assert (witness["tile"], witness["expected_byte"], witness["got_byte"]) == ([0, 0], 0, 16)
    code, out, _ = run("validate", "-", "--device", "simulator", stdin=json.dumps(plan).encode())
    assert code == REFUTED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "required"),
        (("fly",), "invalid choice"),
        (("synth",), "required"),
        (("synth", "tensormap"), "required"),
        (("synth", "tensormap", "/nonexistent/x.json"), "cannot read the document"),
        (("explain", "(4,8:(1,4)"), "^"),
        (("explain", "hello"), "malformed"),
        (("explain", "ab" * 60), "256 hexadecimal digits"),
        (("explain", "(4,8):(1,4)", "--dtype", "fp99"), "--dtype"),
        (("explain", "(4,8):(1,4)", "--target", "sm_1"), "--target"),
        (("validate", str(EXAMPLE), "--device", "abacus"), "invalid choice"),
        (("demo", str(EXAMPLE)), "tiles"),
    ],
)
def test_bad_usage_is_64(words, said):
    code, out, err = run(*words)
    assert code == USAGE
    assert said in out + err


def test_budget_is_2():
    code, out, _ = run("synth", "tensormap", str(EXAMPLE), "--budget", "0", "--json")
    assert code == UNKNOWN
    assert json.loads(out)["verdict"] == "unknown"
    assert json.loads(out)["error"]["because"]


def test_an_illegal_descriptor_names_the_field():
    _, out, _ = run("synth", "tensormap", str(EXAMPLE), "--json")
    raw = bytearray.fromhex(json.loads(out)["hex"])
    raw[8] |= 0x70  # rank 8
    code, out, _ = run("explain", raw.hex())
    assert code == REFUTED
    assert "field rank of the tensor map is illegal" in out
    for seed in range(20):
        code, out, _ = run("explain", random.Random(seed).randbytes(128).hex(), "--json")
        assert code == REFUTED
        assert "is illegal" in json.loads(out)["illegal"][0]


def test_nothing_is_half_written(tmp_path):
    target = tmp_path / "missing" / "plan.json"
    code, _, err = run("synth", "tensormap", str(EXAMPLE), "-o", str(target))
    assert code == USAGE
    assert "cannot write" in err
    kept = tmp_path / "plan.json"
    kept.write_text("precious", encoding="utf-8")
    assert run("synth", "tensormap", "-", "-o", str(kept), stdin=b"{")[0] == USAGE
    assert kept.read_text(encoding="utf-8") == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("seed", range(60))
def test_garbage_never_crashes(seed):
    rng = random.Random(seed)
    text = json.dumps(problem())
    choice = seed % 4
    if choice == 0:
        raw = rng.randbytes(rng.randrange(200))
    elif choice == 1:
        raw = text[: rng.randrange(len(text))].encode()
    elif choice == 2:
        raw = bytearray(text.encode())
        for _ in range(3):
            raw[rng.randrange(len(raw))] = rng.randrange(32, 127)
        raw = bytes(raw)
    else:
        value = rng.choice([None, [], {}, 1e300, -1, True, "x", [[]], {"schema": None}, 2**70])
        key = rng.choice(list(problem()))
        raw = json.dumps(problem(**{key: value})).encode()
    for words in (("synth", "tensormap", "-", "--json"), ("check", "-"), ("validate", "-", "--device", "simulator")):
        code, _, _ = run(*words, stdin=raw)
        assert code in (PROVED, REFUTED, USAGE)
