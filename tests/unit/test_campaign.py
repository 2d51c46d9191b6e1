"""Campaigns: every case once whatever becomes of workers, counterexamples by seed, exit codes, bodies that can fail."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.cli import main
from layoutalg.cli.answers import PROVED, REFUTED, UNKNOWN, USAGE
from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.proofs.indirect import Routing
from layoutalg.synth.search import campaign
from layoutalg.synth.search.campaign import SEEDS, run_campaign
from layoutalg.testing import campaigns

SEED = st.integers(0, 300) | st.integers(SEEDS - 300, SEEDS - 1)


@settings(max_examples=60)
@given(st.integers(1, 200), SEED, st.integers(1, 40), st.sets(st.integers(0, 250)))
def test_every_seed_runs_once_and_is_reported(plans: int, first: int, batch: int, bad: set[int]) -> None:
    seen: list[int] = []

    def case(seed: int) -> str:
        seen.append(seed)
        if (seed - first) % SEEDS not in bad:
            return ""
        if seed % 2:
            raise ValueError("odd")
        return "even"

    told: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "BATCH", batch)
        patch.setattr(campaign, "SHOWN", 1000)
        found = run_campaign("drawn", case, plans, first, progress=lambda done, _: told.append(done))
    every = [(first + at) % SEEDS for at in range(plans)]
    assert seen == every
    assert found.done == plans == told[-1]
    assert told == sorted(told)
    assert [(each.seed, each.what) for each in found.wrong] == [
        (seed, "ValueError: odd" if seed % 2 else "even") for at, seed in enumerate(every) if at in bad
    ]
    for each in found.wrong[:3]:
        assert run_campaign("again", case, 1, each.seed).wrong == (each,)


def test_a_campaign_ends_after_many_counterexamples_or_its_time() -> None:
    found = run_campaign("all", lambda _: "wrong", 1000)
    assert campaign.SHOWN <= len(found.wrong) == found.done < 1000
    assert run_campaign("slow", lambda _: "", 1000, seconds=0).done == campaign.BATCH
    assert "16 of 1000 cases, 0 wrong" in str(run_campaign("slow", lambda _: "", 1000, seconds=0))


def dying(folder: str, deadly: int, once: bool, seed: int) -> str:
    """Note the seed; the worker of one of them dies."""
    with (Path(folder) / str(seed)).open("a") as log:
        log.write("x")
    time.sleep(0.002)
    if seed == deadly and not (once and (Path(folder) / "died").exists()):
        (Path(folder) / "died").touch()
        os._exit(1)
    with (Path(folder) / f"{seed}.ended").open("a") as log:
        log.write("x")
    return "fifty" if seed == 50 else ""


def test_a_worker_that_dies_loses_nothing(tmp_path: Path) -> None:
    """Its pool dies with it: what was in flight runs again, what was reported does not."""
    told: list[int] = []
    found = run_campaign("dying", partial(dying, str(tmp_path), 70, True), 120, jobs=2,
                         progress=lambda done, _: told.append(done))  # fmt: skip
    assert (found.done, [each.seed for each in found.wrong]) == (120, [50])
    assert (tmp_path / "died").exists()
    assert len(told) == len(set(told)) == 8
    marks = Counter(len((tmp_path / f"{seed}.ended").read_text()) for seed in range(1, 121))
    assert set(marks) <= {1, 2}
    assert marks[2] <= 3 * campaign.BATCH  # two batches in flight, one that waits in the queue


def test_a_case_that_always_kills_its_worker_ends_the_campaign(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="workers died"):
        run_campaign("dying", partial(dying, str(tmp_path), 5, False), 20, jobs=2)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask's distributed is not installed")
@pytest.mark.nightly
def test_two_workers_of_dask_one_killed(tmp_path: Path) -> None:
    """Only the batch of the dead worker runs again."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        case = partial(dying, str(tmp_path), 70, True)
        found = run_campaign("dying", case, 120, dask=cluster.scheduler_address)
    assert (found.done, [each.seed for each in found.wrong]) == (120, [50])
    repeated = [seed for seed in range(1, 121) if len((tmp_path / f"{seed}.ended").read_text()) > 1]
    assert set(repeated) <= set(range(65, 70))


@pytest.mark.parametrize(("name", "plans"), [("ragged", 10), ("indirect", 100)])
def test_the_bodies_find_nothing(name: str, plans: int, capsys: Any) -> None:
    assert main(["campaign", name, "--plans", str(plans), "--seed", "3", "--json"]) == PROVED
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["seed"], found["done"], found["wrong"]) == (name, 3, plans, [])


def test_the_bodies_find_what_is_wrong(monkeypatch: Any, capsys: Any) -> None:
    """A copy that is missing, and a list that is not sorted."""
    family = campaigns.family_of("exact_pool", 32, 1)

    class Lost:
        strategy, tile_rows, stated = family.strategy, family.tile_rows, family.stated

        def copies(self, sizes: list[int]) -> Any:
            return list(family.copies(sizes))[1:]

    lost: Any = Lost()
    assert campaigns.wrong_copies(lost, [40, 0, 7, 0, 0, 0]) == "rows are missed or repeated"
    assert not campaigns.wrong_copies(family, [40, 0, 7, 0, 0, 0])
    right = campaigns.routing_lists
    monkeypatch.setattr(campaigns, "routing_lists", lambda *case: right(*case) | {"order": [-1]})
    assert main(["campaign", "indirect", "--plans", "16"]) == REFUTED
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("indirect: 16 of 16 cases")
    seed = shown[1].split()[1].rstrip(":")
    assert main(["campaign", "indirect", "--plans", "1", "--seed", seed]) == REFUTED
    assert capsys.readouterr().out.splitlines()[1] == shown[1]
    assert Routing([[0]], 1, 1).order.tolist() == [0]


def test_exit_codes(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "case_of_test.py").write_text("def fine(seed):\n    return ''\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["campaign", "case_of_test:fine", "--plans", "40", "--workers", "2"]) == PROVED
    assert main(["campaign", "case_of_test:fine", "--budget", "0"]) == UNKNOWN
    for wrong in (("raged",), ("case_of_test:missing",), ("ragged", "--plans", "0"), ("ragged", "--workers", "0"),
                  ("ragged", "--seed", "-1")):  # fmt: skip
        try:
            assert main(["campaign", *wrong]) == USAGE
        except SystemExit as ended:
            assert ended.code == USAGE


def test_wrong_arguments_are_named() -> None:
    not_callable: Any = "case"
    for wrong, named in (({"case": not_callable, "plans": 1}, "case"), ({"case": str, "plans": 1.5}, "plans"),
                         ({"case": str, "plans": 2**30}, "plans"), ({"case": str, "plans": 1, "jobs": 0}, "workers"),
                         ({"case": str, "plans": 1, "seed": -1}, "seed")):  # fmt: skip
        with pytest.raises(MalformedError, match=named):
            run_campaign("wrong", **wrong)
