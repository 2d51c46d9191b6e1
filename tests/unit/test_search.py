"""Search: only legal choices are measured, results outlive dead workers, estimates bound what they should."""

from __future__ import annotations

import importlib.util
import itertools
import multiprocessing
import os
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import (
    BudgetError,
    InfeasibleError,
    LayoutError,
    MalformedError,
    MissingExtraError,
    RepresentabilityError,
)
from layoutalg.ground.refusal import Broken
from layoutalg.synth.search import Space, Work, cycles, least_traffic_tile, tier_bytes, tier_tile, trials, tune
from layoutalg.synth.search.workers import answers, workers
from layoutalg.targets.roofs import roofs

ROOT = str(Path(__file__).parents[2])
CHOICES = {"a": (1, 2, 3, 4, 5), "b": ("x", "y")}


def space(**changes: Any) -> Space:
    def legal(choice: Any) -> Broken | None:
        return Broken("ODD_B", "y needs an even a") if choice["b"] == "y" and choice["a"] % 2 else None

    given: dict[str, Any] = {"name": "drawn", "choices": CHOICES, "legal": legal}
    given["work"] = lambda choice: Work(132, "bf16", macs=2048 * choice["a"])
    return Space(**(given | changes))


def by_a(choice: dict[str, Any]) -> float:
    return -choice["a"]


def test_legal_choices_are_ranked_and_the_best_measured() -> None:
    ranked, refused = space().ranked()
    assert len(ranked) == 7
    assert [each.cycles for each in ranked] == sorted(each.cycles for each in ranked)
    assert {broken.rule for _, broken in refused} == {"ODD_B"}
    seen: list[Any] = []
    tuned = la.tune(space(), lambda choice: (seen.append(choice), by_a(choice))[1], top=4)
    assert [each["a"] for each in seen] == [1, 2, 2, 3]
    assert dict(tuned.best.choice) == {"a": 3, "b": "x"}
    assert (tuned.legal, tuned.refused, len(tuned.trials)) == (7, 3, 4)
    assert str(tuned).startswith("4 measured of 7 legal choices, 3 refused")


def test_an_empty_space_says_why() -> None:
    def refuse(choice: Any) -> Any:
        if choice["a"] > 3:
            raise LayoutError(la.Diagnostic("LA504", "too large", (), "more than 3"))
        return la.admissible("(64,64):(65,1)", "wgmma.A") if choice["a"] == 3 else Broken("SMALL", "at most 2")

    with pytest.raises(InfeasibleError, match="every choice of the space is refused") as error:
        la.tune(space(legal=refuse), by_a)
    because = error.value.diagnostic.because
    assert "SMALL: at most 2 (4 of 10)" in because
    assert "LA504: more than 3 (4 of 10)" in because
    assert "(2 of 10)" in because


@pytest.mark.parametrize("workers", [None, ThreadPoolExecutor])
def test_a_second_call_measures_only_what_is_missing(tmp_path: Path, workers: Any) -> None:
    file, seen = tmp_path / "results.db", []

    def measure(choice: dict[str, Any]) -> float:
        seen.append(dict(choice))
        if choice["a"] == 2:
            raise RuntimeError("no such register")
        return by_a(choice)

    def run(top: int, **changes: Any) -> Any:
        if workers is None:
            return tune(space(**changes), measure, database=file, top=top)
        with workers(2) as executor:
            return tune(space(**changes), measure, executor, file, top)

    assert len(run(3).trials) == 3
    tuned = run(7)
    assert len(seen) == 7
    assert [trial.stored for trial in sorted(tuned.trials, key=lambda each: each.cycles)] == [True] * 3 + [False] * 4
    assert [trial.note for trial in tuned.trials if trial.measured is None] == ["RuntimeError: no such register"] * 2
    for change in ({"guard": "n % 8 == 0"}, {"dtype": "f16"}, {"legality": "2"}, {"name": "other"}):
        assert not any(trial.stored for trial in run(1, **change).trials)
    assert len(seen) == 11


def die_once(choice: dict[str, Any]) -> float:
    marker = Path(os.environ["LAYOUTALG_TEST_DEATH"])
    with (marker / f"{choice['a']}{choice['b']}").open("a") as log:
        log.write("x")
    if choice["a"] == 3 and not (marker / "died").exists():
        (marker / "died").touch()
        os._exit(1)
    return by_a(choice)


