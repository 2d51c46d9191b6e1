"""Kernels with one mistake each, every one in a process of its own; and right kernels under random delays.

The mistakes are those of ``tests/judges/pipeline_breaks.py`` that are not safe, and of the text. A wait that waits in
vain gives up after some 60 ms, so that the kernel ends with a status that names it. Each kernel runs a few times, as it
is and with delays before every op. Right kernels must give the same bits with every seed of delays.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from device import Fault, Run, cuda
from judges.broken_kernels import CASES, Broken, Case, broken_kernel, broken_texts, case, right
from judges.pipeline_breaks import breaks

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.pipeline.emission import Emitted, emit

LAUNCHES, SPINS = 10, "LA_SPIN_LIMIT (1 << 14)"
Item = tuple[str, str, str, list[Emitted]]
"""Case, class, mistake, kernels."""


def named(made: Emitted, name: str) -> Emitted:
    """The kernel under another name, with waits that give up soon; it may serialise multiplies."""
    text = made.kernel.text.replace(f" {made.kernel.name}(\n", f" {name}(\n", 1)
    kernel = replace(made.kernel, name=name, text=text.replace("LA_SPIN_LIMIT (1 << 18)", SPINS), roles=())
    return replace(made, kernel=kernel)


def mistakes(many: int) -> list[Item]:
    """So many mistakes, the same share of each class: two in three of a pipeline, the others of a text."""
    drawn = [(one.bug, name, one) for name in CASES
             for one in breaks(case(name).program.pipeline.to_json(), together=True)]  # fmt: skip
    found: list[Broken] = []
    for name, one in spread(drawn, 2 * many):
        made = broken_kernel(name, one)
        silent = " read " in one.what and "slot -1" in one.what  # its values are there under a condition alone
        if isinstance(made, Broken) and made.emitted.proof is None and not silent:
            found.append(made)
    texts = [(made.bug, made.case, made) for name in CASES for made in broken_texts(name)]
    found = [found[at * len(found) // (many * 2 // 3)] for at in range(min(len(found), many * 2 // 3))]
    found += [made for _, made in spread(texts, many - len(found))]
    items = []
    for number, made in enumerate(found):
        kernels = [made.emitted]
        if not made.text:
            kernels.append(emit(made.emitted.program, "late", unproved=True, delays=number))
        kernels = [named(each, f"broken_{number}_{which}") for which, each in enumerate(kernels)]
        items.append((made.case, made.bug, made.what, kernels))
    return items


def spread(drawn: list[tuple[str, str, Any]], many: int) -> list[tuple[str, Any]]:
    """So many, evenly taken from all in the order of classes and cases."""
    ordered = sorted(drawn, key=lambda each: each[:2])
    many = min(many, len(ordered))
    return [ordered[number * len(ordered) // many][1:] for number in range(many)]


def delayed(seeds: int) -> list[Item]:
    """The right kernels with as many seeds of delays."""
    return [
        (name, "right", f"seed {seed}", [named(right(name, seed), f"late_{number}_{seed}")])
        for number, name in enumerate(CASES)
        for seed in range(seeds)
    ]


def launched(of: Case, made: Emitted) -> tuple[str, np.ndarray]:
    """The wait that a launch's status names, and the result."""
    device = cuda()
    there = [device.upload(each) for each in of.inputs]
    status = device.upload(np.zeros(of.blocks, dtype=np.int32))
    device.launch(made.kernel, of.arguments(there, status), of.blocks)
    words = device.download(status, np.empty(of.blocks, dtype=np.int32))
    result = device.download(there[-1], np.empty_like(of.inputs[-1]))
    device.free(*there, status)
    return next((word for word in map(made.gave_up, map(int, words)) if word), ""), result


@functools.cache
def wanted(name: str) -> np.ndarray:
    """What a case must give; where that differs from machine to machine, what the right kernel gives."""
    found = case(name).wanted
    return launched(case(name), plain(name))[1] if found is None else found


def plain(name: str) -> Emitted:
    """The right kernel."""
    return named(right(name), f"plain_{list(CASES).index(name)}")


def run_item(item: Item) -> str:
    """What the launches show: a status, wrong numbers; nothing if all is right."""
    name, _, _, kernels = item
    for made, _ in itertools.product(kernels, range(LAUNCHES)):
        told, result = launched(case(name), made)
        if told:
            return f"status: {told}"
        if not np.array_equal(result, wanted(name)):
            return "numbers"
    return ""


def outcome(answer: Any) -> str:
    """One word for what came back."""
    if isinstance(answer, Fault):
        return "hang" if "no answer" in answer.text else "fault"
    return answer.split(":")[0] or "silent"


def breaks_job(run: Run) -> None:
    """Run all mistakes, then all delays; count what shows by class."""
    wrong, late = mistakes(run.options.mutants), delayed(run.options.seeds)
    kernels: list[KernelSource] = [made.kernel for item in (*wrong, *late) for made in item[3]]
    run.compile([*kernels, *[plain(name).kernel for name in CASES]])
    able = [item for item in wrong if all(made.kernel.name not in run.refused for made in item[3])]
    answers = run.each(run_item, able, alone=[True] * len(able), seconds=60, workers=4)
    rows = [{"case": name, "class": bug, "what": what, "outcome": outcome(answer),
             "more": getattr(answer, "text", answer)}
            for (name, bug, what, _), answer in zip(able, answers, strict=True)]  # fmt: skip
    classes: dict[str, Counter[str]] = {}
    for row in rows:
        classes.setdefault(row["class"], Counter())[row["outcome"]] += 1
    same = run.each(run_item, late, workers=4)
    failed = [(item[0], item[2], getattr(answer, "text", answer)) for item, answer in zip(late, same, strict=True)
              if outcome(answer) != "silent"]  # fmt: skip
    total = Counter(row["outcome"] for row in rows)
    summary = {"mutants": len(rows), "refused": len(run.refused), "outcomes": total, "classes": classes,
               "delayed": len(late), "delayed_wrong": len(failed)}  # fmt: skip
    run.write("breaks_dev", summary, rows=rows, failed=failed)
