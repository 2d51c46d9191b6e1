"""Products of ragged groups on a device, beside a padded batched product and PyTorch's grouped one.

    python benchmarks/device.py grouped --out RESULTS        (kernels are emitted there: nothing to carry)

Schedule and product are one graph; peers run in turns with it in one process. ``pad`` copies the rows of each group to
its place in a batch of the longest size, rounded up to 128 rows, and multiplies the batch by cuBLAS; where rows go is
computed beforehand, and padding is not cleared. ``back`` also takes the rows out again. ``bmm`` is the batch alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from device import Fault, Run, here

from layoutalg.codegen.kernels import Form, GroupedKernel, grouped_forms, grouped_gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import TIMES

PADDED = 128
SHAPES = [(256, 128, 2048, 7168), (256, 128, 7168, 2048), (256, 128, 4096, 4096), (32, 2048, 4096, 4096)]
"""Groups, rows of a group at most, N, K."""
FORMS = (
    Form(64, 256, 1, 128, behind=1), Form(64, 128, 1, 128, behind=1), Form(128, 256, 2, 128),
    Form(128, 128, 2, 128, behind=1), Form(128, 192, 2, 64),
)  # fmt: skip
BEHIND = 64
"""Rows of no group."""


@dataclass(frozen=True)
class Case:
    """Products of one shape: kernels of several forms, the default first, and two that run behind one schedule."""

    shape: tuple[int, int, int, int]
    sizes: tuple[int, ...]
    alone: tuple[GroupedKernel, ...]
    pair: tuple[GroupedKernel, ...]


def cases(seed: int) -> list[Case]:
    """All kernels of the job."""
    rng, found = np.random.default_rng(seed), []
    for shape in SHAPES:
        groups, most, n, k = shape
        sizes = tuple(map(int, rng.integers(1, most + 1, groups)))
        rows = sum(sizes) + BEHIND
        first = grouped_forms(rows, groups, n, k, 2)[0][1]
        alone: list[tuple[Form, tuple[Form, ...]]] = [(form, ()) for form in dict.fromkeys((first, *FORMS))]
        thin, tall = FORMS[0], FORMS[2]
        assert {thin, tall} <= TIMES.keys()
        made = [
            grouped_gemm_kernel(rows, groups, n, k, form=form, beside=beside, name=f"grouped_{groups}_{n}x{k}_{number}")
            for number, (form, beside) in enumerate([*alone, (thin, (tall,)), (tall, (thin,))])
        ]
        found.append(Case(shape, sizes, tuple(made[:-2]), tuple(made[-2:])))
    return found


@functools.cache
def torch() -> Any:
    import torch

    torch.zeros(1, device="cuda")
    return torch


def run_case(case: Case) -> dict[str, Any]:
    """Compare every kernel of a shape with a batched product, and time them and the peers in turns."""
    from device_products import graphed, launcher, milliseconds

    t, (groups, _, n, k) = torch(), case.shape
    rows, total = sum(case.sizes) + BEHIND, sum(case.sizes)
    a = t.empty(rows, k, dtype=t.bfloat16, device="cuda").normal_()
    b = t.empty(groups, n, k, dtype=t.bfloat16, device="cuda").normal_()
    ends = np.cumsum([0, *case.sizes])
    offsets = t.tensor(ends, dtype=t.int32, device="cuda")
    tall = -(-max(case.sizes) // PADDED) * PADDED
    places = np.concatenate([np.arange(size) + group * tall for group, size in enumerate(case.sizes)])
    where = t.tensor(places, device="cuda")
    padded = t.zeros(groups * tall, k, dtype=t.bfloat16, device="cuda")
    out = t.zeros(groups, tall, n, dtype=t.bfloat16, device="cuda")
    taken = t.zeros(total, n, dtype=t.bfloat16, device="cuda")

    def bmm() -> None:
        t.bmm(padded.view(groups, tall, k), b.transpose(1, 2), out=out)

    def pad() -> None:
        padded.index_copy_(0, where, a[:total])
        bmm()

    def back() -> None:
        pad()
        t.index_select(out.view(groups * tall, n), 0, where, out=taken)

    back()
    t.cuda.synchronize()
    units = t.cuda.get_device_properties(0).multi_processor_count
    acts: list[Callable[[], object]] = []
    found, keep = [], list[Any]()
    for kernels in (*[(made,) for made in case.alone], case.pair):
        first = kernels[0]
        schedule = t.full((first.schedule_words,), -1, dtype=t.int32, device="cuda")
        d = t.full((rows, n), math.nan, dtype=t.bfloat16, device="cuda")
        planned = first.schedule_arguments(offsets.data_ptr(), schedule.data_ptr())
        launches = [launcher(first.scheduler, built(first.scheduler.name), planned, first.schedule_blocks)]
        states = []
        for made in kernels:
            blocks = min(made.blocks, units * max(1, 229376 // (made.kernel.dynamic_smem_bytes + 1024)))
            states.append(t.zeros(blocks, dtype=t.int32, device="cuda"))
            places_of = [each.data_ptr() for each in (a, b, d, schedule)]
            given = made.arguments(*places_of, blocks, states[-1].data_ptr())
            launches.append(launcher(made.kernel, built(made.kernel.name), given, blocks))
        acts.append(functools.partial(in_turn, [act for act, _ in launches]))
        acts[-1]()
        t.cuda.synchronize()
        far = float((d[:total].float() - taken.float()).abs().max() / taken.float().abs().max())
        done = all(bool((status == 1).all()) for status in states)
        keep.append((schedule, d, states, launches[0][0]))
        found.append({
            "form": " or ".join([str(made.form) for made in kernels]), "header": schedule[:4].tolist(), "error": far,
            "right": done and far < 0.01 and bool(t.isnan(d[total:]).all()), "equal": bool(t.equal(d[:total], taken)),
            "kernels": [numbers for _, numbers in launches[1:]],
        })  # fmt: skip
    peers: dict[str, Callable[[], object]] = {"pad": pad, "back": back, "bmm": bmm}
    try:
        t._grouped_mm(a[:total], b.transpose(1, 2), offs=offsets[1:])
        peers["grouped_mm"] = lambda: t._grouped_mm(a[:total], b.transpose(1, 2), offs=offsets[1:])
    except (AttributeError, RuntimeError) as error:
        refused = f"{type(error).__name__}: {error}"[:200]
    else:
        refused = ""
    many = 2
    times = milliseconds([graphed(each, many) for each in (*acts, *peers.values(), keep[0][-1])], many)
    mine = dict(zip([each["form"] for each in found], times, strict=False))
    theirs = dict(zip(peers, times[len(acts) :], strict=False))
    chosen = times[0]
    return {
        "shape": case.shape, "rows": total, "right": all(each["right"] for each in found), "ms": mine,
        "peers_ms": theirs, "ratio": theirs["pad"] / chosen, "best_ratio": theirs["pad"] / min(mine.values()),
        "bytes": 2 * (groups * n * k + total * (n + k)),
        "gbps": 2 * (groups * n * k + total * (n + k)) / chosen / 1e6, "tflops": 2 * total * n * k / chosen / 1e9,
        "schedule_us": 1000 * times[-1], "refused": refused, "kernels": found,
    }  # fmt: skip


def in_turn(acts: Sequence[Callable[[], object]]) -> None:
    """Launches, one behind the other."""
    for act in acts:
        act()


def built(name: str) -> bytes:
    """The machine code that the job has compiled."""
    return (here() / f"{name}.cubin").read_bytes()


def grouped_job(run: Run) -> None:
    """Every shape: right, and how long beside the peers."""
    every = cases(run.options.seed)
    run.compile(
        [kernel for case in every for made in (*case.alone, *case.pair) for kernel in (made.kernel, made.scheduler)]
    )
    told = run.each(run_case, every, group=len(every), seconds=run.options.seconds, workers=1)
    rows = [
        {"shape": case.shape, "fault": one.text} if isinstance(one, Fault) else one
        for case, one in zip(every, told, strict=True)
    ]
    ran = [row for row in rows if "ratio" in row]
    for row in ran:
        print(f"{row['shape']}  {row['ratio']:.3f} of pad and bmm, best form {row['best_ratio']:.3f}  "
              f"{row['gbps']:.0f} GB/s  {row['tflops']:.0f} TFLOP/s  schedule {row['schedule_us']:.1f} us")  # fmt: skip
        for name, time in (row["ms"] | row["peers_ms"]).items():
            print(f"    {time:.4f} ms  {name}")
    run.write("grouped_dev", {
        "right": sum(row["right"] for row in ran), "shapes": len(rows),
        "faults": [row["fault"] for row in rows if "fault" in row],
        "ratio": {str(row["shape"]): round(row["ratio"], 3) for row in ran},
        "best_ratio": {str(row["shape"]): round(row["best_ratio"], 3) for row in ran},
    }, rows=rows)  # fmt: skip