def test_a_worker_that_dies_loses_nothing_that_was_measured(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAYOUTALG_TEST_DEATH", str(tmp_path))
    file = tmp_path / "results.db"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor, pytest.raises(BudgetError, match="workers died"):
        tune(space(), die_once, executor, file, 7)
    with sqlite3.connect(file) as results:
        kept = results.execute("select count(*) from results").fetchone()[0]
    results.close()
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        tuned = tune(space(), die_once, executor, file, 7)
    assert len(tuned.trials) == 7
    assert sum(trial.stored for trial in tuned.trials) == kept
    assert tuned.best.choice["a"] == 5
    stored = {f"{trial.choice['a']}{trial.choice['b']}" for trial in tuned.trials if trial.stored}
    assert all((tmp_path / name).read_text() == "x" for name in stored)


def test_an_error_of_dask_itself_is_no_result(tmp_path: Path) -> None:
    class KilledWorkerError(Exception):
        __module__ = "distributed.scheduler"

    def measure(choice: dict[str, Any]) -> float:
        if choice["a"] == 3:
            raise KilledWorkerError("a worker died three times")
        return by_a(choice)

    with ThreadPoolExecutor(1) as executor, pytest.raises(BudgetError, match="died three times"):
        tune(space(), measure, executor, tmp_path / "results.db")
    assert [each.stored for each in tune(space(), by_a, database=tmp_path / "results.db").trials].count(False) <= 4


def test_an_interrupted_search_goes_on(tmp_path: Path) -> None:
    file, count = tmp_path / "results.db", itertools.count()

    def interrupted(choice: dict[str, Any]) -> float:
        if next(count) == 3:
            raise KeyboardInterrupt
        return by_a(choice)

    with pytest.raises(KeyboardInterrupt):
        tune(space(), interrupted, database=file)
    assert sum(trial.stored for trial in tune(space(), by_a, database=file).trials) == 3


def write_down(choice: dict[str, Any]) -> float:
    """Note the begin and the end of a measurement; the worker of one choice dies the first time."""
    folder, name = Path(os.environ["LAYOUTALG_TEST_DEATH"]), f"{choice['a']}{choice['b']}"
    with (folder / f"{name}.begun").open("a") as log:
        log.write("x")
    time.sleep(0.1)
    if name == "4y" and not (folder / "died").exists():
        (folder / "died").touch()
        os._exit(1)
    with (folder / f"{name}.ended").open("a") as log:
        log.write("x")
    return by_a(choice)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask's distributed is not installed")
def test_two_workers_of_dask_one_killed(tmp_path: Path, monkeypatch: Any) -> None:
    from distributed import Client, LocalCluster

    monkeypatch.setenv("LAYOUTALG_TEST_DEATH", str(tmp_path))
    told: list[Any] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        tuned = tune(space(), write_down, client.get_executor(), tmp_path / "results.db",
                     progress=lambda *each: told.append(each[:2]))  # fmt: skip
    assert tuned.best.choice["a"] == 5
    assert told == [(done, 7) for done in range(1, 8)]
    assert (tmp_path / "died").exists()
    written = {file.name: file.read_text() for file in tmp_path.iterdir() if file.suffix in (".begun", ".ended")}
    assert len(written) == 14
    assert {name for name, marks in written.items() if marks != "x"} == {"4y.begun"}


def search_once(file: str) -> list[bool]:
    return [trial.stored for trial in tune(space(), write_down, None, file).trials]


@pytest.mark.parametrize("executors", [False, True])
def test_two_searches_at_once_share_the_work(tmp_path: Path, monkeypatch: Any, executors: bool) -> None:
    """Each choice is measured by one of them; the other waits for the result."""
    monkeypatch.setenv("LAYOUTALG_TEST_DEATH", str(tmp_path))
    (tmp_path / "died").touch()
    file, context = str(tmp_path / "results.db"), multiprocessing.get_context("spawn")
    if executors:
        with ThreadPoolExecutor(2) as one, ThreadPoolExecutor(2) as two, ThreadPoolExecutor(2) as both:
            calls = [both.submit(tune, space(), write_down, executor, file) for executor in (one, two)]
            found = [[trial.stored for trial in call.result().trials] for call in calls]
    else:
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            found = list(pool.map(search_once, [file, file]))
    assert [len(stored) for stored in found] == [7, 7]
    assert sum(map(sum, found)) == 7  # what one has measured the other has found
    assert {log.read_text() for log in tmp_path.glob("*.begun")} == {"x"}
    with sqlite3.connect(file) as results:
        assert results.execute("select count(*) from claims").fetchone()[0] == 0
    results.close()


def test_a_claim_without_a_sign_of_life_is_taken_over(tmp_path: Path, monkeypatch: Any) -> None:
    """A live search keeps what it has claimed, however long it measures; of a killed one it is free after a while."""
    file = tmp_path / "results.db"
    monkeypatch.setattr(trials, "BEAT", 0.2)
    monkeypatch.setattr(trials, "SILENCE", 2.0)
    seen: list[float] = []

    def slow(choice: dict[str, Any]) -> float:
        seen.append(choice["a"])
        time.sleep(2.6)
        return by_a(choice)

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(tune, space(), slow, None, file, 1) for _ in range(2)]
        assert sorted(call.result().trials[0].stored for call in calls) == [False, True]
    assert seen == [1]
    with sqlite3.connect(file) as results:
        key = results.execute("select space, target, dtype, guard, legality, choice from results").fetchone()
        results.execute("delete from results")
        results.execute("insert into claims values (?, ?, ?, ?, ?, ?, 'killed', ?)", (*key, time.time()))
    results.close()
    began = time.time()
    assert tune(space(), by_a, None, file, 1).trials[0].measured == -1
    assert time.time() - began > 1.5


