"""The clock, the workers, bounded memory and sessions with z3: what they promise under threads, forks and crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from layoutalg.ground import clock, memory, solver, worker
from layoutalg.ground.errors import BudgetError, MalformedError


@pytest.fixture(autouse=True)
def _warm():
    """Start a worker before anything is timed."""
    worker.run("warming up", 60, abs, 1)


@pytest.mark.parametrize("value", [float("nan"), -1, "3", True, None, -float("inf")])
def test_seconds_must_be_a_number_that_ends(value):
    with pytest.raises(MalformedError, match="LA004"):
        clock.checked_seconds(value, "seconds")


def test_the_sooner_deadline_holds_and_ends_with_its_block():
    assert clock.left() == float("inf")
    with clock.within(50), clock.within(100):
        assert clock.left() <= 50
        with clock.within(1):
            assert clock.left() <= 1
        assert clock.left() > 40
    assert clock.left() == float("inf")


def test_a_thread_has_its_own_deadline():
    seen = []
    with clock.within(0):
        thread = threading.Thread(target=lambda: seen.append(clock.left()))
        thread.start()
        thread.join()
    assert seen == [float("inf")]


def test_a_worker_is_stopped_in_time_and_the_next_call_works():
    start = time.monotonic()
    with pytest.raises(BudgetError, match="LA001"):
        worker.run("a long sleep", 0.5, time.sleep, 30)
    assert time.monotonic() - start < 3
    assert worker.run("a sum", 30, sum, [1, 2, 3]) == 6


def test_the_surrounding_deadline_counts():
    start = time.monotonic()
    with clock.within(0.4), pytest.raises(BudgetError, match="LA001"):
        worker.run("a long sleep", 30, time.sleep, 30)
    assert time.monotonic() - start < 3


def test_a_crash_is_a_named_error():
    with pytest.raises(BudgetError, match=r"LA003[\s\S]*status -11"):
        worker.run("a crash", 30, signal.raise_signal, signal.SIGSEGV)
    assert worker.run("a sum", 30, sum, [1, 2, 3]) == 6


def test_errors_come_back_as_themselves():
    with pytest.raises(MalformedError, match="LA004"):
        worker.run("a refusal", 30, clock.checked_seconds, "soon")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        worker.run("a bug", 30, divmod, 1, 0)


def test_memory_of_a_worker_is_bounded():
    with pytest.raises(RuntimeError, match="MemoryError"):
        worker.run("much memory", 30, bytearray, 2**40)


def test_what_a_task_prints_is_not_an_answer():
    assert worker.run("printing", 30, os.system, "echo noise") == 0


def test_sixteen_threads_share_the_workers():
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: worker.run("a power", 60, pow, n, 2), range(64)))
    assert answers == [n * n for n in range(64)]


def test_a_forked_child_has_workers_of_its_own():
    code = (
        "import os\nfrom layoutalg.ground import worker\n"
        "assert worker.run('x', 60, abs, -1) == 1\n"
        "child = os.fork()\n"
        "answer = worker.run('x', 60, pow, 7, 2 if child else 3)\n"
        "assert answer == (49 if child else 343)\n"
        "if not child: os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert worker.run('x', 60, pow, 7, 2) == 49\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_without_an_interpreter_the_task_runs_here(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    assert worker.run("here", 30, os.getpid) == os.getpid()


def test_a_process_that_cannot_be_started_is_a_named_error(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(worker._pool, "idle", [])
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(BudgetError, match="LA003"):
        worker.run("nothing", 30, abs, 1)


def test_memory_is_refused_before_it_is_taken():
    memory.reserve("a table", 10, 8, 80)
    with pytest.raises(BudgetError, match="LA002"):
        memory.reserve("a table", 11, 8, 80)


def _hard(asked: solver.Session) -> list[object]:
    """Add a question that z3 does not answer in a second: a product of primes to be found."""
    x, y = (asked.z3.Int(name, asked.context) for name in "xy")
    asked.solver.add(x > 1, y > 1, x * y == 1000000007 * 998244353 * 1000000009, x < y)
    return [x, y]


def test_z3_ends_in_time():
    asked = solver.session()
    names = _hard(asked)
    start = time.monotonic()
    with pytest.raises(BudgetError, match="LA001"):
        solver.solve(asked, "a factor", names, 0.5)
    assert time.monotonic() - start < 3


def test_z3_from_sixteen_threads():
    def root(n: int) -> list[int] | None:
        asked = solver.session()
        x = asked.z3.Int("x", asked.context)
        asked.solver.add(x * 3 == 3 * n, x >= 0)
        return solver.solve(asked, "a quotient", [x], 60)

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(root, range(48))) == [[n] for n in range(48)]


def test_z3_says_no():
    asked = solver.session("QF_LIA")
    x = asked.z3.Int("x", asked.context)
    asked.solver.add(2 * x == 7)
    assert solver.solve(asked, "half of an odd number", [x]) is None


def test_a_model_that_does_not_hold_is_refused(monkeypatch):
    asked = solver.session()
    x = asked.z3.Int("x", asked.context)
    asked.solver.add(x == 3)
    monkeypatch.setattr(asked.z3, "is_true", lambda _: False)
    with pytest.raises(BudgetError, match="LA005"):
        solver.solve(asked, "a constant", [x])


def test_a_model_too_long_to_read_is_a_named_error():
    asked = solver.session()
    x, y = asked.z3.Ints("x y", asked.context)
    asked.solver.add(y == 10**3_000, x == y * 10**3_000)
    with pytest.raises(BudgetError, match="LA005"):
        solver.solve(asked, "a long number", [x])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_waits_until_no_thread_is_inside_z3():
    entered, leave = threading.Event(), threading.Event()

    @solver.whole
    def inside():
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=inside)
    thread.start()
    entered.wait(10)
    threading.Timer(0.3, leave.set).start()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        solver.whole(lambda: os._exit(0))()
        os._exit(1)
    assert time.monotonic() - began > 0.2
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert solver.whole(lambda: 7)() == 7
