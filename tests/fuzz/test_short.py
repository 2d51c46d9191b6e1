"""A short, repeatable run of every fuzz target, and proof that the driver sees what it looks for."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest
from fuzz import drive

from layoutalg.ground.errors import Diagnostic, MalformedError

COUNT = 300


@pytest.mark.parametrize("name", drive.TARGETS)
def test_a_short_run_finds_nothing(name, portion):
    """Run in a process of its own, so that a crash of ISL or z3 is a finding too; slow machines get more time."""
    count = len(portion(range(COUNT)))
    found = list(drive.supervised(name, seed=1, count=count, limit=3 * drive.SECONDS))
    how = f"python tests/fuzz/drive.py {name} --seed 1 --count {count}"
    assert not found, f"{how}\n" + "\n".join(map(str, found[:5]))


@pytest.mark.parametrize("name", drive.TARGETS)
def test_inputs_repeat_and_differ(name):
    inputs = [drive.made(name, 1, number) for number in range(120)]
    assert inputs == [drive.made(name, 1, number) for number in range(120)]
    assert len(set(inputs)) > 60
    assert len(set(inputs) & {drive.made(name, 2, number) for number in range(30, 120)}) < 60


def planted(fault) -> ModuleType:
    module = ModuleType("fuzz.planted")
    module.SEEDS = [b"seed"]
    module.target = fault
    return module


def refuse(data: bytes) -> None:
    try:
        raise MalformedError(Diagnostic("LA000", "refused"))
    except MalformedError as error:
        drive.refused(error)


def forever(data: bytes) -> None:
    forever(data)


def test_the_driver_sees_faults(monkeypatch):
    def judged(fault, limit=5):
        monkeypatch.setitem(sys.modules, "fuzz.planted", planted(fault))
        return drive.judged("planted", b"x", limit=limit)

    assert judged(refuse) is None
    assert "ZeroDivisionError" in judged(lambda _: 1 / 0)
    assert "reads back unequal" in judged(lambda _: drive.contract(lambda _: object(), str, "x"))
    assert " s" in judged(lambda _: time.sleep(0.1), limit=0.05)
    assert " MB" in judged(lambda _: bytearray(drive.peak() + 300 * 2**20).count(1))
    assert "RecursionError" in judged(forever)


def test_the_driver_sees_a_crash_and_goes_on(monkeypatch, tmp_path):
    (tmp_path / "fuzz").mkdir()  # a second part of the same package
    (tmp_path / "fuzz" / "crashing.py").write_text(
        "import os, signal\n"
        "SEEDS = [b'a', b'b', b'c', b'd']\n"
        "WARM = []\n"
        "def target(data):\n"
        "    WARM.append(data)\n"
        "    if len(WARM) > 4 and data in (b'b', b'd'):\n"
        "        os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = list(drive.supervised("crashing", seed=0, count=4))
    assert [(finding.data, finding.what) for finding in found] == [
        (b"b", "the process ended with status -11"),
        (b"d", "the process ended with status -11"),
    ]
