"""The C code of the page compiles as C and as C++, and writes the bytes of the plan with the address."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from docs.executed import ROOT, blocks

from layoutalg.cli import main
from layoutalg.proofs.tensormap import TensorMapPlan

PAGE = (ROOT / "docs" / "use_from_a_pass.md").read_text(encoding="utf-8")
HEADER, PROGRAM = (body for kind, body in blocks(PAGE) if kind == "c")
COMPILER = shutil.which("g++") or shutil.which("clang++")
ADDRESS = 0x7F12_3456_7800


@pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++")
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_c_program_fills_the_map(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "layoutalg_map.h").write_text(HEADER, encoding="utf-8")
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    program = str(tmp_path / "program")
    command = [str(COMPILER), "-x", language, "-Wall", "-Wextra", "-Werror", str(tmp_path / "program.c"), "-o", program]
    subprocess.run(command, check=True)

    def maps(answer: str) -> tuple[int, str]:
        done = subprocess.run([program, hex(ADDRESS)], input=answer, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    tile = ["synth", "tensormap", "Sw<3,3,3> o 0 o (64,64):(64,1)", "--json", "--tensor"]
    assert main([*tile, "4096,8192"]) == 0
    answer = capsys.readouterr().out
    plan = TensorMapPlan.from_json(json.loads(answer))
    assert maps(answer) == (0, plan.encode(base_address=ADDRESS).hex())
    assert maps(answer[: answer.index('"hex"') + 200]) == (1, "")  # cut in the middle of the bytes
    assert maps(answer.replace(plan.hex, plan.hex + "00")) == (1, "")
    assert main([*tile, "4096,22"]) == 1
    assert maps(capsys.readouterr().out) == (1, "")
