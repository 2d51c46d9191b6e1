"""Every ``wgmma`` instruction with the library's descriptors, fragments and K steps, and probes of its reads.

The campaign runs every pair of operand types, accumulator, N, A in shared memory or registers, dense or sparse, under
every major and swizzle that the types allow, on random small integers that every type holds exactly; D must equal the
integer product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from device import Fault, Run
from device_wgmma_cases import Chains, campaign_cases
from device_wgmma_probes import PROBES, run_probe
from instruments.wgmma_chain import Shape, chain_kernel

from layoutalg.targets.nvidia import wgmma


def groups(every: int) -> list[list[Shape]]:
    """Return the instructions of the campaign, in groups that are compiled together."""
    found = []
    for kind in wgmma.MULTIPLIES.values():
        for accumulator in kind.accumulators:
            for registers in (False, True):
                for sparse in (False, True) if kind.sparse else (False,):
                    chosen = [n for i, n in enumerate(kind.n) if i % every == 0 or n == kind.n[-1]]
                    shapes = [Shape(kind.a, kind.b, accumulator, n, registers, sparse) for n in chosen]
                    found += [shapes[i::4] for i in range(4) if shapes[i::4]]
    return found


def run_group(shapes: list[Shape]) -> list[dict[str, Any]]:
    """Run the cases of some instructions that are compiled together."""
    device, rows = Chains(shapes), []
    for shape in shapes:
        rng = np.random.default_rng([shape.n, len(shape.name), shape.registers, shape.sparse])
        case, expected, labels = campaign_cases(shape, rng)
        found = zip(labels, differences(shape, device.chain(shape, case), expected), strict=True)
        wrong = [(label, first) for label, first in found if first is not None]
        rows.append({"instruction": shape.ptx, "registers": shape.registers, "cases": case.blocks, "wrong": len(wrong),
                     "first": wrong[:1]})  # fmt: skip
    return rows


def differences(shape: Shape, words: np.ndarray, expected: np.ndarray) -> list[list[int] | None]:
    """Return for each block the first wrong (row, column, got, expected), read by the accumulator's fragment."""
    if shape.accumulator == "f16":
        values = np.ascontiguousarray(words).view(np.float16).astype(np.float64)
    else:
        values = words.view(np.float32 if shape.accumulator == "f32" else np.int32).astype(np.float64)
    places = wgmma.accumulator_coordinates(shape.n)
    found = np.full((len(words), 64, shape.n), np.nan)
    found[:, places[..., 0], places[..., 1]] = values
    answer: list[list[int] | None] = []
    for got, wanted in zip(found, expected, strict=True):
        wrong = np.argwhere(got != wanted)
        if len(wrong):
            row, column = (int(i) for i in wrong[0])
            answer.append([row, column, repr(got[row, column]), int(wanted[row, column]), len(wrong)])  # type: ignore[list-item]
        else:
            answer.append(None)
    return answer


def wgmma_job(run: Run) -> None:
    """Run all groups and probes; groups that fault again one by one."""
    asked = run.options.only or ["campaign", "probes"]
    work = groups(run.options.every) if "campaign" in asked else []
    if run.options.rehearse:
        shapes = [*work, *([shape] for shape, _ in PROBES.values())] if "probes" in asked else work
        run.compile(chain_kernel(each[0], each[1:]) for each in shapes)
    names = list(PROBES) if "probes" in asked else []
    probes = dict(zip(names, run.each(run_probe, names, group=1, seconds=150), strict=True))
    answers = run.each(run_group, work, group=1, seconds=150)
    alone = [
        [shape] for shapes, answer in zip(work, answers, strict=True) if isinstance(answer, Fault) for shape in shapes
    ]
    again = run.each(run_group, alone, group=1, seconds=150)
    rows = [row for answer in (*answers, *again) if not isinstance(answer, Fault) for row in answer]
    faults = [{"job": shape.ptx, "error": answer.text} for [shape], answer in zip(alone, again, strict=True)
              if isinstance(answer, Fault)]  # fmt: skip
    if work:
        counts = {name: sum(row[name] for row in rows) for name in ("cases", "wrong")}
        run.write(
            "wgmma_campaign_dev", {"instructions": len(rows), "faults": len(faults)} | counts, rows=rows, faults=faults
        )
    ran = {name: answer for name, answer in probes.items() if not isinstance(answer, Fault)}
    if ran:
        run.save(
            "wgmma_probes_dev", **{f"{name}/{key}": array for name, each in ran.items() for key, array in each.items()}
        )
        verdicts = {name: str(each["verdict"]) for name, each in ran.items()}
        lost = {name: answer.text for name, answer in probes.items() if isinstance(answer, Fault)}
        run.write("wgmma_probes_dev", {"probes": len(ran), "faults": lost}, verdicts=verdicts)
