"""Threads and processes: 16 threads, forks in the middle of use, and every way of multiprocessing give equal answers.

Each case is a process of its own, so that a crash of ISL or z3 is a failure of one test and not the end of all.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORK = Path(__file__).with_name("work.py")
SECONDS = 240


def started(mode: str, answers: Path, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(WORK), mode, str(answers)]
    environment = os.environ | {"PYTHONPATH": str(WORK.parents[2])}
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("threads") / "answers.json"
    process = started("alone", path)
    assert process.returncode == 0, process.stderr[-2_000:]
    return path


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("mode", ["threads", "fork", "pool-fork", "pool-spawn", "pool-forkserver"])
def test_answers_are_those_of_one_thread(mode, answers):
    if mode.endswith(("fork", "forkserver")) and "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork on this system")
    process = started(mode, answers)
    assert process.returncode == 0, f"status {process.returncode}\n{process.stderr[-3_000:]}"


@pytest.mark.nightly
def test_a_planted_fault_is_noticed(tmp_path):
    assert started("crash", tmp_path).returncode < 0
    assert started("wrong", tmp_path).returncode > 0
    with pytest.raises(subprocess.TimeoutExpired):
        started("hang", tmp_path, 8)
