"""Questions to ISL end in time: the budget holds, Ctrl-C works at once, memory does not grow, processes are stopped."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from layoutalg.ground import clock, worker
from layoutalg.ground.errors import AdmissibilityError, BudgetError
from layoutalg.piecewise import PiecewiseLayout, PointSet, budget, reading

FLOORS = "{ [i] -> [" + " + ".join(f"floor(i/{k})" for k in range(2, 80)) + "] : 0 <= i < 1000 }"
MANY = "{ [i] -> [i] : " + " or ".join(f"i = {3 * k}" for k in range(5000)) + " }"
NESTED = (
    "{ [x] -> [405289*floor((872387*floor((((-586967x + 146174) mod 427089) + 23891x + 444270)/103808)"
    " + 596957x)/896410) + 538931x] }"
)
SLACK = 3.0
"""Seconds for a machine that does other things too."""


def endless(_: object) -> int:
    """Ask something that ISL would not answer within a minute."""
    time.sleep(60)
    return 0


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("seconds", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("text", [FLOORS, MANY, NESTED], ids=["floors", "many", "nested"])
def test_a_budget_holds(text: str, seconds: float) -> None:
    worker.run("warming up", 60, abs, 1)
    start = time.monotonic()
    try:
        with clock.within(seconds):
            PiecewiseLayout(text).right_inverse()
    except (BudgetError, AdmissibilityError):
        pass
    assert time.monotonic() - start < 1.5 * seconds + 0.2 + SLACK


def test_without_a_budget_isl_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutalg.ground.limits.ISL_SECONDS", 0.5)
    monkeypatch.setattr(budget, "FIRST_TEXT", -1)
    start = time.monotonic()
    with pytest.raises(BudgetError) as caught:
        budget.solve("an endless question", endless)
    assert caught.value.diagnostic.code == "LA222"
    assert time.monotonic() - start < 0.95 + SLACK
    with clock.within(0.1), pytest.raises(BudgetError, match="LA001"):
        budget.solve("an endless question", endless)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_is_heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FIRST_TEXT", -1)
    monkeypatch.setattr("layoutalg.ground.limits.ISL_SECONDS", 60.0)
    worker.run("warming up", 60, abs, 1)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        budget.solve("an endless question", endless)
    assert time.monotonic() - start < 1 + SLACK
    assert PointSet("{ [i] : 0 <= i < 3 }").count() == 3


def test_the_attempt_in_this_process_is_short() -> None:
    start = time.process_time()
    for text in (FLOORS, MANY, NESTED):
        with suppress(AdmissibilityError):
            budget.solve_here("a question", _read_map, text)
    assert time.process_time() - start < 2


def _read_map(context: object, text: str) -> str:
    import islpy

    return str(islpy.Map.read_from_str(context, text).coalesce().lexmin())  # type: ignore[arg-type]


def test_errors_of_isl_do_not_show_its_source() -> None:
    def ask(context: object) -> object:
        import islpy

        return islpy.Set.read_from_str(context, "{ [x] : x <= 3 }").lexmin()  # type: ignore[arg-type]

    with pytest.raises(AdmissibilityError) as caught:
        budget.solve("the least point", ask)
    assert caught.value.diagnostic.code == "LA791"
    assert "/" not in caught.value.diagnostic.because
    assert ".c" not in str(caught.value)


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_calls_do_not_leave_memory_behind() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def call(k: int) -> None:
        PiecewiseLayout(f"{{ [i, j] -> [{k}i + floor(j/3)] : 0 <= i < 20 and 0 <= j < 30 }}")

    def forget() -> None:
        for cached in (reading._read_function, reading._read_set):
            cached.cache_clear()
        gc.collect()

    for k in range(400):
        call(k)
    forget()
    before = resident()
    for k in range(400, 1400):
        call(k)
        if k % 100 == 0:
            forget()
    forget()
    assert resident() - before < 2.5 * 2**20  # a context per call left 4.7 KB each


def test_threads_ask_at_the_same_time() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def count(n: int) -> int:
        return PointSet(f"[N] -> {{ [i, j] : 0 <= i < N and 0 <= j < {n} }}").count_formula()(N=7)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(1, 40))) == [7 * n for n in range(1, 40)]
