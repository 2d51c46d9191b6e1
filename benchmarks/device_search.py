"""Is the best of 16 measured choices within 5 % of the best of all? Every choice of a part of six spaces is timed.

The part (``PARTS``) has one depth and swizzle for products, and about a hundred legal choices each; of more, all of the
first 16 and every so many of the others. Processes compile while one measures; a problem's choices run in turns, as
graphs, on random data, each compared with the peer first. Then one search by ``la.tune`` with ``MeasureGemm``.

    python benchmarks/device_search.py RECORD     (the table, and copies and steps as they fit the record best)
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import device_products as products
import numpy as np
from device import Fault, Run
from device_ablation import WRONG, Prepared, parsed

import layoutalg as la
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernels import attention_kernel, gemm_kernel, spaces
from layoutalg.codegen.measure import MeasureGemm
from layoutalg.synth.search import Ranked, Space, cycles
from layoutalg.targets.roofs import roofs

TARGET, TOP, WORKERS = "sm_90a", 16, 16
PROBLEMS = (
    "gemm 1024x1024x4096 bf16", "gemm 4096x4096x4096 bf16", "gemm 8192x8192x512 bf16", "gemm 304x704x504 bf16",
    "gemm 4096x4096x4096 e4m3", "attention 32x4096x4096x128",
)  # fmt: skip
PARTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "gemm": {"columns": (64, 128, 192, 256), "leaving": (64, 128), "cluster": (1, 2), "depth": (128,),
             "swizzle": ("128B",), "split": (1, 2, 4)},
    "attention": {"keys": (64, 96, 128, 160, 176), "stages": (1, 2, 3)},
}  # fmt: skip
TUNED = (1024, 1024, 4096)
"""The product that ``la.tune`` searches with ``MeasureGemm``."""
Choice = dict[str, Any]


def space_of(name: str) -> Space:
    """The part of the space of a problem that is measured."""
    shape, dtype, _, causal = parsed(name)
    if len(shape) == 4:
        return spaces.attention_space(shape, causal=causal, choices=PARTS["attention"])
    return spaces.gemm_space(shape, dtype, choices=PARTS["gemm"])


def picked(name: str, most: int) -> list[tuple[int, Ranked]]:
    """The choices that are measured, each with its place in the ranking."""
    ranked = list(enumerate(space_of(name).ranked()[0]))
    rest = ranked[TOP:]
    room = max(0, most - TOP)
    some = rest if len(rest) <= room else [rest[number * len(rest) // room] for number in range(room)]
    return ranked[:TOP][:most] + some


def compiled(item: tuple[str, Choice]) -> tuple[Any, bytes] | str:
    """The kernel of a choice and its machine code, or why there is none."""
    name, choice = item
    shape, dtype, _, causal = parsed(name)
    try:
        if len(shape) == 4:
            made: Any = attention_kernel(shape, causal=causal, name="chosen", **spaces.attention_options(choice))
        else:
            made = gemm_kernel(shape, dtype, form=spaces.form_of(choice), name="chosen")
        return made, to_cubin(made.kernel)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]


def measured(item: tuple[str, list[tuple[int, Ranked, Any]]]) -> list[dict[str, Any]]:
    """A row for each choice of a problem, timed in turns."""
    name, choices = item
    begun, one = time.perf_counter(), Prepared(name)
    rows: list[dict[str, Any]] = []
    acts: list[Callable[[], None]] = []
    many = 1
    for place, ranked, answer in choices:
        row = {"problem": name, "place": place, "choice": dict(ranked.choice), "cycles": ranked.cycles,
               "bound": ranked.bound}  # fmt: skip
        rows.append(row)
        if isinstance(answer, str):
            row["fault"] = answer
            continue
        made, cubin = answer
        many = max(1, min(20, int(products.FLOPS / made.flops)))
        act, numbers = one.ours(made, cubin)
        error = one.error(act, one.blocks)
        row |= numbers | {"error": error if math.isfinite(error) else 1e9}
        if error < WRONG:
            row["act"] = len(acts)
            acts.append(products.graphed(act, many))
    acts.append(products.graphed(one.peer, many) if name.startswith("gemm") else one.peer)
    times = products.milliseconds(acts, many)
    if not name.startswith("gemm"):
        times[-1] *= many
    for row in rows:
        if "act" in row:
            row["ms"] = times[row.pop("act")]
    return [*rows, {"problem": name, "peer_ms": times[-1], "seconds": time.perf_counter() - begun}]


def tuned(_: object) -> dict[str, Any]:
    """A search by ``la.tune`` with the function that measures."""
    begun = time.perf_counter()
    found = la.tune(spaces.gemm_space(TUNED, choices=PARTS["gemm"]), MeasureGemm(TUNED), top=3)
    trials = [{"choice": dict(each.choice), "ms": each.measured, "note": each.note} for each in found.trials]
    return {"trials": trials, "seconds": time.perf_counter() - begun}


# ------------------------------------------------------------------------------------------------------------- record


def spearman(one: list[float], two: list[float]) -> float:
    """The correlation of the orders."""
    ranks = [np.argsort(np.argsort(each, kind="stable"), kind="stable") for each in (one, two)]
    return float(np.corrcoef(*ranks)[0, 1]) if len(one) > 2 else math.nan


def summaries(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is reported of each problem."""
    found = {}
    for name, group in itertools.groupby(rows, key=lambda row: row["problem"]):
        mine = list(group)
        right = [row for row in mine if "ms" in row]
        if not right:
            continue
        best, first = (
            min(row["ms"] for row in some) for some in (right, [r for r in right if r["place"] < TOP] or right)
        )
        peer = next((row["peer_ms"] for row in mine if "peer_ms" in row), math.nan)
        found[name] = {
            "measured": len(right), "faults": sum("fault" in row for row in mine),
            "wrong": sum(row.get("error", 0) >= WRONG for row in mine), "best_ms": best, "top16_ms": first,
            "top16_of_best": first / best, "place_of_best": min(right, key=lambda row: row["ms"])["place"],
            "spearman": spearman([row["cycles"] for row in right], [row["ms"] for row in right]),
            "peer_of_best": peer / best, "seconds": sum(row.get("seconds", 0) for row in mine),
        }  # fmt: skip
    return found


