"""Worker processes for calls that Python cannot interrupt, such as ISL: a process can be killed on time-out.

Implementation notes: a worker is a fresh interpreter (never a fork: the caller may have threads) that receives one task
at a time over pipes and is reused. A task is a function of this library with plain values as arguments. The worker sets
an alarm before each task, so it ends in time even if its caller has died. Any thread may call; a forked child forgets
the workers of its parent. If no interpreter can be started (an embedded or frozen application), the task runs in the
calling process under its own limits only.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO, Final, ParamSpec, TypeVar

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError

WORKER_BYTES: Final = 4 * 2**30
"""bytes: address space of one worker process"""

WORKERS: Final = 4
"""processes: concurrent workers; further callers wait within their own time limit"""

WORKER_TASKS: Final = 2_000
"""tasks: one worker, before it is replaced"""

P = ParamSpec("P")
T = TypeVar("T")

_HEADER = struct.Struct("<Q")
_START = "import sys; sys.path[:] = {path!r}; from layoutalg.ground.worker import serve; serve({memory})"
_GRACE = 1
"""Seconds from the caller's deadline to the worker's own alarm."""
_served = False


class _CrashError(Exception):
    """The worker died before answering."""


class _Worker:
    """A worker process and its two pipes."""

    def __init__(self) -> None:
        start = _START.format(path=[entry for entry in sys.path if isinstance(entry, str)], memory=WORKER_BYTES)
        self.tasks = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C goes to the caller, which then stops the worker
        )
        os.set_blocking(self._reader.fileno(), False)

    @property
    def _writer(self) -> BinaryIO:
        return self.process.stdin  # type: ignore[return-value]

    @property
    def _reader(self) -> BinaryIO:
        return self.process.stdout  # type: ignore[return-value]

    def ask(self, task: bytes, deadline: float) -> tuple[bool, Any]:
        """Send a task and return (succeeded, answer or exception).

        Raises: TimeoutError: No answer by the deadline (monotonic seconds). _CrashError: The process died.
        """
        self.tasks += 1
        try:
            self._writer.write(_HEADER.pack(len(task)) + task)
            self._writer.flush()
        except OSError:
            raise _CrashError from None
        (size,) = _HEADER.unpack(self._read(_HEADER.size, deadline))
        answer: tuple[bool, Any] = pickle.loads(self._read(size, deadline))
        return answer

    def _read(self, size: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(self._reader, selectors.EVENT_READ)
            while size:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                part = os.read(self._reader.fileno(), min(size, 2**20))
                if not part:
                    raise _CrashError
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def stop(self) -> int | None:
        """Kill the process and return its exit status."""
        self.process.kill()
        status = self.process.wait()
        self.close()
        return status

    def close(self) -> None:
        """Close the pipes; the process exits at the end of its input."""
        for pipe in (self._writer, self._reader):
            with contextlib.suppress(OSError):
                pipe.close()


class _Pool:
    """The idle workers of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seats = threading.BoundedSemaphore(WORKERS)
        self.idle: list[_Worker] = []

    def take(self) -> _Worker:
        with self.lock:
            if self.idle:
                return self.idle.pop()
        return _Worker()

    def keep(self, worker: _Worker) -> None:
        if worker.tasks >= WORKER_TASKS:
            worker.stop()
            return
        with self.lock:
            self.idle.append(worker)

    def stop(self) -> None:
        with self.lock:
            idle, self.idle = self.idle, []
        for worker in idle:
            worker.stop()


_pool = _Pool()


def _forget() -> None:
    """Reset after a fork: the workers belong to the parent, and the pool's lock may be held."""
    global _pool
    for worker in _pool.idle:
        worker.close()
        worker.process.returncode = 0  # not ours to wait for
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _pool.stop())


def inside() -> bool:
    """Return whether this process is a worker."""
    return _served


def available() -> bool:
    """Return whether workers can be started: an interpreter exists and the application is not frozen."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def run(what: str, seconds: float, task: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return ``task(*args, **kwargs)``, computed in a worker within the time.

    Args:
        what: What is being done, for messages.
        seconds: Wall time; an earlier deadline of the caller also applies.
        task: A module-level function; arguments and result are plain values.

    Raises: BudgetError: LA001, LA003. LayoutError: Whatever the task raises.

    Example:
        >>> import math
        >>> run("a factorial", 30, math.factorial, 5)
        120
    """
    if inside() or not available():
        return task(*args, **kwargs)
    given = clock.left(clock.checked_seconds(seconds))
    deadline = time.monotonic() + min(given, 10 * 365 * 86400)
    pool = _pool
    if not pool.seats.acquire(timeout=min(given, threading.TIMEOUT_MAX)):
        clock.out_of_time(what, given)
    try:
        try:
            worker = pool.take()
        except OSError as error:  # out of processes or memory
            raise _crash_error(what, f"a process could not be started: {error}") from None
        try:
            # the worker's alarm starts once it is up, which is later than now
            succeeded, answer = worker.ask(pickle.dumps((given + _GRACE, task, args, kwargs)), deadline)
        except TimeoutError:
            worker.stop()
            clock.out_of_time(what, given)
        except _CrashError:
            raise _crash_error(what, f"the process that computed it ended with status {worker.stop()}") from None
        except BaseException:  # also Ctrl-C: the worker is in the middle of a task
            worker.stop()
            raise
        pool.keep(worker)
    finally:
        pool.seats.release()
    if not succeeded:
        raise answer
    return answer  # type: ignore[no-any-return]


def _crash_error(what: str, because: str) -> BudgetError:
    return BudgetError(Diagnostic("LA003", "the solver process ended without an answer", (what,), because))


def serve(memory_bytes: int) -> None:
    """Answer tasks from standard input until it ends."""
    global _served
    _served = True
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    reader, writer = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a solver's output must not mix with the answers
    while len(header := reader.read(_HEADER.size)) == _HEADER.size:
        answer = _answer(reader.read(_HEADER.unpack(header)[0]))
        writer.write(_HEADER.pack(len(answer)) + answer)
        writer.flush()


def _answer(task: bytes) -> bytes:
    """Run one task and return its pickled outcome."""
    try:
        seconds, function, args, kwargs = pickle.loads(task)
        if hasattr(signal, "setitimer") and seconds < 10**9:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        return pickle.dumps((True, function(*args, **kwargs)))
    except LayoutError as error:
        return pickle.dumps((False, error))
    except Exception as error:
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
