"""Ragged copies of small groups on a device, byte for byte: boxes behind a schedule, vectors, beside dense copies.

    python benchmarks/device_spans.py --make build/spans.pickle     (where islpy and z3 are: boxes are planned)
    python benchmarks/device.py spans --made build/spans.pickle     (on the device; the file is carried there)

Groups of 2 to 64 rows, all equal or of random sizes, stay where they are (``in place``) or move to random places
(``placed``). ``boxes`` is schedule and copy as one graph, ``alone`` the copy behind a schedule that is there already.
``vectors T x V x B`` is one launch with T threads, V vectors of each, B blocks of a multiprocessor; ``read`` is a
launch of the first of them whose groups are all empty: what reading and checking them costs. Ratios are to the faster
of two dense copies, by vectors and by the copy engine, and to PyTorch's.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from device import Fault, Run
from device_ragged import built, torch

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import ArrayKernel, RaggedKernel, SpanKernel, copy_kernel
from layoutalg.codegen.kernels.ragged import ragged_copy_kernel
from layoutalg.codegen.kernels.ragged_spans import ragged_span_kernel
from layoutalg.codegen.kernels.schedule import MOST_GROUPS

BYTES = 1 << 28
"""Of the groups at most."""
ROW_BYTES, MEANS = (256, 1024, 4096), (2, 4, 8, 16, 64)
FORMS = ((1024, 8, 1), (1024, 4, 1), (1024, 4, 2), (1024, 2, 1), (1024, 2, 2), (512, 4, 2), (512, 8, 1), (512, 8, 2))
"""Threads, vectors of each, blocks of a multiprocessor at most; the first is the default."""
LABELS = ["vectors {} x {} x {}".format(*form) for form in FORMS]
BEHIND = 64
"""Rows of no group."""
SIDES = (False, True)
"""Whether groups are placed elsewhere."""


@dataclass(frozen=True)
class Case:
    """All kernels for groups of a mean size; pairs and lists of pairs are by ``SIDES``."""

    row_bytes: int
    mean: int
    groups: int
    boxes: tuple[RaggedKernel, ...]
    vectors: tuple[tuple[SpanKernel, ...], ...]
    dense: tuple[ArrayKernel, ...]

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return self.groups * self.mean

    @property
    def kernels(self) -> list[KernelSource]:
        """All of them."""
        found = [kernel for made in self.boxes for kernel in (made.kernel, made.scheduler)]
        found += [made.kernel for side in self.vectors for made in side]
        return found + [made.kernel for made in self.dense]


def made_cases() -> list[Case]:
    """All kernels of the job, planned here."""
    cases = []
    for row in ROW_BYTES:
        for mean in MEANS:
            groups, columns = min(MOST_GROUPS, BYTES // (row * mean)), row // 4
            shape, label = (groups * mean + BEHIND, columns), f"{row}_{mean}"
            boxes = [
                ragged_copy_kernel(shape, "f32", groups, way="boxes", placed=placed, name=f"boxes_{label}_{placed}")
                for placed in SIDES
            ]
            vectors = [
                tuple([
                    ragged_span_kernel(shape, "f32", groups, placed=placed, threads=threads, per_thread=each,
                                       name=f"vectors_{label}_{placed}_{threads}_{each}")
                    for threads, each, _ in FORMS
                ])
                for placed in SIDES
            ]  # fmt: skip
            tile = (max(1, 16384 // min(row, 1024)), min(columns, 256))
            even = (groups * mean, columns)
            dense = (
                copy_kernel(even, "f32", way="vector", per_thread=2, name=f"dense_{label}_vector"),
                copy_kernel(even, "f32", way="tma", tile=tile, stages=6, name=f"dense_{label}_tma"),
            )
            assert all(isinstance(made, RaggedKernel) for made in boxes)
            cases.append(Case(row, mean, groups, tuple(boxes), tuple(vectors), dense))  # type: ignore[arg-type]
    return cases


def resident(kernel: KernelSource, registers: int) -> int:
    """Blocks of a multiprocessor."""
    by_smem = 229376 // (kernel.dynamic_smem_bytes + 1024)
    return max(1, min(2048 // kernel.threads, 65536 // (max(registers, 16) * kernel.threads), by_smem))


def run_case(case: Case, seed: int) -> list[dict[str, Any]]:
    """Equal and random sizes, in place and placed: compare every way, then time them in turns."""
    rng = np.random.default_rng([seed, case.row_bytes, case.mean])
    sizes = {
        "equal": np.full(case.groups, case.mean),
        "random": rng.multinomial(case.rows, np.full(case.groups, 1 / case.groups)),
    }
    return [run_sizes(case, name, each, placed, rng) for name, each in sizes.items() for placed in SIDES]


def run_sizes(case: Case, name: str, sizes: Any, placed: bool, rng: np.random.Generator) -> dict[str, Any]:
    """One line of the table."""
    from device_products import graphed, launcher, milliseconds

    t, side = torch(), int(placed)
    units = t.cuda.get_device_properties(0).multi_processor_count
    source = t.empty(case.rows + BEHIND, case.row_bytes // 4, dtype=t.int32, device="cuda")
    source.view(t.uint8).random_(0, 256)
    result = t.full_like(source, 85)
    ends = np.cumsum([0, *sizes])
    order = rng.permutation(case.groups)
    starts = np.zeros(case.groups, np.int64)
    starts[order] = np.cumsum([0, *sizes[order][:-1]])
    where = np.arange(case.rows) + np.repeat(starts - ends[:-1], sizes) if placed else np.arange(case.rows)
    wanted = result.clone()
    wanted[t.tensor(where, device="cuda")] = source[: case.rows]
    offsets = t.tensor(ends, dtype=t.int32, device="cuda")
    placed_at = t.tensor(starts, dtype=t.int32, device="cuda")
    empty = t.zeros_like(offsets)
    status = t.zeros(1 << 16, dtype=t.int32, device="cuda")
    acts: dict[str, Callable[[], object]] = {"torch": lambda: result[: case.rows].copy_(source[: case.rows])}
    numbers: dict[str, dict[str, int]] = {}

    def launch(
        label: str, kernel: KernelSource, arguments: Callable[[int], list[Any]], most: int, each: int = 8
    ) -> Any:
        _, numbers[label] = launcher(kernel, built(kernel), arguments(1), 1)
        blocks = max(1, min(most, units * min(each, resident(kernel, numbers[label]["registers"]))))
        numbers[label] = numbers[label] | {"blocks": blocks}
        return launcher(kernel, built(kernel), arguments(blocks), blocks)[0]

    from_to = source.data_ptr(), result.data_ptr()
    for each, way in zip(case.dense, ("vector", "tma"), strict=True):
        if each.persistent:
            acts[f"dense {way}"] = launch(
                f"dense {way}", each.kernel, lambda many, made=each: made.arguments(*from_to, many, status.data_ptr()),
                each.blocks,
            )  # fmt: skip
        else:
            acts[f"dense {way}"] = launcher(each.kernel, built(each.kernel), each.arguments(*from_to), each.blocks)[0]
    boxes = case.boxes[side]
    schedule = t.full((boxes.schedule_words,), -1, dtype=t.int32, device="cuda")
    listing = boxes.schedule_arguments(
        offsets.data_ptr(), schedule.data_ptr(), placed=placed_at.data_ptr() if placed else None
    )
    plan, _ = launcher(boxes.scheduler, built(boxes.scheduler), listing, boxes.schedule_blocks)
    alone = launch("boxes", boxes.kernel, lambda many: boxes.arguments(
        *from_to, schedule.data_ptr(), many, status.data_ptr()), boxes.blocks)  # fmt: skip
    ways = {"boxes": (plan, alone)}

    def given(groups: Any) -> dict[str, int]:
        more = {"placed": placed_at.data_ptr()} if placed else {}
        return {"source": from_to[0], "destination": from_to[1], "groups": groups.data_ptr()} | more

    for label, form, made in zip(LABELS, FORMS, case.vectors[side], strict=True):
        ways[label] = (launch(label, made.kernel, lambda many, made=made: made.arguments(
            many, status.data_ptr(), **given(offsets)), made.blocks, form[2]),)  # fmt: skip
    made = case.vectors[side][0]
    right = {}
    for label, launches in ways.items():
        result.fill_(85)
        status.zero_()
        for act in launches:
            act()
        t.cuda.synchronize()
        right[label] = bool(t.equal(result, wanted)) and bool((status[: numbers[label]["blocks"]] == 1).all())

    def in_turn(launches: tuple[Any, ...]) -> None:
        for act in launches:
            act()

    for label, launches in ways.items():
        acts[label] = lambda launches=launches: in_turn(launches)  # type: ignore[misc]
    acts |= {"alone": alone, "schedule": plan}
    acts["read"] = launch("read", made.kernel, lambda many: made.arguments(
        many, status.data_ptr(), **given(empty)), made.blocks, FORMS[0][2])  # fmt: skip
    many = 4
    us = dict(zip(acts, [1e3 * each for each in milliseconds([graphed(act, many) for act in acts.values()], many)],
                  strict=True))  # fmt: skip
    dense = min(us["dense vector"], us["dense tma"])
    moved = 2 * case.rows * case.row_bytes
    return {
        "row_bytes": case.row_bytes, "mean_rows": case.mean, "groups": case.groups, "sizes": name,
        "placed": placed, "bytes": moved, "right": right, "us": us, "gbps": moved / us[LABELS[0]] / 1e3,
        "ratio": {label: dense / us[label] for label in (*ways, "alone")},
        "to_torch": {label: us["torch"] / us[label] for label in ways}, "kernels": numbers,
    }  # fmt: skip


def spans_job(run: Run) -> None:
    """Every case: right, and how long beside dense copies."""
    path = Path(run.options.made)
    cases: list[Case] = pickle.loads(path.read_bytes()) if path.is_file() else made_cases()
    run.compile([kernel for case in cases for kernel in case.kernels])
    told = run.each(run_case, cases, run.options.seed, group=len(cases), seconds=run.options.seconds, workers=1)
    rows = [row for one in told if not isinstance(one, Fault) for row in one]
    print("rows x bytes     sizes   where     boxes (alone)  default  best vectors                "
          "to torch  schedule, read us")  # fmt: skip
    for row in rows:
        ratio, us = row["ratio"], row["us"]
        best = max((label for label in ratio if label.startswith("vectors")), key=ratio.__getitem__)
        row["best"] = best
        where, right = "placed" if row["placed"] else "in place", all(row["right"].values())
        print(f"{row['mean_rows']:4} x {row['row_bytes']:5} B  {row['sizes']:7} {where:9} "
              f"{ratio['boxes']:.3f} ({ratio['alone']:.3f})  {ratio[LABELS[0]]:.3f}    {ratio[best]:.3f} {best:22} "
              f"{row['to_torch'][best]:.3f}     "
              f"{us['schedule']:.1f} {us['read']:.1f}  {'right' if right else 'WRONG'}")  # fmt: skip
    bar = [row for row in rows if row["mean_rows"] >= 4 and row["row_bytes"] >= 1024]
    run.write("spans_dev", {
        "lines": len(rows), "right": sum(all(row["right"].values()) for row in rows),
        "faults": [one.text for one in told if isinstance(one, Fault)][:4],
        "least_ratio": {
            f"{label}, {'placed' if placed else 'in place'}":
                round(min(row["ratio"][label] for row in bar if row["placed"] == placed), 3)
            for label in (bar[0]["ratio"] if bar else ()) for placed in SIDES
        },
    }, rows=rows)  # fmt: skip


def main() -> None:
    """Plan all kernels of the job into a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--make", required=True)
    path = Path(parser.parse_args().make)
    import device_spans  # so that the pickle names this module, not __main__

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(device_spans.made_cases()))
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