def search_job(run: Run) -> None:
    """Compile in processes, measure problem by problem."""
    names = [name for name in PROBLEMS if name.split()[0] in (run.options.kinds or ["gemm", "attention"])]
    asked = {name: picked(name, run.options.most) for name in names}
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("fork")) as pool:
        tasks = {name: [pool.submit(compiled, (name, dict(each.choice))) for _, each in asked[name]] for name in names}
        for name in names:
            answers = [task.result() for task in tasks[name]]
            run.refused |= {f"{name} {at}": text for at, text in enumerate(answers) if isinstance(text, str)}
            print(f"{name}: {len(answers)} compiled after {run.spent:.0f} s", flush=True)
            if run.options.rehearse:
                continue
            item = name, [(place, each, made) for (place, each), made in zip(asked[name], answers, strict=True)]
            answer = run.each(measured, [item], seconds=100, workers=1)[0]
            rows += [{"problem": name, "fault": answer.text}] if isinstance(answer, Fault) else answer
            written = {"rows": rows}
            (run.out / "search_rows.json").write_text(json.dumps(written), encoding="utf-8")
    if run.options.rehearse:
        run.compile(())
    searched = run.each(tuned, [0], seconds=60, workers=1)[0]
    searched = {"fault": searched.text} if isinstance(searched, Fault) else searched
    found = summaries(rows)
    for name, summary in found.items():
        print(f"{name:28} {line(summary)}", flush=True)
    run.write("search_dev", {"problems": found, "tuned": searched}, rows=rows)


def line(summary: dict[str, Any]) -> str:
    """A summary as text."""
    return (
        f"{summary['measured']:4} measured, {summary['wrong']} wrong, {summary['faults']} faults; "
        f"top 16 {summary['top16_of_best']:.3f} of the best, which is at {summary['place_of_best']}; "
        f"Spearman {summary['spearman']:.2f}; peer {summary['peer_of_best']:.3f}; {summary['seconds']:.0f} s"
    )


def fitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """``copied_bytes`` and ``step`` with which the estimates of products are least wrong, as a factor."""
    timed = [row for row in rows if "ms" in row and row["problem"].startswith("gemm")]
    before, best = spaces.roofs, (math.inf, 0.0, 0.0)
    works = {name: space_of(name).work for name in {row["problem"] for row in timed}}
    try:
        for copied, step in itertools.product(range(44, 80, 4), range(20, 240, 20)):
            chip = replace(roofs(TARGET), copied_bytes=float(copied), step=float(step))
            spaces.roofs = lambda _, chip=chip: chip
            logs: dict[str, list[float]] = {}
            for row in timed:
                estimate = cycles(works[row["problem"]](row["choice"]))[0]
                logs.setdefault(row["problem"], []).append(math.log(estimate / row["ms"]))
            error = math.sqrt(statistics.fmean([statistics.pvariance(some) for some in logs.values()]))
            best = min(best, (error, float(copied), float(step)))
    finally:
        spaces.roofs = before
    return {"copied_bytes": best[1], "step": best[2], "error": best[0]}


def main() -> None:
    """Print what a record says."""
    path = Path(sys.argv[1])
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    record = json.loads(text)
    for name, summary in summaries(record["rows"]).items():
        print(f"{name:28} {line(summary)}")
    print(json.dumps({"fitted": fitted(record["rows"])}))


if __name__ == "__main__":
    main()
