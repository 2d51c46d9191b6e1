"""Try the stored mutants: ``python tests/mutants/run.py [--name NAME ...] [--count N] [--check] [--keep]``.

Each mutant meets its related tests in a copy of the checkout. Prints a line for each; the exit code is 1 if fewer than
95 of 100 die or one of a checker lives. ``--check`` only says which places and tests are no longer there.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.sandbox import Outcome, Sandbox
from mutants.stored import KILLERS, Mutant, faults, load

SHARE = 0.95  # of all mutants that must die; of those in checkers, all


def tried(mutants: list[Mutant], jobs: int, seconds: float) -> Iterator[tuple[Mutant, Outcome]]:
    """Yield what the related tests say to each mutant, in order; the tests of each must pass without it."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        free: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
        for job in range(jobs):
            free.put(Sandbox(Path(folder) / str(job)))
        sane: dict[str, Outcome] = {}

        def one(mutant: Mutant) -> Outcome:
            sandbox = free.get()
            try:
                killed = None
                for test in dict.fromkeys([*filter(None, [mutant.killer]), *mutant.tests]):
                    outcome = sandbox.mutant(mutant, test, seconds=seconds)
                    if outcome.status == "survived":
                        continue
                    if test not in sane:
                        sane[test] = sandbox.tests(test, seconds=seconds)
                    if sane[test].status != "survived":
                        return Outcome("broken", outcome.seconds, "", f"{test} fails without the mutant")
                    killed = outcome
                    break
                return killed or Outcome("survived", 0.0, "", "")
            finally:
                free.put(sandbox)

        yield from zip(mutants, pool.map(one, mutants), strict=True)


def main() -> int:
    """Try what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description="Try the stored mutants against their related tests.")
    parser.add_argument("--name", nargs="*", default=[], help="only mutants whose names start with one of these")
    parser.add_argument("--path", nargs="*", default=[""], help="only mutants of source files that start with one of these")
    parser.add_argument("--count", type=int, help="only this many")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the checkout that run at a time")
    parser.add_argument("--seconds", type=float, default=300, help="the most for one file of tests")
    parser.add_argument("--check", action="store_true", help="only list the places and tests that are gone")
    parser.add_argument("--new", action="store_true", help="only those that no test is known to kill")
    parser.add_argument("--keep", action="store_true", help="keep the test that kills each in killers.json")
    asked = parser.parse_args()
    mutants = load()
    wrong = faults(mutants)
    if asked.check or wrong:
        print("\n".join(wrong) or f"all {len(mutants)} mutants are in place")
        return int(bool(wrong))
    known = {mutant.name for mutant in mutants}
    mutants = [mutant for mutant in mutants if not asked.name or mutant.name.startswith(tuple(asked.name))]
    mutants = [mutant for mutant in mutants if mutant.path.startswith(tuple(asked.path))]
    mutants = [mutant for mutant in mutants if not (asked.new and mutant.killer)][: asked.count]
    results = []
    for mutant, outcome in tried(mutants, asked.jobs, asked.seconds):
        results.append((mutant, outcome))
        kind = "checker" if mutant.checker else ""
        told = outcome.killer or mutant.waits or outcome.said[-200:]
        print(f"{outcome.status:<9} {outcome.seconds:5.1f} s  {mutant.name:<44} {kind:<8} {told}", flush=True)
        if asked.keep and outcome.killer:
            kept = json.loads(KILLERS.read_text()) if KILLERS.exists() else {}
            kept = {name: test for name, test in {**kept, mutant.name: outcome.killer}.items() if name in known}
            KILLERS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    dead = [mutant for mutant, outcome in results if outcome.status in ("killed", "timeout")]
    alive = [mutant for mutant, outcome in results if outcome.status not in ("killed", "timeout")]
    checkers = [mutant for mutant, _ in results if mutant.checker]
    lived = [mutant.name for mutant in alive if mutant.checker]
    print(f"{len(dead)} of {len(results)} killed; {len(checkers) - len(lived)} of {len(checkers)} in checkers")
    if lived:
        print("in checkers survived:", *lived)
    return int(bool(lived) or len(dead) < SHARE * len(results))


if __name__ == "__main__":
    sys.exit(main())
