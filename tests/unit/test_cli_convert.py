"""The command ``convert``: plans in words and JSON, kernels in files, and what cannot be converted."""

import json

import pytest

from layoutalg.cli import main
from layoutalg.cli.exits import PROVED, USAGE

ROWS = "F2[register=(1), lane=(2)(4)(8)(16)(32) -> x:64]"
COLUMNS = "F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]"


def test_the_plan_is_told(capsys):
    assert main(["convert", ROWS, COLUMNS, "--bits", "32"]) == PROVED
    told = capsys.readouterr().out
    assert told.startswith("conversion    shuffles: 2 shuffles, 4 selects")
    assert main(["convert", ROWS, COLUMNS, "--bits", "32", "--mechanism", "shared", "--json"]) == PROVED
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "layoutalg/conversion/1"
    assert document["mechanism"] == "shared"


@pytest.mark.parametrize(("target", "word"), [("sm_90a", "__shfl_sync"), ("gfx1201", "ds_bpermute")])
def test_the_kernel_is_written(tmp_path, capsys, target, word):
    path = tmp_path / "kernel.txt"
    assert main(["convert", "(32,2):(2,1)", "(32,2):(1,32)", "--target", target, "--emit", str(path)]) == PROVED
    assert capsys.readouterr().out
    assert word in path.read_text()


def test_layouts_of_other_tensors_are_refused(capsys):
    assert main(["convert", ROWS, "(32,2):(1,64)"]) not in (PROVED, USAGE)
    assert "LA93" in capsys.readouterr().err
    assert main(["convert", ROWS, "nonsense"]) == USAGE
