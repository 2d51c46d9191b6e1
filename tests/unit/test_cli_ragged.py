"""``layoutalg ragged``: maps, copies, kernels and pictures, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judges.commands import run
from unit.test_cli_commands import answered

import layoutalg as la
from layoutalg.cli import PROVED, REFUTED, USAGE

SW = "Sw<3,3,3> o 0 o (64,64):(64,1)"


def test_copies_are_those_of_the_family() -> None:
    code, answer = answered("ragged", SW, "--tensor", "4096,512", "--sizes", "70,0,64")
    family = la.ragged(la.Tensor((4096, 512)), [70, 0, 64], (64, 64), SW)
    assert code == PROVED
    assert answer["copies"] == family.copies().table.tolist()
    assert answer["rules"] == json.loads(json.dumps(family.to_json()["rules"]))
    code, out, _ = run("ragged", SW, "--tensor", "4096,512", "--sizes", ",".join(["5"] * 30))
    assert (code, out.count("  group ")) == (PROVED, 24)
    assert "... 36 more copies" in out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--strategy", "clip", "--target", "sm_100a"), REFUTED, "no probe has run"),
        (("--strategy", "exact_pool", "--axis", "1"), USAGE, "axis"),
        (("--sizes", "70,-2"), USAGE, "sizes[1]"),
        (("--sizes", "4000,97"), USAGE, "sizes[1]"),
        (("--sizes", "70,x"), USAGE, "list of sizes"),
        (("--sizes", "70", "--multiple", "8"), USAGE, "multiple of 8"),
        (("--strategy", "overfetch", "--store"), REFUTED, "STORE"),
        (("--strategy", "descriptors", "--sizes", "5", "--emit", "out"), USAGE, "strategy of the family"),
        (("--emit", "out"), USAGE, "groups"),
    ],
)
def test_what_is_refused_says_why(
    words: tuple[str, ...], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, out, err = run("ragged", SW, "--tensor", "4096,512", *words)
    assert found == code
    assert says in out + err
    assert not Path("out").exists()


def test_kernels_and_pictures_are_written(tmp_path: Path) -> None:
    kernel, picture = tmp_path / "kernel.cu", tmp_path / "copies.svg"
    words = ("--sizes", "72,0,64", "--multiple", "8", "--emit", str(kernel), "-o", str(picture))
    assert run("ragged", SW, "--tensor", "4096,512", *words)[0] == PROVED
    assert kernel.read_text().count('extern "C" __global__') == 2
    assert picture.read_text().startswith("<svg")
