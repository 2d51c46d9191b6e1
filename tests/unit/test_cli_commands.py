"""Commands as people type them: layouts, files and pipes in, text, pictures, source and JSON out."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from judges.commands import run

import layoutalg
from layoutalg.cli import PROVED, REFUTED, UNKNOWN, USAGE
from layoutalg.cli.commands import command_line
from layoutalg.cli.output import Steps
from layoutalg.cli.schemas import schema_names, schema_text
from layoutalg.codegen import gemm_kernel
from layoutalg.codegen.kernels import Form
from layoutalg.proofs.checker import check as verdict_of
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import SymbolicProblem, synthesize_symbolic, synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma
from layoutalg.targets.nvidia import tensormap

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "data" / "examples" / "problem.json"
PROBLEM = json.loads(EXAMPLE.read_text(encoding="utf-8"))
SOLVED = synthesize_tensormap(PROBLEM)
PLAN = SOLVED.to_json()
OPERAND = synthesize_wgmma(OperandProblem.of("A", "bf16", "Sw<3,3,3> o 0 o (64,64):(64,1)"))
TURNED = PROBLEM | {"smem": {"modes": [[[64, 1]], [[64, 64]]], "swizzle": "128B"}}
WIDE = PROBLEM | {"tile": [64, 128], "smem": {"modes": [[[64, 64]], [[64, 1], [2, 4096]]], "swizzle": "128B"}}
FRAGMENT = "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]"
NAMES = PROBLEM | {"assume": ["K % 8 == 0"], "global": PROBLEM["global"] | {"shape": ["M", "K"], "stride": ["K", 1]}}
NAMED = synthesize_symbolic(SymbolicProblem.from_json(NAMES)).to_json()
SW = "Sw<3,3,3> o 0 o (64,64):(64,1)"
TILES = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
SCHEMAS = {name: json.loads(schema_text(name)) for name in schema_names()}


def answered(*words: str, stdin: object = None) -> tuple[int, dict[str, object]]:
    """Run with ``--json``; the answer follows the schema that it names."""
    code, out, _ = run(*words, "--json", stdin=stdin)
    answer = json.loads(out)
    for one in answer if isinstance(answer, list) else [answer]:
        follows(one)
    return code, answer


def follows(document: dict[str, object]) -> None:
    name = re.fullmatch(r"layoutalg/([a-z-]+)/\d", str(document["schema"]))[1]
    jsonschema.validate(document, SCHEMAS[name], jsonschema.Draft202012Validator)


# --- schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_is_printed(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"layoutalg/{name}/{2 if name in ('certificate', 'fragment-plan') else 1}"
    assert run("schema", f"layoutalg/{name}/3")[0] == USAGE
    for asked in (name, SCHEMAS[name]["$id"]):
        code, out, _ = run("schema", asked)
        assert (code, json.loads(out)) == (PROVED, SCHEMAS[name])
    assert f"\n{name} " in "\n" + run("schema")[1]


def test_every_answer_follows_the_schema_that_it_names():
    assert answered("schema")[0] == PROVED
    for words, stdin, wanted in (
        (("synth", "tensormap", "-"), [PROBLEM, TURNED, {"schema": 1}], USAGE),
        (("synth", "tensormap", SW, "--tensor", "4096,8192"), None, PROVED),
        (("synth", "tensormap", "-", "--budget", "0"), PROBLEM, UNKNOWN),
        (("synth", "tensormap", "-"), NAMES, PROVED),
        (("synth", "tensormap", "-"), NAMES | {"assume": ["K % 8 == 4"]}, REFUTED),
        (("synth", "tensormap", "-"), NAMES | {"assume": ["K %"]}, USAGE),
        (("synth", "tensormap", "-", "--documented-only"), NAMES, USAGE),
        (("check", "-"), NAMED, PROVED),
        (("check", "-"), NAMED | {"guard": []}, REFUTED),
        (("emit", "host", "-"), NAMES, USAGE),
        (("validate", "-"), NAMES, USAGE),
        (("synth", "wgmma", SW, "--operand", "B"), None, PROVED),
        (("synth", "wgmma", "(64,64):(64,1)", "--operand", "A"), None, REFUTED),
        (("check", "-"), [PLAN, OPERAND.to_json(), PLAN | {"oob": "lost"}, 5], USAGE),
        (("validate", "-", "--device", "simulator"), [PLAN, PROBLEM, TURNED], REFUTED),
        (("explain", SW), None, PROVED),
        (("explain", "-"), PLAN, PROVED),
        (("explain", SOLVED.hex), None, PROVED),
        (("explain", "no layout"), None, USAGE),
        (("draw", "(4,8):(8,1)"), None, PROVED),
        (("emit", "host", "-"), PLAN, PROVED),
        (("emit", "raw", "-"), PROBLEM, PROVED),
        (("emit", "raw", "-"), TURNED, REFUTED),
        (("schema", "nothing"), None, USAGE),
        (("suggest", "--tensor", "4096,8192", "--tile", "128,64", "--for", "wgmma.A"), None, PROVED),
        (("suggest", "--tensor", "64,22", "--tile", "64,16", "--for", "wgmma.A"), None, REFUTED),
        (("suggest", "--tensor", "64,64", "--tile", "64,16", "--for", "nobody"), None, USAGE),
        (("banks", FRAGMENT, "(16,16):(16,1)", "--access", "ldmatrix"), None, PROVED),
        (("banks", "-", SW, "--access", "x"), "4:1", USAGE),
        (("swizzle", "rows", "-", "--tile", "64,64", "--form", "xor"), "columns", PROVED),
        (("swizzle", "rows", "--tile", "64,64", "--target", "gfx942", "--form", "tma"), None, UNKNOWN),
        (("swizzle", "rows:ldmatrix", "--tile", "64,64"), None, PROVED),
        (("swizzle", "rows:ldmatrix", "--tile", "64,64", "--bits", "64"), None, USAGE),
        (("swizzle", "rows", "--tile", "48,64"), None, USAGE),
        (("swizzle", "-", "-", "--tile", "64,64"), "rows", USAGE),
        (("padding", "33,70", "rows:1:store", "-", "--bits", "32"), "columns", PROVED),
        (("padding", "33,70", "rows:9"), None, USAGE),
        (("conversion", "-", "(32,2):(1,32)"), "(32,2):(2,1)", PROVED),
        (("conversion", "(32,2):(2,1)", "(32,2):(1,64)"), None, REFUTED),
        (("conversion", "(32,2):(2,1)", "(32,2):(1,32)", "--mechanism", "shared", "--smem", "5"), None, UNKNOWN),
    ):
        assert answered(*words, stdin=stdin)[0] == wanted, words


def test_the_documents_that_are_read_follow_their_schemas():
    follows(PROBLEM)
    follows(NAMES)
    follows(OPERAND.problem.to_json())
    follows(json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8")))
    for tile in TILES[::10]:
        follows(tile["problem"])
    for wrong in (PLAN | {"hex": "00"}, PROBLEM | {"more": 1}, PROBLEM | {"direction": "stor"}, dict(PLAN, issues=3)):
        with pytest.raises(jsonschema.ValidationError):
            follows(wrong)


# --- synth and check --------------------------------------------------------------------------------------------------


def test_what_synth_writes_of_a_list_check_reads(tmp_path):
    file = tmp_path / "answers.json"
    assert run("synth", "tensormap", "-", "-o", str(file), stdin=[PROBLEM, TURNED, {"schema": 1}])[0] == USAGE
    code, out, _ = run("check", str(file))
    assert code == UNKNOWN  # the third was not decided
    first, second, third = re.split(r"^\[\d\]\n", out, flags=re.M)[1:]
    assert first.startswith("proved")
    assert second.startswith("inadmissible  there is no plan to check")
    assert "INNER_CONTIGUOUS" in second
    assert third.startswith("unknown       there is no plan to check: LA010")
    _, answers = answered("check", str(file))
    assert [answer["verdict"] for answer in answers] == ["proved", "inadmissible", "unknown"]
    for wrong in ({"violations": []}, {"violations": [{}]}, {"violations": None}, {"verdict": "admissible"}):
        refusal = json.loads(file.read_text(encoding="utf-8"))[1] | wrong
        assert run("check", "-", stdin=refusal)[0] == USAGE


@pytest.mark.parametrize(("document", "kind"), [(PROBLEM, "tensormap"), (OPERAND.problem.to_json(), "wgmma")])
def test_a_problem_is_not_checked_and_is_told_where_to_go(document, kind):
    code, _, err = run("check", "-", stdin=document)
    assert code == USAGE
    assert f"run layoutalg synth {kind}" in err


def test_a_layout_and_a_tensor_are_a_problem():
    code, plan = answered("synth", "tensormap", SW, "--tensor", "1024,512")
    assert code == PROVED
    assert plan["hex"] == SOLVED.hex
    assert plan["problem"]["tile"] == [64, 64]
    _, same = answered("synth", "tensormap", "-", "--tensor", "1024,512", "--stride", "512,1", stdin=SW + "\n")
    assert same == plan
    _, store = answered("synth", "tensormap", SW, "--tensor", "1024,512", "--store", "--dtype", "f16")
    assert (store["problem"]["direction"], store["tensormap"]["dtype"]) == ("store", "f16")
    _, operand = answered("synth", "wgmma", SW, "--operand", "A")
    assert operand == OPERAND.to_json()
    assert run("check", "-", stdin=operand)[0] == PROVED
    assert answered("synth", "tensormap", SW, "--tensor", "1024,512", "--dtype", "torch.bfloat16")[1] == plan
    assert run("synth", "tensormap", SW, "--tensor", "1024,512", "--dtype", "fp99")[0] == USAGE
    for words in (("tensormap", SW), ("wgmma", SW)):
        code, _, err = run("synth", *words)
        assert code == USAGE
        assert "layout notation needs --" in err


def test_maps_that_break_the_documented_text_are_refused_on_request():
    _, plan = answered("synth", "tensormap", "-", stdin=WIDE)
    _, documented = answered("synth", "tensormap", "-", "--documented-only", stdin=WIDE)
    assert (plan["undocumented"], documented["undocumented"]) == (["STRIDE_NEST"], [])
    assert (len(plan["issues"]), len(documented["issues"])) == (1, 2)
    code, answer = answered("check", "-", "--documented-only", stdin=plan)
    assert (code, answer["witness"]["rules"]) == (REFUTED, "STRIDE_NEST")
    assert run("check", "-", "--documented-only", stdin=documented)[0] == PROVED
    for words in (("emit", "host", "-"), ("emit", "bytes", plan["hex"])):
        assert run(*words, stdin=plan)[0] == PROVED
        assert answered(*words, "--documented-only", stdin=plan)[0] == REFUTED
    assert run("emit", "bytes", documented["hex"], "--documented-only")[0] == PROVED


# --- subjects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["(4,8):(1,4)", "{ [i] -> [3i] : 0 <= i < 4 }", "[N] -> { [i] -> [i] : 0 <= i < N }"])
def test_a_text_is_the_same_as_an_argument_a_file_and_a_pipe(text, tmp_path):
    file = tmp_path / "layout.txt"
    file.write_text(text + "\n", encoding="utf-8")
    asked = [run("explain", text), run("explain", str(file)), run("explain", "-", stdin=text)]
    assert asked[0][0] == PROVED
    assert asked[0] == asked[1] == asked[2]


def test_bytes_are_read_from_anywhere(tmp_path):
    file = tmp_path / "map.hex"
    lines = "\n".join(SOLVED.hex[at : at + 64] for at in range(0, 256, 64))
    file.write_text(f"0x{lines}\n", encoding="utf-8")
    asked = [run("explain", SOLVED.hex), run("explain", str(file)), run("explain", "-", stdin=lines)]
    assert asked[0][0] == PROVED
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize("command", [("explain",), ("draw",), ("emit", "host"), ("check",), ("synth", "tensormap")])
@pytest.mark.parametrize("name", ["missing.json", "./plans/x", "/nonexistent/a.ttgir"])
def test_a_missing_file_is_called_one(command, name):
    code, _, err = run(*command, name)
    assert code == USAGE
    assert "cannot read the document" in err
    assert "o such file" in err


# --- suggest and banks ------------------------------------------------------------------------------------------------


def test_what_is_suggested_is_planned_and_its_plans_check():
    words = ("suggest", "--tensor", "4096,8192", "--tile", "128,64", "--for", "wgmma.A", "--for", "tma.store")
    code, out, _ = run(*words)
    assert code == PROVED
    assert " 1. Sw<3,3,3> o 0 o (128,64):(64,1)" in out
    _, answer = answered(*words)
    best = answer["choices"][0]
    assert run("check", "-", stdin=[best["plan"], *best["operands"]])[0] == PROVED
    assert run("suggest", "--tensor", "64,64", "--tile", "64,64")[0] == USAGE


def test_banks_are_those_of_the_library():
    for shared in ("(16,16):(16,1)", "(16,16):(24,1)"):
        report = layoutalg.banks(FRAGMENT, shared, 16, "ldmatrix")
        assert run("banks", FRAGMENT, shared, "--access", "ldmatrix")[:2] == (PROVED, f"{report}\n")
        assert answered("banks", "-", shared, "--access", "ldmatrix", stdin=FRAGMENT)[1] == report.to_json()
    assert run("banks", "(32,4):(4,1)", "--bits", "7")[0] == USAGE
    assert run("banks", "-", "-", stdin=FRAGMENT)[0] == USAGE


BLOCKED = "#ttg.blocked<{sizePerThread=[1,4], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]}>"
VALUES = "((8,4),(2,8)):((64,2),(1,8))"


def test_extents_that_a_layout_has_are_not_asked_for():
    wanted = run("banks", BLOCKED, SW, "--tile", "64,64")
    assert wanted[0] == PROVED
    assert run("banks", BLOCKED, SW) == run("banks", BLOCKED, "Sw<3,4,3,byte> o 0 o (64,64):(64,1)") == wanted
    assert run("banks", BLOCKED, "(64,64):(64,1)")[1] != wanted[1]
    named = run("swizzle", "rows", FRAGMENT, "--tile", "16,16")
    assert named[0] == PROVED
    assert run("swizzle", "rows", FRAGMENT) == named
    assert run("padding", "64,64", VALUES, BLOCKED)[0] == PROVED
    shared = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    for words in (("banks", BLOCKED, shared), ("swizzle", "rows", "columns"), ("swizzle", VALUES)):
        code, _, err = run(*words)
        assert code == USAGE
        assert "--tile" in err


def test_kinds_of_accesses_are_written_alike():
    for command in (("padding", "64,64"), ("swizzle", "--tile", "64,64")):
        told = [run(*command, f"{access}:{kind}")[1] for access in ("rows", VALUES) for kind in ("load", "store")]
        assert [("ld.shared" in words, "st.shared" in words) for words in told] == [(True, False), (False, True)] * 2
    assert run("padding", "64,64", "store rows") == run("padding", "64,64", "rows:store")
    for wrong in ("rows:lod", "colums", "store rows:store", "ldmatrix:load"):
        assert run("padding", "64,64", wrong)[0] == USAGE


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("banks", FRAGMENT, "(16,16):(16,1)"), "numbers: distinct words of a bank"),
        (("padding", "64,64", "rows", "ldmatrix"), "rows, sm_90a, dense"),
        (("swizzle", "rows", "columns", "--tile", "64,64"), "row-major: st.shared.v4.b32, 4 turns"),
    ],
)
def test_a_question_about_banks_is_answered_and_drawn(words, says, tmp_path):
    told = run(*words)
    file = tmp_path / "picture.svg"
    for option in ("--picture", "-o", "--output"):
        assert run(*words, option, str(file)) == told
        picture = file.read_text(encoding="utf-8")
        assert picture.startswith("<svg ")
        assert says in picture
        file.unlink()
    code, answer = answered(*words, "--picture", str(file))
    assert (code, answer["schema"].startswith(f"layoutalg/{words[0]}")) == (PROVED, True)
    assert file.read_text(encoding="utf-8") == picture


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (("banks", "(32,4):(4,1)", "--bits", "16"), "--bits", "32"),
        (("swizzle", "rows", "--tile", "64,64"), "--tile", "64,32"),
        (("padding", "64,64", "rows", "--form", "interval"), "--form", "pitches"),
        (("conversion", "(32,2):(2,1)", "(32,2):(1,32)", "--target", "sm_80"), "--target", "sm_90a"),
        (("explain", SW, "--dtype", "f16"), "--dtype", "f16"),
    ],
)
def test_an_option_that_has_one_value_is_not_given_twice(words, option, value):
    assert run(*words)[0] == PROVED
    code, _, err = run(*words, option, value)
    assert code == USAGE
    assert re.search(rf"argument \S*{option}\S*: was given twice, the second time as", err)
    assert f"usage: layoutalg {words[0]}" in err


def test_wrong_options_are_called_by_their_names():
    for words, name in (
        (("banks", "(32,4):(4,1)", "--access", "lod"), "--access"),
        (("swizzle", "rows", "--tile", "64,64", "--form", "xor", "--chunk", "7"), "--chunk"),
        (("swizzle", "rows", "--tile", "48,64"), "--tile"),
        (("conversion", "(32,2):(2,1)", "(32,2):(1,32)", "--bits", "4"), "--dtype"),
    ):
        code, _, err = run(*words)
        assert code == USAGE
        assert f"in     {name}\n" in err
    code, _, err = run("banks", "(32,4):(4,1)", "--acces", "load", "--colour", "red")
    assert code == USAGE
    assert err.startswith("usage: layoutalg banks ")


# --- draw and emit ----------------------------------------------------------------------------------------------------


def test_pictures_are_text_svg_or_a_file(tmp_path):
    assert run("draw", "(2,4):(4,1)")[1] == "0 1 2 3\n4 5 6 7\n"
    code, out, _ = run("draw", "-", "--svg", stdin="(2,4):(4,1)")
    assert code == PROVED
    file = tmp_path / "tile.svg"
    assert run("draw", "(2,4):(4,1)", "-o", str(file)) == (PROVED, "", "")
    assert file.read_text(encoding="utf-8") == out
    assert out.startswith("<svg ")
    assert "first difference at flat coordinate 1" in run("draw", "(2,4):(4,1)", "--against", "(2,4):(1,2)")[1]
    assert run("draw", "-", stdin=PLAN)[1] == str(SOLVED) + "\n"
    assert "<svg " in run("draw", "-", "--svg", stdin=PROBLEM)[1]
    assert answered("draw", "-", stdin=TURNED)[0] == REFUTED
    for words in ((SOLVED.hex,), ("(4,8",), ("(2,4):(4,1)", "--view", "matrix"), ("-", "--against", "4:1")):
        assert run("draw", *words, stdin=PLAN)[0] == USAGE


def test_drawn_text_hides_no_control_characters():
    for words in (("draw", "(2,4):(4,1)\x1b[31m"), ("draw", "\x1b]0;title\x07"), ("explain", "4:1\x1b[2J")):
        _, out, err = run(*words)
        assert all(line.isprintable() for line in (out + err).split("\n"))


def test_source_of_every_kind_is_emitted(tmp_path):
    for what, says in (("host", "cuTensorMapEncodeTiled("), ("bytes", "[128] = {"), ("kernel", "__global__")):
        code, out, _ = run("emit", what, "-", "--name", "mine", stdin=PLAN)
        assert code == PROVED
        assert says in out
        assert re.search(r"\bmine\b", out)
        file = tmp_path / what
        assert run("emit", what, "-", "--name", "mine", "-o", str(file), stdin=PLAN) == (PROVED, "", "")
        assert file.read_text(encoding="utf-8") == out
    raw = tmp_path / "map.bin"
    assert run("emit", "raw", SOLVED.hex, "-o", str(raw)) == (PROVED, "", "")
    assert raw.read_bytes() == SOLVED.raw
    done = subprocess.run(
        [sys.executable, "-m", "layoutalg", "emit", "raw", str(EXAMPLE)], capture_output=True, cwd=ROOT, check=True
    )
    assert done.stdout == tensormap.encode(SOLVED.tensor_map)
    assert f"{OPERAND.tiles[3].encoded:#018x}ull" in run("emit", "bytes", "-", stdin=OPERAND.to_json())[1]


def test_nothing_is_emitted_of_what_is_not_proved(tmp_path):
    forged = PLAN | {"issues": [{"coords": [8, 0], "smem_offset_bytes": 0}]}
    kept = tmp_path / "kept"
    kept.write_text("precious", encoding="utf-8")
    for stdin, wanted in ((forged, REFUTED), (TURNED, REFUTED), ({"schema": "x"}, USAGE), ("(4,8):(1,4)", USAGE)):
        for what in ("host", "bytes", "raw", "kernel"):
            code, out, _ = run("emit", what, "-", stdin=stdin)
            assert code == wanted
            assert "#include" not in out
            assert "0x" not in out
    assert run("emit", "host", "-", "-o", str(kept), stdin={"schema": "x"})[0] == USAGE
    assert kept.read_text(encoding="utf-8") == "precious"
    for words in (("kernel", SOLVED.hex), ("host", "ab" * 60), ("host", str(EXAMPLE), "--name", "a;b")):
        assert run("emit", *words)[0] == USAGE
    assert run("emit", "kernel", "-", stdin=OPERAND.to_json())[0] == USAGE


def test_a_product_is_emitted_with_its_launch_and_its_proof(tmp_path):
    file = tmp_path / "gemm.cu"
    words = ("emit", "gemm", "512", "256", "128", "--form", "rows=128,columns=128,cluster=2", "--name", "mine")
    code, out, _ = run(*words)
    assert code == PROVED
    assert re.search(r"__cluster_dims__\(2, 1, 1\) __launch_bounds__\(384, 1\) mine\(", out)
    code, lines, _ = run(*words, "-o", str(file))
    assert code == PROVED
    assert file.read_text(encoding="utf-8") == out
    assert out.startswith("".join([f"// {line}\n" for line in lines.splitlines()]))
    assert "pipeline      safe for every N >= 0, proved by event graph\n" in lines
    assert "launch        up to 8 blocks, a multiple of 2; 384 threads" in lines
    assert f"map_d         {answered(*words)[1]['launch']['maps']['map_d']}\n" in lines
    spans = run(
        "emit", "gemm", "64", "64", "96", "--form", "rows=128,columns=64,swizzle=64,depth=192", "--name", "spans"
    )
    form = Form(128, 64, swizzle="64B", depth=192)
    assert spans[1].endswith(gemm_kernel((64, 64, 96), form=form, name="spans").kernel.text)
    answer = answered("emit", "gemm", "64", "64", "32", "--dtype", "f16", "--result", "f16", "--major-b", "MN")[1]
    assert answer["proof"]["verdict"] == "proved"
    assert answer["text"].endswith(gemm_kernel((64, 64, 32), "f16", result="f16", major_b="MN").kernel.text)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("gemm", "512", "512"), USAGE),
        (("gemm", "512", "512", "-"), USAGE),
        (("gemm", "512", "512", "512", "512"), USAGE),
        (("gemm", "64", "64", "65"), REFUTED),  # rows of 130 bytes
        (("gemm", "64", "64", "64", "--form", "rows=64"), USAGE),
        (("gemm", "64", "64", "64", "--form", "rows=64,columns=64,columns=64"), USAGE),
        (("gemm", "64", "64", "64", "--form", "rows=128,columns=64,width=2"), USAGE),
        (("gemm", "64", "64", "64", "--form", "rows=128,columns=64,depth=2"), USAGE),
        (("gemm", "64", "64", "64", "--form", "rows=128,columns=64,swizzle=48"), USAGE),
        (("gemm", "64", "64", "64", "--form", "128x64"), USAGE),
        (("gemm", "64", "64", "64", "--form", "rows=96,columns=64"), USAGE),
        (("gemm", "64", "64", "64", "--dtype", "f32"), USAGE),
        (("gemm", "64", "64", "64", "--dtype", "e4m3", "--major-a", "MN"), USAGE),
        (("gemm", "64", "64", "64", "--documented-only"), USAGE),
        (("host", "-", "--result", "f16"), USAGE),
        (("host", "-", "-"), USAGE),
    ],
)
def test_products_and_plans_have_their_own_options(words, code, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("precious", encoding="utf-8")
    found, out, _ = run("emit", *words, "-o", str(kept), stdin=PLAN)
    assert (found, out, kept.read_text(encoding="utf-8")) == (code, "", "precious")


# --- questions about instructions -------------------------------------------------------------------------------------


def test_an_instruction_carries_a_layout_or_says_why_not(tmp_path):
    code, answer = answered("admissible", SW, "wgmma.A")
    assert (code, answer["verdict"]) == (PROVED, "admitted")
    assert answer["descriptor"] == layoutalg.admissible(SW, "wgmma.A").to_json()["descriptor"]
    assert verdict_of(answer["certificate"])[0] == PROVED
    code, answer = answered("admissible", "(64,64):(72,1)", "wgmma.A", "--dtype", "f16")
    assert (code, answer["verdict"], answer["dtype"]) == (REFUTED, "refused", "f16")
    assert answer["rules"] == list(layoutalg.admissible("(64,64):(72,1)", "wgmma.A", dtype="f16").rules)
    code, answer = answered("admissible", SW, "tma", "--budget", "0")
    assert (code, answer["verdict"]) == (UNKNOWN, "unknown")
    assert run("admissible", SW, "wgmma.A", "--target", "sm_80")[0] == REFUTED
    table = tmp_path / "table.json"
    table.write_text(json.dumps([[64 * row + column for column in range(64)] for row in range(8)]), encoding="utf-8")
    assert answered("admissible", str(table), "tma")[1]["descriptor"]["problem"]["tile"] == [8, 64]
    assert answered("admissible", "-", "tma", stdin=PROBLEM)[0] == PROVED
    for words in ((SW, "tma.of.nothing"), (SW, "nothing"), ("ab" * 128, "tma"), (SW, "tma", "--target", "sm_1")):
        assert run("admissible", *words)[0] == USAGE
        assert run("admissible", *words, "--json")[0] == USAGE
    assert run("admissible", SW)[0] == USAGE


def test_a_layout_is_factored_or_not():
    wanted = "F2[register=(1)(2)(8), lane=(4)(16)(32)(64)(128) -> offset:256]"
    code, answer = answered("factorise", wanted)
    assert (code, answer["rounds"], answer["least"]) == (PROVED, 4, True)
    assert verdict_of(answer["certificate"])[0] == PROVED
    assert run("factorise", wanted)[1].startswith("factored      tma on sm_90a, bf16: 4 shuffles")
    code, answer = answered("factorise", "F2[register=(2)(4)(8), lane=(16)(32)(64)(128)(256) -> offset:512]")
    assert (code, answer["schema"], answer["verdict"]) == (UNKNOWN, "layoutalg/verdict/1", "unknown")
    warps = "F2[register=(1)(2)(4), lane=(8)(16), warp=(96)(64) -> offset:128]"
    code, answer = answered("factorise", warps)
    assert (code, answer["rules"], answer["witness"]) == (REFUTED, ["FACTOR_WARP"], {"output_bit": 6})
    assert run("factorise", "-", stdin="ab" * 128)[0] == USAGE


def test_choices_are_ranked_or_measured(tmp_path, monkeypatch):
    code, answer = answered("tune", "gemm", "4096", "4096", "4096", "--top", "3")
    assert (code, answer["legal"], len(answer["trials"])) == (PROVED, 1372, 3)
    assert [each["measured"] for each in answer["trials"]] == [None] * 3
    assert run("tune", "gemm", "4096", "4096", "4096")[1].startswith("0 measured of 1372 legal choices")
    (tmp_path / "timer_of_test.py").write_text(
        "def seconds(choice):\n    return 1 / choice['rows']\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    for stored in (False, True):
        words = ("--measure", "timer_of_test:seconds", "--database", "results.db", "--top", "4")
        code, answer = answered("tune", "gemm", "1000", "1000", "1000", *words)
        assert (code, [each["stored"] for each in answer["trials"]]) == (PROVED, [stored] * 4)
    for wrong in (("--measure", "no_such_module:f"), ("--measure", "json"), ("--measure", ":"), ("--database", "x.db"),
                  ("--dask", "tcp://127.0.0.1:1")):  # fmt: skip
        assert run("tune", "gemm", "64", "64", "64", *wrong)[0] == USAGE
    for words in (("0", "1", "1"), ("1", "1"), ("1", "1", "x"), ("1", "1", "1", "--dtype", "u6")):
        assert run("tune", "gemm", *words)[0] == USAGE
    assert run("tune", "gemm", "64", "64", "64", "--target", "sm_80")[0] != PROVED


def test_a_map_is_diagnosed_from_bytes_digits_and_arguments(tmp_path):
    raw, digits = tmp_path / "map.bin", tmp_path / "map.txt"
    raw.write_bytes(bytes.fromhex(SOLVED.hex))
    digits.write_text(SOLVED.hex, encoding="utf-8")
    told = [run("diagnose", given) for given in (SOLVED.hex, str(raw), str(digits))]
    assert told[0][0] == PROVED
    assert told[0] == told[1] == told[2]
    call = {"dtype": "bf16", "dims": [500, 1024], "strides_bytes": [1000], "box": [72, 64], "swizzle": "128B"}
    code, answer = answered("diagnose", "-", stdin=call)
    assert (code, answer["accepted"]) == (REFUTED, False)
    assert {trouble["rule"] for trouble in answer["troubles"]} >= {"STRIDE_ALIGN", "SWIZZLE_INNER"}
    assert run("diagnose", answer["repaired_hex"])[0] == PROVED
    for wrong in ("00" * 40, "(4,8):(1,4)", str(tmp_path), "a\0b"):
        assert run("diagnose", wrong)[0] == USAGE


# --- help, version, demo ----------------------------------------------------------------------------------------------


def test_the_version_is_the_package_s():
    assert run("--version") == (PROVED, f"layoutalg {layoutalg.__version__}\n", "")


def test_every_help_has_examples_that_are_commands():
    names = re.search(r"\{([a-z_,]+)\}", command_line().format_help())[1].split(",")
    helps = [(), *((name,) for name in names), ("synth", "tensormap"), ("synth", "wgmma")]
    for words in helps:
        code, out, _ = run(*words, "--help")
        assert code == PROVED
        examples = re.findall(r"^  (.*layoutalg .*)$", out.split("examples:\n")[1], re.M)
        assert examples
        for example in examples:
            assert re.search(r"layoutalg (" + "|".join(names) + r")\b", example)


@pytest.mark.parametrize(
    "command", ["explain", "suggest", "banks", "admissible", "factorise", "synth", "draw", "schema"]
)
def test_examples_that_need_no_file_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = run(command, "--help")[1].split("examples:\n")[1]
    tried = 0
    for line in re.findall(r"^  layoutalg (.*)$", out, re.M):
        words = shlex.split(line)
        if not any(mark in line for mark in (".json", " | ", " < ")):
            assert run(*words)[0] == PROVED, line
            tried += 1
    assert tried


def collection(tmp_path: Path, every: int) -> str:
    file = tmp_path / "tiles.json"
    file.write_text(json.dumps({"schema": "layoutalg/real-tiles/1", "tiles": TILES[::every]}), encoding="utf-8")
    return str(file)


def test_the_demo_is_a_table_of_a_hundred_columns(tmp_path):
    code, out, _ = run("demo", collection(tmp_path, 6), "--device", "simulator")
    assert code == PROVED
    assert max(map(len, out.split("\n"))) <= 100
    for tile in TILES[::6]:
        assert len(re.findall(rf"^{tile['name']}\b.*$", out, re.M)) == 1
    for part in ("loads proved to match", "other loads (", "stores (", "refused", "fill     exact:", "remarkable"):
        assert part in out
    assert "NOT AS EXPECTED" not in out
    assert "LA400 no TensorMap carries this tile" in out
    code, answer = answered("demo", collection(tmp_path, 20), "--device", "simulator")
    assert code == PROVED
    assert [row["name"] for row in answer["rows"]] == [tile["name"] for tile in TILES[::20]]


def test_a_demo_that_goes_wrong_says_so(tmp_path):
    file = tmp_path / "tiles.json"
    wrong = [TILES[0] | {"expect": "inadmissible"}, TILES[-1]]
    file.write_text(json.dumps({"schema": "layoutalg/real-tiles/1", "tiles": wrong}), encoding="utf-8")
    code, out, _ = run("demo", str(file), "--device", "simulator")
    assert code == REFUTED
    assert f"NOT AS EXPECTED: {TILES[0]['name']}" in out
    code, out, _ = run("demo", str(file), "--device", "simulator", "--budget", "0")
    assert code == UNKNOWN
    assert "not decided (2)" in out


def test_in_a_pipe_progress_is_a_line_every_few_seconds(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("layoutalg.cli.output.time.monotonic", lambda: now[0])
    steps = Steps(100)
    for count in range(1, 101):
        now[0] += 0.7
        steps.done(count, f"tile \x1b{count}")
    lines = capsys.readouterr().err.splitlines()
    assert 10 <= len(lines) <= 15
    assert lines[0] == "8 of 100 done, now after tile \\x1b8"


def test_options_of_consumers_are_passed(tmp_path):
    tile = "Sw<3,3,3> o 0 o (64,64):(64,1)"
    source = tmp_path / "tensor.json"
    source.write_text('[[4096, 8192], null, "bf16"]', encoding="utf-8")
    for value in ("4096,8192", '[[4096,8192],null,"bf16"]', f"@{source}"):
        code, out = run("admissible", tile, "tma", "--option", f"tensor={value}", "--json")[:2]
        assert code == PROVED
        assert json.loads(out)["descriptor"]["problem"]["global"]["shape"] == [4096, 8192]
    assert run("admissible", tile, "tma", "--align", "64")[0] == REFUTED
    copied = run("admissible", tile, "cp.async", "--option", "global=(64,64):(512,1)", "--option", "bounds=60,64")
    assert "source bytes  7680" in copied[1]
    wide = run("admissible", "(64,64):(64,1)", "ld.shared.v4.b32", "--option", "registers=(32,8):(8,1)")
    assert (wide[0], "try         " in wide[1]) == (REFUTED, True)
    assert run("admissible", tile, "bulk", "--option", "ctas=2")[0] == USAGE
    assert run("admissible", tile, "tma", "--option", "tile=64,64")[0] == USAGE
    assert run("admissible", tile, "tma", "--option", "issues")[0] == USAGE


def test_explain_asks_every_target():
    for target, says in (("gfx950", "global_load_lds_dwordx4"), ("sm_100a", "tcgen05.mma"), ("sm_80", "NO_TMA")):
        code, out = run("explain", "Sw<3,3,3> o 0 o (64,64):(64,1)", "--target", target)[:2]
        assert (code, says in out) == (PROVED, True)
    assert run("explain", "(4,8):(1,4)", "--target", "sm_1")[0] == USAGE


def test_draw_shows_the_answer_of_a_consumer(tmp_path):
    file = tmp_path / "answer.svg"
    assert run("draw", "(64,64):(65,1)", "--for", "ldmatrix.x4", "-o", str(file))[0] == PROVED
    assert "element offsets around it" in file.read_text(encoding="utf-8")
    code, out = run("draw", "Sw<3,3,3> o 0 o (64,64):(64,1)", "--for", "tcgen05.A", "--target", "sm_100a")[:2]
    assert (code, out.startswith("admitted")) == (PROVED, True)
    code, out = run("draw", "(64,64):(64,1)", "--for", "tma", "--target", "sm_100a", "--svg")[:2]
    assert (code, "no sm_100a device was measured" in out) == (PROVED, True)
    assert run("draw", "(4,8):(8,1)", "--for", "tma", "--against", "(4,8):(1,4)")[0] == USAGE
