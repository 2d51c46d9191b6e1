"""Many mutants against tests, in several copies of the checkout at a time."""

from __future__ import annotations

import queue
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from mutants.sandbox import Outcome, Sandbox
from mutants.stored import Mutant

T = TypeVar("T")


def _each(jobs: int, folder: Path, items: Iterable[T], ask: Callable[[Sandbox, T], Outcome]) -> Iterator[Outcome]:
    """Yield the outcomes of all items in order, at most ``jobs`` at a time, each in a copy of its own."""
    free: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
    for job in range(jobs):
        free.put(Sandbox(folder / str(job)))

    def one(item: T) -> Outcome:
        sandbox = free.get()
        try:
            return ask(sandbox, item)
        finally:
            free.put(sandbox)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, items)


def tried(mutants: list[Mutant], jobs: int, seconds: float) -> Iterator[Outcome]:
    """Yield what the related tests say to each mutant, in order; a test that kills must pass without it."""
    sane: dict[str, Outcome] = {}

    def ask(sandbox: Sandbox, mutant: Mutant) -> Outcome:
        for test in dict.fromkeys([*filter(None, [mutant.killer]), *mutant.tests]):
            outcome = sandbox.mutant(mutant, test, seconds=seconds)
            if outcome.status != "survived":
                if test not in sane:
                    sane[test] = sandbox.tests(test, seconds=seconds)
                if sane[test].status != "survived":
                    return Outcome("broken", outcome.seconds, "", f"{test} fails without the mutant")
                return outcome
        return Outcome("survived", 0.0, "", "")

    with tempfile.TemporaryDirectory() as folder:
        yield from _each(jobs, Path(folder), mutants, ask)


def killed_by(mutants: list[Mutant], folder: Path, jobs: int = 2) -> dict[str, Outcome]:
    """Return what its killer says to each mutant, by its name, and what killers say without one, by theirs."""
    killers = list(dict.fromkeys(mutant.killer for mutant in mutants))

    def ask(sandbox: Sandbox, mutant: Mutant | None) -> Outcome:
        return sandbox.tests(*killers) if mutant is None else sandbox.mutant(mutant, mutant.killer)

    sane, *found = _each(jobs, folder, [None, *mutants], ask)
    named = dict.fromkeys(killers, sane)
    if sane.status == "killed":  # the others did not run, or passed
        named = {killer: sane if killer == sane.killer else Outcome("survived", 0.0, "", "") for killer in killers}
    return named | {mutant.name: outcome for mutant, outcome in zip(mutants, found, strict=True)}
