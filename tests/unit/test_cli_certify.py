"""Certificates from the command line: what is so is written and proves, and the exit code says what was asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layoutalg.cli import PROVED, REFUTED, UNKNOWN, USAGE, main
from layoutalg.cli.certify import CLAIMS
from layoutalg.pipeline import Builder, Pipeline
from layoutalg.proofs import checker
from layoutalg.proofs.certify import KINDS
from layoutalg.proofs.handoff import operand_view
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma

OPERAND = synthesize_wgmma(canonical_operand("A", (64, 16)))
EXAMPLE = Path(__file__).parents[1] / "data" / "examples" / "problem.json"
NONE = OperandProblem("B", (8, 16), (((8, 1),), ((16, 24),)))


def ring() -> Pipeline:
    block = Builder(2)
    tiles = block.ring("tiles", A=1024)
    tiles.acquire(block.role("load")).load().commit()
    tiles.wait(block.role("use")).mma().release()
    return block.pipeline()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in (("plan", OPERAND), ("problem", OPERAND.problem), ("none", NONE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value.to_json()), encoding="utf-8")
    tile = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    odd = {**tile["global"], "shape": [64, 61], "stride": [61, 1]}
    plain = {"global": odd, "tile": [8, 8], "smem": {"modes": [[[8, 8]], [[8, 1]]], "swizzle": "NONE"}}
    (tmp_path / "map.json").write_text(json.dumps(tile), encoding="utf-8")
    (tmp_path / "odd.json").write_text(json.dumps({**tile, **plain}), encoding="utf-8")
    copy = synthesize_tensormap(tile)
    read = synthesize_wgmma(operand_view(copy.problem, "A", "K").problem)
    for name, value in (("copy", copy), ("read", read)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value.to_json()), encoding="utf-8")
    (tmp_path / "ring.json").write_text(json.dumps(ring().to_json()), encoding="utf-8")
    (tmp_path / "layout.txt").write_text("8:2\n", encoding="utf-8")
    wrong = OPERAND.to_json() | {"end_bytes": OPERAND.end_bytes + 16}
    (tmp_path / "wrong.json").write_text(json.dumps(wrong), encoding="utf-8")
    return tmp_path


CASES = [
    (("equality", "(4,8):(8,1)", "((2,2),8):((8,16),1)"), "equality"),
    (("equality", "(2,4):(4,1)", "8:1"), "inequality"),
    (("composition", "(4,8):(8,1)", "layout.txt"), "composition"),
    (("composition", "(4,8):(8,1)", "8:2", "(2,4):(16,1)"), "composition"),
    (("composition", "(4,8):(8,1)", "8:5"), "no-composition"),
    (("inverse", "(4,8):(8,1)", "--side", "both"), "inverse"),
    (("inverse", "(4,8):(8,1)", "(8,4):(4,1)"), "inverse"),
    (("inverse", "8:2", "--side", "right", "--codomain", "16"), "no-inverse"),
    (("plan", "map.json"), "tensormap-plan"),
    (("plan", "odd.json"), "no-tensormap"),
    (("operand", "plan.json"), "wgmma-operand"),
    (("operand", "problem.json"), "wgmma-operand"),
    (("operand", "none.json"), "no-operand"),
    (("handoff", "copy.json", "read.json"), "handoff"),
    (("banks", "sm_90a", "ld.shared.v4.b32", "(32,4):(144,16)"), "bank-turns"),
    (("pipeline", "ring.json"), "pipeline"),
]


@pytest.mark.parametrize(("words", "kind"), CASES)
def test_a_certificate_is_printed_written_and_proves(words, kind, files, capsys):
    wanted = REFUTED if kind in ("inequality", "no-composition", "no-inverse", "no-operand", "no-tensormap") else PROVED
    assert main(["certify", *words]) == wanted
    printed = capsys.readouterr().out
    assert main(["certify", *words, "-o", "out.json"]) == wanted
    told = capsys.readouterr().out
    assert (files / "out.json").read_text(encoding="utf-8") == printed
    document = json.loads(printed)
    assert document["kind"] == kind
    code, claim = checker.check(document)
    assert (code, told) == (0, f"{kind:<13} {claim}\n")
    assert main(["check", "out.json"]) == PROVED
    assert main(["certify", *words, "-o", "out.json", "--json"]) == wanted
    capsys.readouterr()


def test_what_does_not_hold_is_refuted_and_not_written(files, capsys):
    assert main(["certify", "composition", "(4,8):(8,1)", "8:2", "8:3", "-o", "out.json"]) == REFUTED
    assert capsys.readouterr().out.startswith("refuted       h is not f o g, at [1]")
    assert not (files / "out.json").exists()
    assert main(["certify", "inverse", "4:1", "4:2", "--json"]) == REFUTED
    assert json.loads(capsys.readouterr().out)["witness"]["what"].startswith("this is not an inverse")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("equality", "4:1"), USAGE),
        (("inverse", "4:1", "4:1", "4:1"), USAGE),
        (("composition", "4:1", "{}"), USAGE),
        (("operand", "4:1"), USAGE),
        (("plan", "plan.json"), USAGE),
        (("operand", "wrong.json"), USAGE),
        (("operand", "missing.json"), USAGE),
        (("handoff", "copy.json"), USAGE),
        (("handoff", "read.json", "copy.json"), USAGE),
        (("handoff", "copy.json", "plan.json"), USAGE),
        (("banks", "sm_90a", "ld.shared.b32", "31:4"), USAGE),
        (("banks", "sm_90a", "mul.f32", "32:4"), USAGE),
        (("banks", "gfx1", "ds_read_b32", "32:4"), UNKNOWN),
        (("truth", "4:1"), USAGE),
        (("inverse", "4:1", "--codomain", "x"), USAGE),
        (("equality", "4:1", "4:1", "--budget", "0"), UNKNOWN),
    ],
)
def test_what_cannot_be_asked_is_told(words, code, files, capsys):
    assert main(["certify", *words, "-o", "out.json"]) == code
    assert not (files / "out.json").exists()
    assert capsys.readouterr().err


def test_every_kind_can_be_asked_for():
    carried = {
        "none-of",
        "least-turns",
        "routing",
        "paging",
    }  # refusals and plans carry their own: there is no claim to state by hand
    assert {kind for _, kind in CASES} == set(KINDS) - carried
    assert {words[0] for words, _ in CASES} == set(CLAIMS)
