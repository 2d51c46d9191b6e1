"""The commands ``conversion`` and ``gather``: plans in words, JSON, kernels and pictures, and what cannot be done."""

import io
import json
import sys

import pytest

from layoutalg import conversion, draw, parse
from layoutalg.cli import main
from layoutalg.cli.answers import PROVED, REFUTED, UNKNOWN, USAGE
from layoutalg.synth.indirect import gather_choice, warp_sectors

ROWS = "F2[register=(1), lane=(2)(4)(8)(16)(32) -> x:64]"
COLUMNS = "F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]"


def test_the_plan_is_told(capsys):
    assert main(["conversion", ROWS, COLUMNS, "--bits", "32"]) == PROVED
    told = capsys.readouterr().out
    assert told.startswith("conversion    shuffles: 2 shuffles, 4 selects")
    assert main(["conversion", ROWS, COLUMNS, "--bits", "32", "--mechanism", "shared", "--json"]) == PROVED
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "layoutalg/conversion/1"
    assert document["mechanism"] == "shared"


@pytest.mark.parametrize(("target", "word"), [("sm_90a", "__shfl_sync"), ("gfx1201", "ds_bpermute")])
def test_the_kernel_is_written(tmp_path, capsys, target, word):
    path = tmp_path / "kernel.txt"
    assert main(["conversion", "(32,2):(2,1)", "(32,2):(1,32)", "--target", target, "--emit", str(path)]) == PROVED
    assert capsys.readouterr().out
    assert word in path.read_text()


def test_layouts_of_other_tensors_are_refused(capsys):
    assert main(["conversion", ROWS, "(32,2):(1,64)"]) == REFUTED
    assert "LA934" in capsys.readouterr().err
    assert main(["conversion", ROWS, COLUMNS.replace("x:", "y:")]) == USAGE
    assert main(["conversion", ROWS, "nonsense"]) == USAGE


def test_layouts_come_from_files_and_standard_input(tmp_path, capsys, monkeypatch):
    assert main(["conversion", ROWS, COLUMNS]) == PROVED
    told = capsys.readouterr().out
    path = tmp_path / "rows.layout"
    path.write_text(ROWS + "\n", encoding="utf-8")
    assert main(["conversion", str(path), COLUMNS]) == PROVED
    assert capsys.readouterr().out == told
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(COLUMNS.encode())))
    assert main(["conversion", str(path), "-"]) == PROVED
    assert capsys.readouterr().out == told
    assert main(["conversion", "-", "-"]) == USAGE
    assert "standard input can be only one of source, destination" in capsys.readouterr().err
    assert main(["conversion", str(tmp_path / "missing.layout"), COLUMNS]) == USAGE


def test_a_budget_that_is_spent_is_no_refusal(capsys):
    assert main(["conversion", ROWS, COLUMNS, "--budget", "0"]) == UNKNOWN
    assert "LA001" in capsys.readouterr().err


def test_sizes_that_one_text_lacks_are_those_of_the_other(capsys):
    blocked = "#ttg.blocked<{sizePerThread=[1,4], threadsPerWarp=[8,4], warpsPerCTA=[1,1], order=[1,0]}>"
    sized = "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]"
    for words in ([blocked, sized], [sized, blocked]):
        assert main(["conversion", *words]) == PROVED
        told = capsys.readouterr().out
        assert main(["conversion", *words, "--shape", "16,16"]) == PROVED
        assert capsys.readouterr().out == told
        assert main(["conversion", *words, "--shape", "16,32"]) == USAGE
    capsys.readouterr()
    assert main(["conversion", blocked, blocked]) == USAGE
    assert "pass --shape, outermost dimension first" in capsys.readouterr().err
    assert main(["conversion", blocked, "(32,8):(8,1)", "--shape", "16,16"]) == PROVED


def test_the_picture_is_the_plan_s(tmp_path, capsys):
    path = tmp_path / "plan.svg"
    assert main(["conversion", ROWS, COLUMNS, "--bits", "32", "--picture", str(path)]) == PROVED
    plan = conversion(parse(ROWS), parse(COLUMNS), 32)
    assert path.read_text(encoding="utf-8") == draw.svg(plan) + "\n"
    assert capsys.readouterr().out == f"{plan}\n"
    words = ["--mechanism", "shared", "--smem", "5", "--picture", str(path)]
    assert main(["conversion", ROWS, COLUMNS, *words]) == UNKNOWN
    assert path.read_text(encoding="utf-8").startswith("<svg ")


INDICES = json.dumps([[63 - place for place in range(64)], [0] * 64])


def test_a_gather_is_planned_and_its_kernel_written(tmp_path, capsys):
    path = tmp_path / "kernel.txt"
    assert main(["gather", COLUMNS, "--axis", "x", "--bits", "32", "--emit", str(path)]) == PROVED
    told = capsys.readouterr().out
    assert told.startswith("gather        shuffles: 4 shuffles, 4 selects")
    assert "__shfl_sync" in path.read_text()
    assert main(["gather", COLUMNS, COLUMNS, "--axis", "-1", "--bits", "32"]) == PROVED
    assert capsys.readouterr().out == told
    assert (
        main(["gather", "(32,2):(1,32)", "--axis", "0", "--shape", "64", "--mechanism", "shared", "--json"]) == PROVED
    )
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["mechanism"]) == ("layoutalg/gather/1", "shared")
    assert main(["gather", COLUMNS, "--axis", "x", "--mechanism", "registers"]) == UNKNOWN


def test_the_ways_of_a_gather_are_ranked_for_given_indices(tmp_path, capsys):
    path = tmp_path / "indices.json"
    path.write_text(INDICES, encoding="utf-8")
    assert main(["gather", "--indices", str(path), "--length", "64", "--bits", "32", "--json"]) == PROVED
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "layoutalg/movement-choice/1"
    assert {each["way"] for each in document["ranked"]} == {"warp", "shared", "direct"}
    sectors = warp_sectors([*range(64), *[64] * 64], 4)  # neighbours in the first row, one element in the second
    wanted = gather_choice(2, 64, 64, 4, sectors)
    assert [each["microseconds"] for each in document["ranked"]] == [each.microseconds for each in wanted.ranked]
    assert main(["gather", COLUMNS, "--axis", "x", "--bits", "32", "--indices", INDICES]) == PROVED
    told = capsys.readouterr().out
    assert told.startswith("gather        shuffles")
    assert "tile shuffles: " in told


@pytest.mark.parametrize(("words", "named"), [
    (["--indices", "[[0, 4]]", "--length", "4"], "--indices[0, 1]"),
    (["--indices", "[[[0]]]", "--length", "4"], "--indices"),
    ([], "source"), ([COLUMNS], "--axis"), ([COLUMNS, "--axis", "y"], "--axis"), ([COLUMNS, "--axis", "7"], "--axis"),
    (["--indices", "[[0]]", "--length", "4", "--emit", "no.cu"], "source"),
    (["--indices", "[[0]]", "--length", "4", "--target", "gfx942"], "gfx942"),
    ([COLUMNS, "--axis", "x", "--indices", "[[0]]"], "plan"),
])  # fmt: skip
def test_what_is_wrong_with_a_gather_is_named(capsys, words, named):
    assert main(["gather", *words]) in (USAGE, REFUTED, UNKNOWN)
    assert f"in     {named}" in capsys.readouterr().err
