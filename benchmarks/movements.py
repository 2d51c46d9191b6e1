"""Rewrite the thirty programs of movement and compare with greedy rewriting and a dynamic program over layouts.

    python benchmarks/movements.py

Prints the table of ``docs/rewriting.md``: cycles by the cost tables, steps, rules that joined classes, nodes, and
milliseconds of the engine and of the planners with empty caches.
"""

from __future__ import annotations

import functools
import gc
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests")]

from judges.movement_baselines import dynamic, greedy  # noqa: E402
from judges.movement_programs import PROGRAMS  # noqa: E402

import layoutalg as la  # noqa: E402
from layoutalg.synth.rewrite import costs_of, rewrite  # noqa: E402


def forget() -> None:
    """Clear the caches of the library."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith("layoutalg"):
            each.cache_clear()


def main() -> None:
    """Print the table."""
    rewrite(PROGRAMS["attention_keys_transposed"]())  # loads what is imported on first use
    print("| program | before | greedy | dynamic | rewritten | steps | rules | nodes | engine ms | planners ms |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    wins = {"both": 0, "greedy": 0, "dynamic": 0}
    for name, make in PROGRAMS.items():
        whole = make()
        costs = costs_of(whole, "sm_90a")
        forget()
        found = rewrite(whole)
        others = {"greedy": greedy(whole, costs), "dynamic": dynamic(whole, costs)}
        for other, _ in others.values():
            if not la.same_movement(whole, other, most_nodes=1):
                raise SystemExit(f"{name}: a baseline is another movement")
        found.check()
        better = {each: found.cost.cycles < cycles - 1e-6 for each, (_, cycles) in others.items()}
        wins = {each: count + better.get(each, all(better.values())) for each, count in wins.items()}
        cells = [found.cost_before.cycles, *[cycles for _, cycles in others.values()], found.cost.cycles]
        mark = " (win)" if all(better.values()) else ""
        ended = "" if found.saturated and found.optimal else "*"
        shown = " | ".join(f"{each:.0f}" for each in cells)
        counts = f"{len(found.steps)} | {len(found.fired)} | {found.nodes}"
        times = f"{found.engine_ms:.0f} | {found.planner_ms:.0f}"
        print(f"| {name.replace('_', ' ')}{mark} | {shown}{ended} | {counts} | {times} |")
    print(f"\nstrictly cheaper than both: {wins['both']}, than greedy {wins['greedy']}, than dynamic {wins['dynamic']}")


if __name__ == "__main__":
    main()