@pytest.mark.parametrize("jobs", [1, 2])
def test_answers_come_in_order(jobs: int) -> None:
    with workers(jobs) as executor:
        assert list(answers(abs, range(-20, 0), executor)) == list(range(20, 0, -1))
        with pytest.raises(TypeError):
            list(answers(abs, [1, "x", 2], executor))


def test_nobody_answers_at_the_address(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="LA897"), workers(dask="tcp://127.0.0.1:1"):
        pass


@pytest.mark.peer
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask's distributed is not installed")
@pytest.mark.nightly
def test_the_two_workers_of_the_page(tmp_path: Path) -> None:
    """The block of shell commands in docs/search.md, on another port, and again: then everything is stored."""
    page = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    block = page.split("```sh\n")[1].split("```")[0].replace("8786", port)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = "layoutalg() { " + f'"{sys.executable}" -m layoutalg "$@"; }}\nset -m\n' + block
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path, "PYTHONPATH": ROOT},
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.stdout.startswith("16 measured of 1372 legal choices"), done.stdout + done.stderr
    with sqlite3.connect(tmp_path / "results.db") as results:
        assert results.execute("select count(*) from results").fetchone()[0] == 16
    results.close()


def test_progress_is_told() -> None:
    told: list[Any] = []
    tune(space(), by_a, top=3, progress=lambda *each: told.append(each))
    assert [(done, total, trial.measured) for done, total, trial in told] == [(1, 3, -1), (2, 3, -2), (3, 3, -2)]


