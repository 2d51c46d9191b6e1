"""The stand-alone checker is bounded: in time, in steps and in memory, whatever a certificate asks of it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from judges.certificates import sealed as document

import layoutalg as la
from layoutalg.cli import main
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError
from layoutalg.proofs import checker
from layoutalg.proofs.certify import points
from layoutalg.proofs.certify.stages import Function
from layoutalg.proofs.checker import base

TABLE = {"by": "table"}
OVER = "the time for this check is over"
SECONDS = 0.3
RNG = random.Random(1)


def xored(size: int, columns: list[int], by: object = TABLE) -> dict[str, Any]:
    function = {"size": size, "stages": [["xor", columns, 0]]}
    return document("equality", {"f": function, "g": function}, by)


TALLER = {"size": 2**22, "stages": [["affine", [[2**70]], [0]], *[["affine", [[3]], [1]]] * 3]}
WIDE = document("equality", {"f": TALLER, "g": TALLER}, TABLE)
"""What a minute decides and a second does not."""
TALL = {
    "875 bits": xored(2**16, [1 << (55 * place + 50) for place in range(16)]),
    "3800 bits": xored(2**20, [1 << (200 * place + 3) for place in range(20)]),
    "dense digits": xored(
        2**2000, [RNG.getrandbits(2000) for _ in range(2000)], {"by": "digits", "digits": [2] * 2000}
    ),
}
"""What takes too many steps, counted before the first."""


def layout(size: int, *stages: object) -> dict[str, Any]:
    return {"size": size, "stages": list(stages)}


def repeated(count: int) -> dict[str, Any]:
    """Access after access of 32 lanes at one word."""
    stages = [["mod", [32]], ["affine", [[4]], [0]]]
    return document("bank-turns", {"access": "sm_90 ld.shared.b32", "address": layout(32 * count, *stages),
                                   "turns": count, "most": 1}, {})  # fmt: skip


PIECES = [[[], [[[1], -place, ">="]], [[[1], place]]] for place in range(4000)]
AXIS = [1, 1, 0, 1, 0, 1]
PROBLEM = {"dtype": "u8", "base_elem_offset": 0, "base_align_bytes": 256, "oob_fill": "ZERO", "direction": "load"}
PLAN = {"issues": [[[0], 0]], "moves": [[0]], "expect_tx_bytes": 0, "smem_align_bytes": 0, "smem_bytes": 0}
LONG = {
    "points": WIDE,
    "a table": document("equality", {name: layout(2**20, ["table", [*range(2**20)]]) for name in "fg"}, TABLE),
    "pieces": document("equality", {name: layout(2**13, ["pieces", PIECES]) for name in "fg"}, TABLE),
    "accesses": repeated(2**15),
    "all operands": document("no-operand", {"operand": "A", "shape": [512, 256], "swizzle": 0, "align": 16,
                                            "layout": layout(2**17, ["affine", [[2]], [0]])}, {}),
    "a list": document("inequality", {name: layout(1, ["affine", [[1]], [0]]) for name in "fg"},
                       {"at": [*range(3 * 10**6)]}),
    "solvers": xored(2**61, [RNG.getrandbits(61) for _ in range(61)], {"by": "solvers"}),
    "digits that carry": xored(3**200, [RNG.getrandbits(318) for _ in range(318)],
                               {"by": "digits", "digits": [3] * 200}),
    "many digits": xored(2**4000, [1], {"by": "digits", "digits": [2**4000] * 5000}),
    "many axes": document("no-tensormap", {"problem": PROBLEM | {"axes": [AXIS] * 50_000 + [[2**21, *AXIS[1:]]],
                                                                 "shared": layout(2**21, ["affine", [[1]], [0]])}},
                          {"origin": [0] * 50_001, "chunk": 0}),
    "many dimensions": document("tensormap-plan", {"problem": PROBLEM | {
        "axes": [[16, *AXIS[1:]]], "shared": layout(16, ["affine", [[1]], [0]])}, "bytes": "", "oob": "exact", **PLAN},
        {"map": {"base": 0, "swizzle": 0, "fill": 0, "promotion": 0, "dims": [[1, 0, 256, 1]] * 200_000}}),
    "forks": document("equality", {name: layout(2**20, ["fork", *([["fork", [], []]],) * 500],
                                                ["affine", [[1] * 1000], [0]]) for name in "fg"}, TABLE),
    "candidates": document("none-of", {"f": layout(4, ["affine", [[1]], [0]]), "candidates": [
        {"size": 4, "at": [], "unknowns": 1, "rows": [["affine", [[0, 1], [0, 1]], [1, 0]]]}] * 20_000},
        {"sums": [[0, [[1, 0, 0]] * 20]] * 20_000}),
}  # fmt: skip
"""Certificates with their right seal, each of which would take long or hold much."""


def spent(call: Any) -> tuple[Any, float]:
    begin = time.process_time()
    return call(), time.process_time() - begin


@pytest.mark.parametrize("name", [*TALL, *LONG])
def test_every_certificate_ends_in_time(name: str) -> None:
    made = {**TALL, **LONG}[name]
    for attempt in range(2):
        (code, told), seconds = spent(lambda: checker.check(made, SECONDS))
        assert code in (1, 2) or (code == 0 and name == "solvers"), told  # a solver may prove it in time
        if seconds <= 1.5 * SECONDS + 0.3:
            return
        assert not attempt, (seconds, told)


@pytest.mark.parametrize("name", TALL)
def test_too_many_steps_are_left_unknown_before_the_first(name: str) -> None:
    (code, told), seconds = spent(lambda: checker.check(TALL[name]))
    assert code == 2
    assert "steps at" in told
    assert seconds < 0.5


def test_memory_does_not_grow_with_the_points() -> None:
    tracemalloc.start()
    try:
        assert checker.check(WIDE, 3) in ((0, "f = g at 4194304 points"), (2, OVER))
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


def test_blocks_are_one_function() -> None:
    """The point where functions differ is found in every block, and a table is one over all blocks."""
    size = 5 * base.BLOCK
    for at in (0, base.BLOCK - 1, base.BLOCK, size - 1):
        values = list(range(size))
        values[at] += 1
        statement = {"f": layout(size, ["table", values]), "g": layout(size)}
        code, told = checker.check(document("equality", statement, TABLE))
        assert (code, told) == (1, f"f and g differ, at [{at}], got [{at + 1}], expected [{at}]")
    assert base.column(size, [["affine", [[3]], [1]]]).tolist() == list(range(1, 3 * size, 3))
    assert base.column(0, []).tolist() == []
    tall = base.column(size, [["affine", [[2**70]], [0]]])
    assert int(tall[-1]) == 2**70 * (size - 1)


def test_the_seal_is_compared_first_where_the_work_is_long() -> None:
    for name in ("points", "accesses"):
        (code, told), seconds = spent(lambda name=name: checker.check(LONG[name] | {"seal": "0" * 64}, 60))
        assert (code, told.partition(",")[0]) == (1, "the seal is of another certificate")
        assert seconds < 3


@pytest.mark.parametrize("seconds", [0, SECONDS])
def test_the_library_gives_the_checker_the_time_that_is_left(seconds: float) -> None:
    made = la.certify.Certificate.from_json(LONG["points"])
    with clock.within(seconds):
        answer, taken = spent(made.check)
    assert isinstance(answer, la.Unknown)
    assert answer.reason == OVER
    assert taken < 1.5 * seconds + 0.3
    function = Function(TALLER["stages"], 2**20, [])
    with clock.within(0.05), pytest.raises(BudgetError) as stop:
        points.greatest(function)
    assert stop.value.diagnostic.code == "LA001"


def test_the_command_line_and_the_file_alone_keep_a_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, made in (("wide", WIDE), *TALL.items()):
        (tmp_path / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
    code, seconds = spent(lambda: main(["check", str(tmp_path / "wide.json"), "--budget", "0.3"]))
    assert (code, capsys.readouterr().out.split(": ")[1].strip()) == (2, OVER)
    assert seconds < 1.5 * SECONDS + 0.3
    assert checker.main([f"--seconds={SECONDS}", str(tmp_path / "wide.json")]) == 2
    assert capsys.readouterr().out.split(": ")[1].strip() == OVER
    shutil.copytree(Path(checker.__file__).parent, tmp_path / "checker")
    command = [sys.executable, "checker", "--seconds", "0.3", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["unknown"] * 4


@pytest.mark.parametrize("given", [["--seconds", "x", "f"], ["--seconds", "-1", "f"], ["--seconds=nan", "f"],
                                   ["f", "--seconds"], ["--seconds", "1"], []])  # fmt: skip
def test_other_seconds_are_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert checker.main(given) == 64
    assert capsys.readouterr().err
