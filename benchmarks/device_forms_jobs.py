"""Launches as values, run in child processes: a kernel that faults or hangs ends its child and nothing else.

Implementation notes: the parent compiles and never touches the device. A child runs its jobs in order and writes each
result at once; where one faults, its context is lost, and the next child goes on behind it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from layoutalg.codegen.kernel import KernelSource  # noqa: E402

CHILD_SECONDS = 60
PER_CHILD = 80
WORKERS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class MapAt:
    """An argument: a tensor map whose base moves to where another argument lies."""

    raw: bytes
    tensor: int


@dataclass
class Job:
    """One launch.

    Args:
        name: What it asks.
        kernel: The kernel.
        arguments: Arrays (copied to the device), integers, ``MapAt``.
        outputs: Which arguments come back.
        blocks: Grid size.
        expected: By argument, what must come back; None where that is the question.
        facts: What is reported with it.
        risky: Whether it runs alone in its process.
    """

    name: str
    kernel: KernelSource
    arguments: list[Any]
    outputs: tuple[int, ...]
    blocks: int = 1
    expected: dict[int, np.ndarray] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    risky: bool = False


@dataclass
class Result:
    """What came back: arrays by argument, or the driver's error."""

    arrays: dict[int, np.ndarray] = field(default_factory=dict)
    fault: str = ""

    def wrong(self, job: Job) -> int:
        """Return how many entries differ from what was expected."""
        if job.expected is None or self.fault:
            return 0
        return sum(int((self.arrays[at] != table).sum()) for at, table in job.expected.items())


def compiled(kernels: list[KernelSource], scratch: Path) -> dict[str, str]:
    """Write the cubins; return by name the log of those that the compiler refused."""
    from layoutalg.codegen.compile import to_cubin

    refused = {}
    for kernel in {kernel.name: kernel for kernel in kernels}.values():
        try:
            (scratch / f"{kernel.name}.cubin").write_bytes(to_cubin(kernel))
        except Exception as error:  # the log is the answer
            refused[kernel.name] = str(error)[-600:]
    return refused


def run_jobs(jobs: list[Job], rehearse: bool = False) -> list[Result]:
    """Run all jobs; results in order. A rehearsal returns what is expected, and touches no device."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        refused = compiled([job.kernel for job in jobs], scratch)
        results: list[Result | None] = [None] * len(jobs)
        for number, job in enumerate(jobs):
            if job.kernel.name in refused:
                results[number] = Result(fault=f"compiler: {refused[job.kernel.name]}")
            elif rehearse:
                held = {at: job.arguments[at] for at in job.outputs} | (job.expected or {})
                results[number] = Result(held)
        open_ = [number for number, result in enumerate(results) if result is None]
        safe = [number for number in open_ if not jobs[number].risky]
        many = max(1, min(PER_CHILD, -(-len(safe) // WORKERS)))
        groups = [safe[first : first + many] for first in range(0, len(safe), many)]
        groups += [[number] for number in open_ if jobs[number].risky]
        with ThreadPoolExecutor(WORKERS) as pool:
            for pairs in pool.map(lambda pair: _group(pair[0], pair[1], jobs, scratch), enumerate(groups)):
                for number, result in pairs:
                    results[number] = result
    return [result or Result(fault="lost") for result in results]


def _group(index: int, numbers: list[int], jobs: list[Job], scratch: Path) -> list[tuple[int, Result]]:
    """Run some jobs in children until each has a result."""
    done: list[tuple[int, Result]] = []
    while len(done) < len(numbers):
        rest = numbers[len(done) :]
        path = scratch / f"group{index}_{len(done)}"
        path.write_bytes(pickle.dumps([jobs[number] for number in rest]))
        command = [sys.executable, __file__, str(path), str(scratch)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_SECONDS, check=False)
            ending = f"exit {said.returncode}: {said.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            ending = f"no result within {CHILD_SECONDS} s"
        found = _read(path.with_suffix(".out"))
        done += list(zip(rest, found, strict=False))
        if not found or (len(found) < len(rest) and not found[-1].fault):
            done.append((rest[len(found)], Result(fault=ending)))
    return done


def _read(path: Path) -> list[Result]:
    found: list[Result] = []
    if path.exists():
        with path.open("rb") as stream:
            while True:
                try:
                    found.append(pickle.load(stream))
                except (EOFError, pickle.UnpicklingError):
                    break
    return found


def _run(job: Job, cuda: Any, cubins: Path) -> Result:
    from layoutalg.codegen.launch import place_map

    pointers = {at: cuda.upload(value) for at, value in enumerate(job.arguments) if isinstance(value, np.ndarray)}
    given = [
        pointers[at] if at in pointers else place_map(value.raw, pointers[value.tensor])
        if isinstance(value, MapAt) else value
        for at, value in enumerate(job.arguments)
    ]  # fmt: skip
    cuda.launch(job.kernel, cubins, job.blocks, job.kernel.dynamic_smem_bytes, given)
    found = Result({at: cuda.download(pointers[at], np.empty_like(job.arguments[at])) for at in job.outputs})
    for pointer in pointers.values():
        cuda.free(pointer)
    return found


def _child(path: Path, cubins: Path) -> None:
    """Run a file of jobs; stop behind the first that faults."""
    from device_backends import Cuda

    jobs = pickle.loads(path.read_bytes())
    cuda = Cuda()
    with path.with_suffix(".out").open("wb") as out:
        for job in jobs:
            try:
                result = _run(job, cuda, cubins)
            except RuntimeError as error:
                result = Result(fault=str(error))
            pickle.dump(result, out)
            out.flush()
            if result.fault:
                os._exit(0)


if __name__ == "__main__":
    import device_forms_jobs

    device_forms_jobs._child(Path(sys.argv[1]), Path(sys.argv[2]))
