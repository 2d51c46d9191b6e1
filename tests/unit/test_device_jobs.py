"""The table of device jobs: every record has its job, every job its kernels, and a fault costs one case."""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import device  # noqa: E402
from device import JOBS, Fault, Run  # noqa: E402


def test_every_record_of_a_device_has_one_job() -> None:
    stored = sorted(path.name.partition(".")[0] for path in (ROOT / "tests/data/measured").glob("*_dev.*"))
    assert sorted(record for job in JOBS.values() for record in job.records) == stored


@pytest.mark.parametrize("name", JOBS)
def test_every_job_has_its_function(name: str) -> None:
    assert callable(getattr(importlib.import_module(JOBS[name].module), f"{name}_job"))


def run(folder: Path, **options: object) -> Run:
    return Run(argparse.Namespace(out=str(folder), seconds=60, rehearse=False, seed=1, **options))


def square(item: int, ends: str) -> int:
    if item == 3 and ends == "raises":
        raise RuntimeError("cuCtxSynchronize=700")
    if item == 3 and ends == "dies":
        os._exit(7)
    if item == 3 and ends == "hangs":
        time.sleep(60)
    return item * item


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize(("ends", "text"), [("raises", "700"), ("dies", "exit 7"), ("hangs", "no answer")])
def test_a_case_that_ends_its_child_is_a_fault_and_the_others_have_answers(
    tmp_path: Path, ends: str, text: str
) -> None:
    found = run(tmp_path).each(square, range(6), ends, group=6, seconds=6, workers=1)
    assert isinstance(found[3], Fault)
    assert text in found[3].text
    assert [each for each in found if not isinstance(each, Fault)] == [0, 1, 4, 16, 25]


def test_nothing_begins_when_the_time_is_over(tmp_path: Path) -> None:
    one = run(tmp_path)
    one.options.seconds = -1
    assert {each.text for each in one.each(square, range(3), "")} == {"not begun: out of time"}


@pytest.mark.nightly(one_of=4)
@pytest.mark.compile
@pytest.mark.parametrize("name", ["copies", "operand_b", "stores", "costs"])
def test_the_kernels_of_a_job_compile(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["device.py", name, "--rehearse", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        device.main()
    assert not ended.value.code


def test_the_costs_of_schedules_are_those_of_the_record() -> None:
    from device_pipelines import fitted

    with gzip.open(ROOT / "tests/data/measured/pipeline_costs_dev.json.gz", "rt") as stored:
        rows = json.load(stored)["rows"]
    known = json.loads((ROOT / "targets/pipeline_costs.json").read_text(encoding="utf-8"))["sm_90a"]
    assert fitted(rows).items() <= known.items()