def test_progress_on_a_terminal(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    tune(space(), by_a, top=1)
    assert capsys.readouterr().err == '1/1 -1 {"a": 1, "b": "x"}\n'


def test_nothing_could_be_measured() -> None:
    with pytest.raises(InfeasibleError, match="ZeroDivisionError"):
        tune(space(), lambda _: 1 / 0)
    with pytest.raises(InfeasibleError, match="must return a number"):
        tune(space(), lambda _: float("nan"))


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    file = tmp_path / "no.db"
    file.write_text("this is no database, although it is long enough to be one" * 20)
    for arguments, word in (
        ((3, by_a), "space"), ((space(), 3), "measure"), ((space(), by_a, 3), "executor"),
        ((space(), by_a, None, 3), "database"), ((space(), by_a, None, file), "LA889"),
        ((space(), by_a, None, None, 0), "top"),
    ):  # fmt: skip
        with pytest.raises(MalformedError, match=word):
            tune(*arguments)
    for changes, word in (
        ({"choices": {}}, "choices"), ({"choices": {"a": ()}}, "choices"), ({"choices": {"a": (1.5,)}}, "choices"),
        ({"choices": {"a": (1, 2, 1)}}, "must not repeat"),
        ({"name": 3}, "name"), ({"legal": None}, "legal"), ({"work": 3}, "work"), ({"choices": 3}, "choices"),
    ):  # fmt: skip
        with pytest.raises(MalformedError, match=word):
            space(**changes)
    with pytest.raises(BudgetError, match="65536"):
        space(choices={"a": range(300), "b": range(300)})
    with pytest.raises(MalformedError, match="legal"):
        space(legal=lambda _: 3).ranked()
    with pytest.raises(MalformedError, match="work"):
        space(work=lambda _: 3).ranked()


@settings(max_examples=60)
@given(st.integers(1, 6000), st.sampled_from((1, 8, 16, 64)), st.sampled_from((1, 8, 16, 24)))
def test_the_closed_form_of_the_tile_is_the_enumerated_best(room: int, row_step: int, column_step: int) -> None:
    tiles = [
        (rows, columns)
        for rows in range(row_step, room + 1, row_step)
        for columns in range(column_step, room // rows + 1, column_step)
    ]
    best = min(((1 / rows + 1 / columns) for rows, columns in tiles), default=None)
    found = least_traffic_tile(room, row_step, column_step)
    assert (found is None) == (best is None)
    if found is not None:
        assert found[0] * found[1] <= room
        assert 1 / found[0] + 1 / found[1] == pytest.approx(best)


@settings(max_examples=60)
@given(
    st.sampled_from([("tensor", "sm_100a"), ("tensor", "sm_103a"), ("registers", "sm_90a"), ("shared", "sm_80")]),
    st.sampled_from((128, 256)), st.sampled_from((8, 16, 32, 48)), st.integers(1, 40),
)  # fmt: skip
def test_the_tile_of_a_tier_is_the_enumerated_best(where: Any, row_step: int, column_step: int, buffers: int) -> None:
    """Tensor memory: 128 lanes of 512 columns of 4 bytes; a tile has columns of its own for each 128 rows."""
    tier, target = where
    least, columns_of = None, {"tensor": 512 * 128 * 4, "registers": 65536 * 4, "shared": 163 * 1024}[tier]
    assert tier_bytes(tier, target) == columns_of
    for rows in range(row_step, 20_000, row_step):
        for columns in range(column_step, 4_000, column_step):
            used = rows // 128 * columns * 512 if tier == "tensor" else rows * columns * 4
            if used * buffers > columns_of:
                break
            least = min(1 / rows + 1 / columns, least or 9.0)
    found = tier_tile(tier, target, row_step, column_step, buffers)
    assert (found is None) == (least is None)
    if found is not None:
        assert 1 / found[0] + 1 / found[1] == pytest.approx(least)


def test_tiers_that_a_target_lacks() -> None:
    for tier, target in (("tensor", "sm_90a"), ("shared", "gfx942")):
        with pytest.raises(RepresentabilityError, match=f"no {tier} memory"):
            tier_bytes(tier, target)
    with pytest.raises(MalformedError, match="row_step"):
        tier_tile("tensor", "sm_100a", 64, 16)
    with pytest.raises(MalformedError, match="tier"):
        tier_bytes("cache")


@settings(max_examples=60)
@given(st.integers(1, 2000), st.integers(0, 10**9), st.integers(0, 10**7), st.integers(0, 10**9))
def test_an_estimate_bounds_every_resource(blocks: int, macs: int, shared: int, hbm: int) -> None:
    chip = roofs("sm_90a")
    work = Work(blocks, "bf16", macs, shared_bytes=shared, hbm_bytes=hbm)
    found, _ = cycles(work)
    turns = -(-blocks // chip.units)
    assert found == max(turns * macs / 2048, turns * shared / 128, hbm / chip.hbm_bytes)
    assert found >= blocks / chip.units * macs / 2048
    assert cycles(Work(blocks + 1, "bf16", macs, shared_bytes=shared, hbm_bytes=hbm))[0] >= found
