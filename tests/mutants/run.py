"""Try the stored mutants: ``python tests/mutants/run.py [--name NAME ...] [--count N] [--check] [--keep]``.

Each mutant meets its related tests in a copy of the checkout. Prints a line for each; the exit code is 1 if fewer than
95 of 100 die or one of a checker lives. ``--check`` only says which places and tests are no longer there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.stored import KILLERS, faults, load
from mutants.trial import tried

SHARE = 0.95  # of all mutants that must die; of those in checkers, all


def main() -> int:
    """Try what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description="Try the stored mutants against their related tests.")
    parser.add_argument("--name", nargs="*", default=[], help="only mutants whose names start with one of these")
    parser.add_argument(
        "--path", nargs="*", default=[""], help="only mutants of source files that start with one of these"
    )
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
    for mutant, outcome in zip(mutants, tried(mutants, asked.jobs, asked.seconds), strict=True):
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
