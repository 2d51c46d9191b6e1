"""Run every ``wgmma`` instruction on a GPU with the library's descriptors, fragments and K steps, and probe its reads.

Run on a machine with an sm_90a GPU, from the root of the repository:

    python3 benchmarks/device_wgmma.py --out DIRECTORY [--only campaign|probes] [--every 1] [--model]

``campaign``: every pair of operand types, accumulator, N, A in shared memory or registers, dense or sparse, under every
major and swizzle that the types allow, on random small integers that every type holds exactly; D must equal the
integer product. ``probes``: which element random descriptors read, which element each register holds, which nibble of
sparse metadata is heard. DIRECTORY receives ``wgmma_campaign.json`` and ``wgmma_probes.npz``. Each group of kernels
runs in a process of its own, because a fault ends a CUDA context. ``--model`` rehearses without a GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

from device_backends import Cuda, child_error, compile_kernel, device_text  # noqa: E402
from device_wgmma_cases import Case, campaign_cases, product  # noqa: E402
from device_wgmma_probes import PROBES, run_probe  # noqa: E402
from instruments.wgmma_chain import Shape, chain_kernel  # noqa: E402

from layoutalg.targets.nvidia import wgmma  # noqa: E402

SMEM_BYTES = 220 * 1024


def compiled(shapes: list[Shape], scratch: Path) -> bytes:
    """Return the cubin of the chain kernels of some shapes."""
    kernel = chain_kernel(shapes[0], shapes[1:])
    folder = Path(tempfile.mkdtemp(dir=scratch))  # every group has its own
    compile_kernel(kernel, folder)
    return (folder / f"{kernel.name}.cubin").read_bytes()


class Device:
    """Launches chain kernels of one cubin."""

    def __init__(self, shapes: list[Shape], scratch: Path) -> None:
        self.cuda = Cuda()
        self.module = ctypes.c_void_p()
        self.cuda.check("cuModuleLoadData", ctypes.byref(self.module), compiled(shapes, scratch))

    def chain(self, shape: Shape, case: Case) -> np.ndarray:
        """Return the words of D: uint32[blocks, 128, words]."""
        out = np.zeros((case.blocks, 128, shape.words), dtype=np.uint32)
        function = ctypes.c_void_p()
        self.cuda.check("cuModuleGetFunction", ctypes.byref(function), self.module, f"la_chain_{shape.name}".encode())
        smem = case.image_bytes + 1024
        self.cuda.check("cuFuncSetAttribute", function, 8, smem)
        given = [case.image, case.a_words, case.b_words, case.a_registers, case.metadata, case.variant]
        image, a, b, registers, metadata, variant = (self.cuda.upload(array) for array in given)
        there = self.cuda.upload(out)
        try:
            numbers = [case.image_bytes, case.image_stride, case.steps]
            values = [ctypes.c_uint64(image), *(ctypes.c_int(value) for value in numbers)]
            values += [ctypes.c_uint64(pointer) for pointer in (a, b, registers, metadata, variant, there)]
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
            self.cuda.check("cuLaunchKernel", function, case.blocks, 1, 1, 128, 1, 1, smem, None, pointers, None)
            self.cuda.check("cuCtxSynchronize")
            return self.cuda.download(there, out)
        finally:
            for pointer in (image, a, b, registers, metadata, variant, there):
                self.cuda.free(pointer)


class Model:
    """The instruction as the library describes it: a rehearsal, not evidence about hardware."""

    def __init__(self, shapes: list[Shape], scratch: Path) -> None:
        pass

    def chain(self, shape: Shape, case: Case) -> np.ndarray:
        """Return the words of D: uint32[blocks, 128, words]."""
        return product(shape, case)


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


def worker(arguments: argparse.Namespace) -> None:
    """Run one group of instructions or one probe, and write what it found."""
    job = json.loads(Path(arguments.job).read_text())
    backend = Model if arguments.model else Device
    scratch = Path(arguments.job).parent
    answer = Path(arguments.job).with_suffix(".answer")
    if job["kind"] == "probe":
        shape = PROBES[job["name"]][0]
        arrays = run_probe(backend([shape], scratch), job["name"])
        np.savez(answer.with_suffix(".npz"), **arrays)
        return
    shapes = [Shape(**entry) for entry in job["shapes"]]
    device = backend(shapes, scratch)
    rows = []
    for shape in shapes:
        rng = np.random.default_rng([shape.n, len(shape.name), shape.registers, shape.sparse])
        case, expected, labels = campaign_cases(shape, rng)
        started = time.perf_counter()
        wrong = [
            (label, first)
            for label, first in zip(labels, differences(shape, device.chain(shape, case), expected), strict=True)
            if first is not None
        ]
        rows.append(
            {
                "instruction": shape.ptx, "registers": shape.registers, "cases": case.blocks, "wrong": len(wrong),
                "first": wrong[:1], "seconds": round(time.perf_counter() - started, 3),
            }
        )  # fmt: skip
    answer.write_text(json.dumps(rows))


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


def main() -> None:
    """Run all groups and probes; write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--only", choices=("campaign", "probes"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 4)
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--job")
    arguments = parser.parse_args()
    if arguments.job:
        worker(arguments)
        return
    out, scratch = Path(arguments.out), Path(tempfile.mkdtemp(prefix="wgmma-"))
    out.mkdir(parents=True, exist_ok=True)
    jobs: list[dict[str, Any]] = []
    if arguments.only != "campaign":
        jobs += [{"kind": "probe", "name": name} for name in PROBES]
    if arguments.only != "probes":
        fields = ("a", "b", "accumulator", "n", "registers", "sparse")
        jobs += [
            {"kind": "campaign", "shapes": [{f: getattr(shape, f) for f in fields} for shape in group]}
            for group in groups(arguments.every)
        ]

    def run(job: dict[str, Any]) -> tuple[dict[str, Any], Any, str]:
        number = jobs.index(job) if job in jobs else id(job)
        path = scratch / f"{number}.json"
        path.write_text(json.dumps(job))
        command = [sys.executable, __file__, "--job", str(path), *(["--model"] if arguments.model else [])]
        error = child_error(command, 150)
        if error:
            return job, None, error
        if job["kind"] == "probe":
            with np.load(path.with_suffix(".npz")) as stored:
                return job, dict(stored), ""
        return job, json.loads(path.with_suffix(".answer").read_text()), ""

    started = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        done = list(pool.map(run, jobs))
        again = [{**job, "shapes": [shape]} for job, answer, _ in done if answer is None and job["kind"] == "campaign"
                 for shape in job["shapes"]]  # fmt: skip
        if len(again) <= 200:
            done = [entry for entry in done if entry[1] is not None or entry[0]["kind"] == "probe"]
            done += list(pool.map(run, again))
    rows, probes, faults = [], {}, []
    for job, answer, error in done:
        if answer is None:
            faults.append({"job": job.get("name") or job["shapes"], "error": error})
        elif job["kind"] == "probe":
            probes.update({f"{job['name']}/{name}": array for name, array in answer.items()})
        else:
            rows += answer
    facts = {
        "date": datetime.date.today().isoformat(), "device": "model" if arguments.model else device_text(),
        "instructions": len(rows), "cases": sum(row["cases"] for row in rows),
        "wrong": sum(row["wrong"] for row in rows), "faults": len(faults),
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    document = {"facts": facts, "faults": faults, "rows": rows}
    if arguments.only != "probes":
        (out / "wgmma_campaign.json").write_text(json.dumps(document, indent=0))
    if probes:
        np.savez_compressed(out / "wgmma_probes.npz", facts=json.dumps(facts), **probes)
    for name in (name for name in probes if name.endswith("/verdict")):
        print(name, str(probes[name]))
    for row in [row for row in rows if row["wrong"]][:60]:
        print(json.dumps(row))
    for fault in faults[:40]:
        print(json.dumps(fault))
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
