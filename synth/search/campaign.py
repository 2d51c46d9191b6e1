"""Campaigns: many random cases, each a function of its seed alone, on the workers of searches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, MissingExtraError
from layoutalg.ground.record import Record
from layoutalg.synth.search.roofline import CHECK
from layoutalg.synth.search.workers import completed, workers

Case: TypeAlias = Callable[[int], str]
"""From a seed to what is wrong, empty if nothing."""
CASES: Final = 2**24
"""cases: of one campaign"""
BATCH: Final = 16
"""Cases of one piece of work."""
SEEDS: Final = 2**64
SHOWN: Final = 100
"""counterexamples: after which a campaign ends"""


@dataclass(frozen=True, slots=True)
class Counterexample(Record, code="LA886"):
    """A case that went wrong.

    Args:
        seed: Its seed; a campaign of one case with this seed repeats it.
        what: What is wrong.
    """

    seed: int
    what: str


@dataclass(frozen=True, slots=True)
class Campaign(Record, code="LA886", schema="layoutalg/campaign/1", json="name seed asked done wrong seconds"):
    """What a campaign found.

    Args:
        name: Its name.
        seed: The seed of its first case; the others follow.
        asked: Cases that were asked for.
        done: Cases that ran; fewer if the time was up, or after ``SHOWN`` counterexamples.
        wrong: The counterexamples, by seed.
        seconds: Time it took.
    """

    name: str
    seed: int
    asked: int
    done: int
    wrong: tuple[Counterexample, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.done} of {self.asked} cases, {len(self.wrong)} wrong, {self.seconds:.1f} s"]
        return "\n".join(lines + [f"  seed {each.seed}: {each.what}" for each in self.wrong])


def run_campaign(
    name: str,
    case: Case,
    plans: int,
    seed: int = 1,
    *,
    jobs: int = 1,
    dask: str | None = None,
    seconds: float = math.inf,
    progress: Callable[[int, str], object] = lambda *_: None,
) -> Campaign:
    """Run a case on consecutive seeds, in this process, several, or on the workers of dask.

    What a worker that dies was given runs again on others; a case whose result is here never does.

    Args:
        name: Name of the campaign.
        case: From a seed to what is wrong, empty if nothing; an exception is wrong too. Workers import it.
        plans: Number of cases.
        seed: Seed of the first case.
        jobs: Processes.
        dask: Address of a scheduler whose workers take their place.
        seconds: Time after which no further cases begin; it is no deadline of a case.
        progress: Called with the number of cases that are done and the name.

    Raises: BudgetError: LA888: no worker lives long enough to end a piece of work. MalformedError: LA886.

    Example:
        >>> found = run_campaign("sevens", lambda seed: "a seven" if seed % 10 == 7 else "", 20)
        >>> found.done, [each.seed for each in found.wrong]
        (20, [7, 17])
    """
    asked, first = CHECK.integer(plans, "plans", 1, CASES + 1), CHECK.integer(seed, "seed", 0, SEEDS)
    CHECK.integer(jobs, "workers", 1, 2**10)
    limit = clock.checked_seconds(seconds)
    if not callable(case):
        raise CHECK.malformed("case", "must be callable", case)
    begun, done = time.monotonic(), 0
    wrong: list[Counterexample] = []
    for batch, found in _judged(name, case, [range(at, min(at + BATCH, asked)) for at in range(0, asked, BATCH)],
                                first, jobs, dask):  # fmt: skip
        wrong += found
        done += len(batch)
        progress(done, name)
        if time.monotonic() - begun >= limit or len(wrong) >= SHOWN:
            break
    wrong.sort(key=lambda each: (each.seed - first) % SEEDS)
    return Campaign(name, first, asked, done, tuple(wrong), round(time.monotonic() - begun, 1))


def _judged(
    name: str, case: Case, waiting: list[range], first: int, jobs: int, dask: str | None
) -> Iterator[tuple[range, list[Counterexample]]]:
    """Yield batches with their counterexamples; what dead workers have left is given to new ones."""
    while waiting:
        lost: list[range] = []
        with workers(jobs, dask) as executor:
            for batch, found in completed(
                partial(_wrong, case), waiting, lambda batch: [(first + at) % SEEDS for at in batch], executor
            ):
                if isinstance(found, BrokenExecutor):
                    lost.append(batch)
                elif isinstance(found, Exception):
                    raise found
                else:
                    yield batch, found
        if len(lost) == len(waiting):
            because = "a case may kill its worker: run one case at a time, without workers"
            raise BudgetError(Diagnostic("LA888", "the workers died before the campaign ended", (name,), because))
        waiting = lost


def _wrong(case: Case, seeds: Sequence[int]) -> list[Counterexample]:
    found = [(seed, _said(case, seed)) for seed in seeds]
    return [Counterexample(seed, text) for seed, text in found if text]


def _said(case: Case, seed: int) -> str:
    try:
        return str(case(seed))[:500]
    except MissingExtraError:  # of this machine, not of the case
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500]
