"""Measure the best-ranked choices of a space and keep every result as it arrives."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike, fspath
from typing import Any, TypeAlias

from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError, MalformedError
from layoutalg.ground.record import Record
from layoutalg.ground.version import __version__
from layoutalg.synth.search.roofline import CHECK
from layoutalg.synth.search.space import POINTS, Ranked, Space, key_of

Progress: TypeAlias = Callable[[int, int, "Trial"], object]
_TABLE = """create table if not exists results (space text, target text, dtype text, guard text, legality text,
choice text, seconds real, note text, primary key (space, target, dtype, guard, legality, choice))"""


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
    measure: Callable[[dict[str, Any]], float],
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
            A choice whose measurement raised is not tried again; one whose worker died is.
        top: Number of choices to measure.
        progress: Called with (done, total, trial) after each; by default a line on stderr if it is a terminal.

    Raises: InfeasibleError: LA887: no choice is legal, or none could be measured. BudgetError: LA888: the workers died.

    Example:
        >>> from layoutalg.synth.search import gemm_space
        >>> tuned = tune(gemm_space((4096, 4096, 4096)), lambda choice: abs(choice["stages"] - 4), top=8)
        >>> tuned.best.choice["stages"], len(tuned.trials)
        (4, 8)
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
    with _opened(database, space) as results:
        trials: list[Trial] = []
        waiting = []
        for each in chosen:
            found = results.find(each)
            trials += [found] if found is not None else []
            waiting += [each] if found is None else []
        for done, trial in enumerate(_measured(waiting, measure, executor, space), len(trials) + 1):
            results.store(trial)
            trials.append(trial)
            told(done, len(chosen), trial)
    trials.sort(key=lambda trial: (trial.measured is None, trial.measured or 0.0))
    if trials[0].measured is None:
        what = "no choice could be measured"
        raise InfeasibleError(Diagnostic("LA887", what, (space.name,), trials[0].note))
    return Tuned(tuple(trials), len(ranked), len(refused))


def _measured(
    waiting: list[Ranked], measure: Callable[[dict[str, Any]], float], executor: Executor | None, space: Space
) -> Iterator[Trial]:
    """Yield trials as they are done."""
    if executor is None:
        for each in waiting:
            done: Future[float] = Future()
            try:
                done.set_result(measure(dict(each.choice)))
            except Exception as error:
                done.set_exception(error)
            yield _trial(each, done)
        return
    tasks: dict[Future[float], Ranked] = {}
    try:
        for each in waiting:
            tasks[executor.submit(measure, dict(each.choice))] = each
        for task in as_completed(tasks):
            yield _trial(tasks[task], task)
    except BrokenExecutor as error:
        because = f"{error}; what was measured is kept: call tune again with the same database"
        raise BudgetError(
            Diagnostic("LA888", "the workers died before the search ended", (space.name,), because)
        ) from None
    finally:
        for task in tasks:
            task.cancel()


def _trial(ranked: Ranked, task: Future[float]) -> Trial:
    choice = dict(ranked.choice)
    try:
        value = task.result()
        if isinstance(value, bool) or not isinstance(value, Real) or value != value:
            raise TypeError(f"measure must return a number, not {value!r}")
    except Exception as error:
        if isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__module__.startswith("distributed"):
            raise BrokenExecutor(str(error) or type(error).__name__) from None  # dask has errors of its own
        return Trial(choice, ranked.cycles, ranked.bound, None, f"{type(error).__name__}: {error}"[:500])
    return Trial(choice, ranked.cycles, ranked.bound, float(value))


class _Results:
    """The results of one space in a database."""

    def __init__(self, connection: sqlite3.Connection, space: Space) -> None:
        self._connection = connection
        legality = f"layoutalg {__version__}, {space.legality}"
        self._key = space.name, space.target, space.dtype, space.guard, legality
        connection.execute(_TABLE)

    def find(self, ranked: Ranked) -> Trial | None:
        """Return a stored result."""
        where = "space = ? and target = ? and dtype = ? and guard = ? and legality = ? and choice = ?"
        text = f"select seconds, note from results where {where}"
        row = self._connection.execute(text, (*self._key, key_of(ranked.choice))).fetchone()
        return None if row is None else Trial(dict(ranked.choice), ranked.cycles, ranked.bound, row[0], row[1], True)

    def store(self, trial: Trial) -> None:
        """Store a result at once."""
        row = (*self._key, key_of(trial.choice), trial.measured, trial.note)
        with self._connection:
            self._connection.execute("insert or replace into results values (?, ?, ?, ?, ?, ?, ?, ?)", row)


@contextmanager
def _opened(database: str | PathLike[str] | None, space: Space) -> Iterator[_Results]:
    if database is not None and not isinstance(database, (str, PathLike)):
        raise CHECK.malformed("database", "must be the path of a file", database)
    try:
        with closing(sqlite3.connect(":memory:" if database is None else fspath(database), timeout=30)) as connection:
            yield _Results(connection, space)
    except sqlite3.Error as error:
        what = "the database of results cannot be used"
        raise MalformedError(Diagnostic("LA889", what, (str(database),), str(error))) from None


def _on_terminal(done: int, total: int, trial: Trial) -> None:
    value = trial.note if trial.measured is None else f"{trial.measured:.6g}"
    print(f"{done}/{total} {value} {json.dumps(dict(trial.choice), sort_keys=True)}", file=sys.stderr, flush=True)
