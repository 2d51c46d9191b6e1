"""Measure the best-ranked choices of a space and keep every result as it arrives."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike, fspath
from typing import Any, Final, TypeAlias

from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError, MalformedError, MissingExtraError
from layoutalg.ground.record import Record
from layoutalg.ground.version import __version__
from layoutalg.synth.search.roofline import CHECK
from layoutalg.synth.search.space import POINTS, Ranked, Space, key_of
from layoutalg.synth.search.workers import completed

Progress: TypeAlias = Callable[[int, int, "Trial"], object]
BEAT: Final = 2.0
"""Seconds after which a search renews what it has claimed."""
SILENCE: Final = 30.0
"""Seconds without renewal after which others may take over."""
_NAMES = "space", "target", "dtype", "guard", "legality", "choice"
_TABLES = tuple(
    [
        f"create table if not exists {name} ({' text, '.join(_NAMES)} text, {more}, primary key ({', '.join(_NAMES)}))"
        for name, more in (("results", "seconds real, note text"), ("claims", "owner text, renewed real"))
    ]
)
_WHERE = " and ".join([f"{name} = ?" for name in _NAMES])


@dataclass(frozen=True, slots=True)
class Trial(Record, code="LA886"):
    """A choice that was measured.

    Args:
        choice: The choice.
        cycles: Its estimate.
        bound: The resource that bounds the estimate.
        measured: What ``measure`` returned, less is better; None if it raised.
        note: What it raised.
        stored: Whether the result was found in the database.
    """

    choice: Mapping[str, Any] = field(hash=False)
    cycles: float
    bound: str
    measured: float | None
    note: str = ""
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Tuned(Record, code="LA886", schema="layoutalg/tuning/1", json="trials legal refused"):
    """The answer of a search.

    Args:
        trials: What was measured, best first; those that failed last.
        legal: Number of legal choices.
        refused: Number of refused choices.
    """

    trials: tuple[Trial, ...]
    legal: int
    refused: int

    @property
    def best(self) -> Trial:
        """The fastest choice."""
        return self.trials[0]

    def __str__(self) -> str:
        count = sum(each.measured is not None for each in self.trials)
        lines = [f"{count} measured of {self.legal} legal choices, {self.refused} refused"]
        for each in self.trials:
            value = each.note if each.measured is None else f"{each.measured:.6g}"
            lines.append(f"  {value:<12} {key_of(each.choice)} ({each.cycles:.4g} cycles by {each.bound})")
        return "\n".join(lines)


def tune(
    space: Space,
    measure: Callable[[dict[str, object]], float],
    executor: Executor | None = None,
    database: str | PathLike[str] | None = None,
    top: int = 16,
    *,
    progress: Progress | None = None,
) -> Tuned:
    """Measure the choices of a space that should be fastest, and return them best first.

    Args:
        space: The choices; illegal ones are never measured.
        measure: From a choice to a number, less is better. It must be picklable if the executor has processes.
        executor: Any ``concurrent.futures.Executor``, also dask's ``Client.get_executor()``; None: one after another.
        database: An SQLite file of results; they are stored one by one, and a later call measures only what is missing.
            A choice whose measurement raised is not tried again; one whose worker died is. Of two calls at a time on
            one file, each choice is measured by one; the other waits for the result.
        top: Number of choices to measure.
        progress: Called with (done, total, trial) after each; by default a line on stderr if it is a terminal.

    Raises: InfeasibleError: LA887: no choice is legal, or none could be measured. BudgetError: LA888: the workers died.

    Example:
        >>> from layoutalg.codegen import gemm_space
        >>> space = gemm_space((4096, 4096, 4096), choices={"depth": (128,), "swizzle": ("128B",), "leaving": (64,)})
        >>> tuned = tune(space, lambda choice: 1.0 + abs(choice["rows"] - 128), top=8)
        >>> tuned.best.choice["rows"], len(tuned.trials)
        (128, 8)
    """
    CHECK.kind(space, Space, "space")
    count = CHECK.integer(top, "top", 1, POINTS + 1)
    if not callable(measure):
        raise CHECK.malformed("measure", "must be callable", measure)
    if executor is not None:
        CHECK.kind(executor, Executor, "executor")
    ranked, refused = space.ranked()
    chosen = ranked[:count]
    told = progress or (_on_terminal if sys.stderr.isatty() else lambda *_: None)
    trials: list[Trial] = []
    with _opened(database, space) as results:
        waiting = list(chosen)
        while waiting:
            others: list[Ranked] = []
            free, died = _claimed(waiting, results, trials, others), ""
            for each, answer in completed(measure, free, _choice, executor):
                if isinstance(answer, BrokenExecutor):  # what others have measured is taken first
                    died = str(answer) or type(answer).__name__
                    continue
                if isinstance(answer, MissingExtraError):  # of this machine, not of the choice
                    raise answer
                trial = _trial(each, answer)
                results.store(trial)
                trials.append(trial)
                told(len(trials), len(chosen), trial)
            if died:
                because = f"{died}; what was measured is kept: call tune again with the same database"
                what = "the workers died before the search ended"
                raise BudgetError(Diagnostic("LA888", what, (space.name,), because))
            if waiting := others:
                time.sleep(BEAT / 10)
    trials.sort(key=lambda trial: (trial.measured is None, trial.measured or 0.0))
    if trials[0].measured is None:
        what = "no choice could be measured"
        raise InfeasibleError(Diagnostic("LA887", what, (space.name,), trials[0].note))
    return Tuned(tuple(trials), len(ranked), len(refused))


def _claimed(waiting: list[Ranked], results: _Results, trials: list[Trial], others: list[Ranked]) -> Iterator[Ranked]:
    """Yield what is claimed for this search; what is stored goes to ``trials``, what others measure to ``others``."""
    for each in waiting:
        found = results.find_or_claim(each)
        if found is None:
            yield each
        elif isinstance(found, Trial):
            trials.append(found)
        else:
            others.append(each)


def _choice(ranked: Ranked) -> dict[str, Any]:
    return dict(ranked.choice)


def _trial(ranked: Ranked, answer: object) -> Trial:
    if not isinstance(answer, Exception) and (
        isinstance(answer, bool) or not isinstance(answer, Real) or answer != answer
    ):
        answer = TypeError(f"measure must return a number, not {answer!r}")
    if isinstance(answer, Exception):
        note = f"{type(answer).__name__}: {answer}"[:500]
        return Trial(_choice(ranked), ranked.cycles, ranked.bound, None, note)
    return Trial(_choice(ranked), ranked.cycles, ranked.bound, float(answer))


class _Results:
    """The results of one space in a database, and what searches that run now have claimed to measure."""

    def __init__(self, connection: sqlite3.Connection, space: Space) -> None:
        self._connection, self._owner = connection, uuid.uuid4().hex
        legality = f"layoutalg {__version__}, {space.legality}"
        self._key = space.name, space.target, space.dtype, space.guard, legality
        for table in _TABLES:
            connection.execute(table)

    def find_or_claim(self, ranked: Ranked) -> Trial | str | None:
        """Return a stored result, or the search that measures the choice now; None: it is claimed for this one."""
        key, now = (*self._key, key_of(ranked.choice)), time.time()
        with self._connection as connection:
            connection.execute("begin immediate")
            row = connection.execute(f"select seconds, note from results where {_WHERE}", key).fetchone()
            if row is not None:
                return Trial(_choice(ranked), ranked.cycles, ranked.bound, row[0], row[1], True)
            text = f"select owner from claims where {_WHERE} and renewed > ?"
            other: tuple[str] | None = connection.execute(text, (*key, now - SILENCE)).fetchone()
            if other is None:
                row = (*key, self._owner, now)
                connection.execute("insert or replace into claims values (?, ?, ?, ?, ?, ?, ?, ?)", row)
            return other and other[0]

    def store(self, trial: Trial) -> None:
        """Store a result at once; its claim goes."""
        key = (*self._key, key_of(trial.choice))
        with self._connection as connection:
            connection.execute("begin immediate")
            row = (*key, trial.measured, trial.note)
            connection.execute("insert or replace into results values (?, ?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute(f"delete from claims where {_WHERE}", key)

    def renew(self, path: str, ended: threading.Event) -> None:
        """Renew the claims until the search has ended; then drop them."""
        while not ended.wait(BEAT):
            with closing(_connected(path)) as connection:
                connection.execute("update claims set renewed = ? where owner = ?", (time.time(), self._owner))

    def drop(self) -> None:
        """Give up what is claimed and was not measured."""
        self._connection.execute("delete from claims where owner = ?", (self._owner,))


def _connected(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30, isolation_level=None)


@contextmanager
def _opened(database: str | PathLike[str] | None, space: Space) -> Iterator[_Results]:
    if database is not None and not isinstance(database, (str, PathLike)):
        raise CHECK.malformed("database", "must be the path of a file", database)
    path, ended = ":memory:" if database is None else fspath(database), threading.Event()
    try:
        with closing(_connected(path)) as connection:
            results = _Results(connection, space)
            renewing = threading.Thread(target=results.renew, args=(path, ended), daemon=True)
            if database is not None:
                renewing.start()
            try:
                yield results
            finally:
                ended.set()
                if database is not None:
                    renewing.join()
                results.drop()
    except sqlite3.Error as error:
        what = "the database of results cannot be used"
        raise MalformedError(Diagnostic("LA889", what, (str(database),), str(error))) from None


def _on_terminal(done: int, total: int, trial: Trial) -> None:
    value = trial.note if trial.measured is None else f"{trial.measured:.6g}"
    print(f"{done}/{total} {value} {key_of(trial.choice)}", file=sys.stderr, flush=True)
