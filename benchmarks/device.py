"""What a GPU does: the jobs that recorded tests/data/measured, and what they share.

    python3 benchmarks/device.py JOB --out RESULTS [--seconds 150] [--seed N] [options of the job]
    python3 benchmarks/device.py JOB --rehearse         (compile all kernels of a job; needs no GPU)
    python3 benchmarks/device.py list

Run on a machine with a GPU of compute capability 9.0 and its driver, from the root of the repository. ``JOBS`` says
what each job asks and which records are its own. A job draws its cases and says what to run; ``Run`` compiles kernels,
runs cases in child processes, and writes. A case that faults or hangs ends its child, is recorded as a ``Fault``, and
the next child goes on behind it: a fault ends a CUDA context.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import datetime
import functools
import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

from campaign import parser_of  # noqa: E402

from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.codegen.launch import place_map  # noqa: E402

WORKERS = min(12, os.cpu_count() or 1)
GROUP = 80
"""Cases of one child."""


@dataclass(frozen=True)
class Job:
    """A job of the table.

    Args:
        asks: What it finds out.
        module: Where its function ``NAME_job`` is.
        records: The files of tests/data/measured that it recorded.
        seconds: After how many nothing new begins.
        options: Its own options with their defaults, as of ``campaign.parser_of``.
    """

    asks: str
    module: str
    records: tuple[str, ...] = ()
    seconds: float = 150
    options: dict[str, Any] = field(default_factory=dict)


JOBS = {
    "driver": Job("fresh TensorMap parameters: the driver's verdicts and bytes beside the library's, and both times",
                  "device_copies", ("tensormap_dev",), options={"count": 20000}),
    "copies": Job("single tiled loads and stores: edges, offsets, odd values, faults", "device_copies",
                  ("tma_exec_plain_dev", "tma_exec_estride_dev", "tma_load_probe_dev", "tma_store_dev"), 420,
                  {"scale": 1.0}),
    "pitch0": Job("maps with pitches of 0, every choice of the dimensions that stand still", "device_copies",
                  ("pitch0_dev",), options={"each": 6}),
    "modes": Job("im2col, im2col-wide and interleaved maps: the driver's verdicts, and loads", "device_modes",
                 ("im2col_dev", "im2col_loads_dev", "interleave_loads_dev"), 200, {"count": 10000, "scale": 1.0}),
    "stores": Job("stores through im2col and interleaved maps", "device_modes", ("im2col_stores_dev",),
                  options={"scale": 1.0}),
    "plans": Job("plans of the real tiles, of random problems, and tile products, byte for byte", "device_plans",
                 ("plans_dev", "plans_random_dev"), 420, {"random": 900, "origins": 8, "max_bytes": 2**34}),
    "operand_b": Job("which element wgmma reads for operand B", "device_wgmma_probes", ("wgmma_b_dev",),
                     options={"scale": 1.0}),
    "wgmma": Job("every wgmma instruction, and probes of what it reads and hears", "device_wgmma",
                 ("wgmma_dev", "wgmma_probes_dev", "wgmma_campaign_dev"), 600,
                 {"only": ["campaign", "probes"], "every": 1}),
    "fragments": Job("register fragments of mma.sync, ldmatrix, stmatrix and wgmma", "device_accesses",
                     ("fragments_dev", "mma_dev"), options={"rounds": 20}),
    "matrices": Job("admitted accesses of registers to shared memory, byte for byte", "device_accesses",
                    ("matrices_dev",), options={"plans": 12}),
    "banks": Job("turns of single accesses by the counters of ncu; cycles of many equal ones", "device_accesses",
                 ("banks_dev", "matrix_banks_dev"), 600, {"cases": 60}),
    "transactions": Job("sectors and requests of single accesses to global memory by the counters of ncu",
                        "device_transactions", ("transactions_dev",), 200, {"cases": 60}),
    "reports": Job("sectors and wavefronts of whole Triton kernels by the counters of ncu", "device_reports",
                   ("reports_dev",), 240),
    "forms": Job("sparse mma.sync, accesses of every width, cp.async, bulk copies, multicast, reductions",
                 "device_forms", ("forms_dev", "sparse_dev"), 600,
                 {"plans": 12, "only": ["sparse", "moves", "copies", "bulk", "multicast", "reductions"]}),
    "factor": Job("factored layouts: residuals by exchanges, by shuffles, through shared memory, beside Triton",
                  "device_registers", ("factor_dev", "factor_exchanges_dev"), 160, {"cases": 60}),
    "conversions": Job("conversions of registers, every word and the cycles, beside Triton", "device_registers",
                       ("conversions_dev",), 55, {"set": "kernels"}),
    "costs": Job("cycles of the instructions of layout conversions", "device_registers", ("conversion_costs_dev",), 60),
    "pipelines": Job("cycles of copies, wgmma and barriers, for the costs of schedules", "device_pipelines",
                     ("pipeline_costs_dev",), 60),
    "asynchrony": Job("what the manuals leave open: pieces of copies, fences, warpgroups; copies by rank",
                      "device_asynchrony", ("asynchrony_dev",), 150),
    "products": Job("matrix products and attention from proved pipelines, beside cuBLAS and cuDNN", "device_products",
                    ("products_dev",), 230, {"kinds": ["square", "odd", "forms", "attention"], "made": Path}),
    "breaks": Job("kernels with one mistake each: status, wrong numbers, or nothing; right ones under random delays",
                  "device_breaks", ("breaks_dev",), 400, {"mutants": 200, "seeds": 24}),
    "indirect": Job("bandwidth by granule, permutations of routed rows, copies of pages, choices, beside PyTorch",
                    "device_indirect", ("indirect_dev",), 60,
                    {"only": ["launches", "granules", "permutations", "pages", "choices", "runs", "loops"]}),
    "ablation": Job("layout and schedule of products and attention in three orders, beside Triton; stalls by ncu",
                    "device_ablation", ("ablation_dev",), 200, {"kinds": ["gemm", "attention"]}),
    "search": Job("every choice of a part of six spaces: the best of the first 16 beside the best of all",
                  "device_search", ("search_dev",), 90, {"kinds": ["gemm", "attention"], "most": 124}),
    "roofs": Job("bytes, multiplications and instructions a cycle; prints the entry of targets/roofs.json",
                 "device_roofs", ("roofs_dev",), 60),
    "clip": Job("rows of clipped maps, also above the group; prints the entry of targets/probes.json",
                "device_ragged", ("clip_dev",), 60),
    "kernels": Job("kernels that move arrays: every byte, and the bandwidth beside copies", "device_kernels",
                   ("kernels_dev", "kernels_gathers_dev"), 55,
                   {"kinds": ["windows", "plain", "engine", "gathers", "staging"]}),
    "ragged": Job("ragged copies and transposes, every byte, beside a dense copy; what clipped maps rely on",
                  "device_ragged", ("ragged_dev",), 200, {"made": "build/ragged.pickle"}),
    "spans": Job("ragged copies of small groups by boxes and by vectors, every byte, beside dense copies",
                 "device_spans", ("spans_dev",), 200, {"made": "build/spans.pickle"}),
    "grouped": Job("products of ragged groups, beside a padded batched product and PyTorch's grouped one",
                   "device_grouped", ("grouped_dev",), 40),
}  # fmt: skip
"""The jobs by name."""


# ----------------------------------------------------------------------------------------------------------- the driver


class Cuda:
    """A few driver calls through ctypes; every failure raises with the driver's number."""

    def __init__(self, cubins: Path) -> None:
        self.lib, self.cubins = ctypes.CDLL("libcuda.so.1"), cubins
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuInit", 0)
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.check("cuCtxSetCurrent", context)
        self.modules: dict[str, ctypes.c_void_p] = {}

    def check(self, name: str, *args: object) -> None:
        code = getattr(self.lib, name)(*args)
        if code:
            raise RuntimeError(f"{name}={code}")

    def alloc(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer.value

    def upload(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        pointer = self.alloc(array.nbytes)
        self.write(pointer, array)
        return pointer

    def write(self, pointer: int, array: np.ndarray) -> None:
        address, size = array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
        self.check("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), address, size)

    def download(self, pointer: int, array: np.ndarray) -> np.ndarray:
        address, size = array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
        self.check("cuMemcpyDtoH_v2", address, ctypes.c_uint64(pointer), size)
        return array

    def free(self, *pointers: int) -> None:
        for pointer in pointers:
            self.check("cuMemFree_v2", ctypes.c_uint64(pointer))

    def filled(self, size: int, value: int) -> int:
        """Return memory that holds one byte value throughout."""
        pointer = self.alloc(size)
        self.check("cuMemsetD8_v2", ctypes.c_uint64(pointer), ctypes.c_ubyte(value), ctypes.c_size_t(size))
        return pointer

    def repeated(self, block: np.ndarray, size: int) -> int:
        """Return memory that repeats a block."""
        pointer, count = self.alloc(-(-size // block.size) * block.size), ctypes.c_size_t(block.size)
        self.write(pointer, block)
        for at in range(block.size, size, block.size):
            self.check("cuMemcpyDtoD_v2", ctypes.c_uint64(pointer + at), ctypes.c_uint64(pointer), count)
        return pointer

    def launch(self, kernel: KernelSource, args: Sequence[object], blocks: int = 1, smem: int | None = None,
               file: str = "") -> None:  # fmt: skip
        """Run a kernel of ``NAME.cubin``, or of another file, and wait."""
        file, smem = file or kernel.name, kernel.dynamic_smem_bytes if smem is None else smem
        if file not in self.modules:
            module = ctypes.c_void_p()
            self.check("cuModuleLoadData", ctypes.byref(module), (self.cubins / f"{file}.cubin").read_bytes())
            self.modules[file] = module
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), self.modules[file], kernel.name.encode())
        self.check("cuFuncSetAttribute", function, 8, smem)
        values = [struct(v) if isinstance(v, bytes) else ctypes.c_uint64(v) if "*" in t else ctypes.c_int(v)
                  for (t, _), v in zip(kernel.parameters, args, strict=True)]  # fmt: skip
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.check("cuLaunchKernel", function, blocks, 1, 1, kernel.threads, 1, 1, smem, None, pointers, None)
        self.check("cuCtxSynchronize")

    def run(self, one: Launch) -> dict[int, np.ndarray]:
        """Run a launch; return its outputs by argument."""
        there = {at: self.upload(value) for at, value in enumerate(one.arguments) if isinstance(value, np.ndarray)}
        given = [there[at] if at in there else place_map(value.raw, there[value.tensor])
                 if isinstance(value, MapAt) else value for at, value in enumerate(one.arguments)]  # fmt: skip
        self.launch(one.kernel, given, one.blocks, one.smem, one.file)
        found = {at: self.download(there[at], np.empty_like(one.arguments[at])) for at in one.outputs}
        self.free(*there.values())
        return found


def struct(raw: bytes) -> object:
    """Return bytes as a struct passed by value."""
    return (ctypes.c_ubyte * len(raw)).from_buffer_copy(raw)


class Encoder:
    """The driver's encoding calls; a map of parameters in the columns of tests/data/measured."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self.lib = lib
        self.room = (ctypes.c_uint8 * 256)()
        self.map = (ctypes.addressof(self.room) + 127) // 128 * 128

    def _encoded(self, name: str, p: Sequence[int], base: int, *more: object) -> tuple[int, bytes]:
        limit = max(0, min(p[1], 5))
        dims = (ctypes.c_uint64 * 5)(*[v % 2**64 for v in p[3 : 3 + limit]])
        strides = (ctypes.c_uint64 * 5)(*[v % 2**64 for v in p[8 : 8 + max(limit - 1, 0)]])
        ctypes.memset(self.map, 0, 128)
        status = getattr(self.lib, name)(
            ctypes.c_void_p(self.map), p[0], ctypes.c_uint32(p[1]), ctypes.c_void_p(base % 2**64), dims, strides, *more
        )
        return status, ctypes.string_at(self.map, 128) if status == 0 else bytes(128)

    def im2col(self, p: Sequence[int], base: int) -> tuple[int, bytes]:
        corners = (ctypes.c_int * 3)(*p[12:15]), (ctypes.c_int * 3)(*p[15:18])
        counts = ctypes.c_uint32(p[18]), ctypes.c_uint32(p[19]), words(p[20:25])
        return self._encoded("cuTensorMapEncodeIm2col", p, base, *corners, *counts, *p[25:29])

    def wide(self, p: Sequence[int], base: int, mode: int) -> tuple[int, bytes]:
        counts = ctypes.c_uint32(p[18]), ctypes.c_uint32(p[19]), words(p[20:25])
        return self._encoded("cuTensorMapEncodeIm2colWide", p, base, p[12], p[15], *counts, p[25], mode, *p[26:29])

    def tiled(self, p: Sequence[int], base: int) -> tuple[int, bytes]:
        return self._encoded("cuTensorMapEncodeTiled", p, base, words(p[12:17]), words(p[17:22]), *p[22:26])


def words(values: Sequence[int]) -> object:
    """Return five unsigned words."""
    return (ctypes.c_uint32 * 5)(*[v % 2**32 for v in values])


# --------------------------------------------------------------------------------------------------------------- a run


@dataclass(frozen=True)
class MapAt:
    """An argument: a tensor map whose base moves to where another argument lies."""

    raw: bytes
    tensor: int


@dataclass
class Launch:
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
        smem: Dynamic shared memory, if not the kernel's own.
        file: The cubin that holds the kernel, if not the kernel's own.
    """

    name: str
    kernel: KernelSource
    arguments: list[Any]
    outputs: tuple[int, ...]
    blocks: int = 1
    expected: dict[int, np.ndarray] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    risky: bool = False
    smem: int | None = None
    file: str = ""


@dataclass(frozen=True)
class Fault:
    """The driver's error, the compiler's log, or ``not begun``."""

    text: str


@dataclass
class Result:
    """What came back of a launch: arrays by argument, or the fault."""

    arrays: dict[int, np.ndarray] = field(default_factory=dict)
    fault: str = ""

    def wrong(self, job: Launch) -> int:
        """Return how many entries differ from what was expected."""
        if job.expected is None or self.fault:
            return 0
        return sum(int((self.arrays[at] != table).sum()) for at, table in job.expected.items())


class Run:
    """One run of a job: its options, its children, its files."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.out = options, Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix="device-"))
        self.begun = time.monotonic()
        self.refused: dict[str, str] = {}

    @property
    def spent(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.begun

    def compile(self, kernels: Iterable[KernelSource], file: str = "") -> dict[str, str]:
        """Write the cubins, under the kernels' names or one name; the log of each that the compiler refuses is kept."""
        every = {kernel.name: kernel for kernel in kernels}
        with ThreadPoolExecutor(WORKERS) as pool:
            logs = pool.map(
                lambda kernel: compile_text(kernel, self.scratch / f"{file or kernel.name}.cubin"), every.values()
            )
            self.refused |= {name: log for name, log in zip(every, logs, strict=True) if log}
        if self.options.rehearse:
            print(json.dumps({"kernels": len(every), "refused": self.refused}), flush=True)
            raise SystemExit(bool(self.refused))
        return self.refused

    def each(self, function: Callable[..., Any], items: Sequence[Any], *more: Any, group: int = GROUP,
             alone: Sequence[bool] = (), seconds: float = 60, workers: int = WORKERS) -> list[Any]:  # fmt: skip
        """Run a function of a module on every item, in children; return the answers, or faults, in order.

        Args:
            function: Called with an item and ``more``.
            items: What it is called with.
            more: Further arguments.
            group: Items of one child.
            alone: By item, whether it has a child of its own.
            seconds: Of one child.
            workers: Children at a time.
        """
        risky = list(alone) or [False] * len(items)
        safe = [number for number, each in enumerate(risky) if not each]
        size = max(1, min(group, -(-len(safe) // workers)))
        groups = [safe[first : first + size] for first in range(0, len(safe), size)]
        groups += [[number] for number, each in enumerate(risky) if each]
        answers: list[Any] = [None] * len(items)

        def run(numbers: list[int]) -> None:
            rest = list(numbers)
            while rest:
                if self.spent > self.options.seconds:
                    answers_of, ending = [], "not begun: out of time"
                else:
                    answers_of, ending = self._child(function, [items[number] for number in rest], more, seconds)
                for number, answer in zip(rest, answers_of, strict=False):
                    answers[number] = answer
                rest = rest[len(answers_of) :]
                if rest and ending:
                    answers[rest.pop(0)] = Fault(ending)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, groups))
        return answers

    def _child(
        self, function: Callable[..., Any], items: list[Any], more: tuple[Any, ...], seconds: float
    ) -> tuple[list[Any], str]:
        """The answers of one child, and how it ended where it left some out."""
        path = Path(tempfile.mkstemp(dir=self.scratch)[1])
        path.write_bytes(pickle.dumps((function, items, more, self.scratch)))
        command = [sys.executable, __file__, "child", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
            ending = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][-300:]
        except subprocess.TimeoutExpired:
            ending = f"no answer within {seconds:g} s"
        found = []
        with (
            contextlib.suppress(EOFError, FileNotFoundError, pickle.UnpicklingError),
            Path(f"{path}.out").open("rb") as s,
        ):
            while True:
                found.append(pickle.load(s))
        faulted = bool(found) and isinstance(found[-1], Fault)
        return found, "" if faulted or len(found) == len(items) else ending

    def launches(self, jobs: Sequence[Launch]) -> list[Result]:
        """Compile and run launches; results in order."""
        self.compile(job.kernel for job in jobs)
        able = [number for number, job in enumerate(jobs) if job.kernel.name not in self.refused]
        answers = self.each(
            run_launch, [jobs[number] for number in able], alone=[jobs[number].risky for number in able]
        )
        results = [Result(fault=f"compiler: {self.refused.get(job.kernel.name, '')}") for job in jobs]
        for number, answer in zip(able, answers, strict=True):
            results[number] = Result(fault=answer.text) if isinstance(answer, Fault) else Result(answer)
        return results

    def profile(self, function: Callable[..., Any], asked: Sequence[str], item: Any, *more: Any,
                seconds: float = 300) -> list[dict[str, str]] | str:  # fmt: skip
        """What ``ncu`` says of every launch of a function in a child, or why it says nothing.

        Args:
            function: Called with the item and ``more``.
            asked: Options of ``ncu`` that say what is asked.
            item: What it is called with.
            more: Further arguments.
            seconds: Of the child.
        """
        tool = shutil.which("ncu") or next(iter(map(str, Path("/usr/local").glob("cuda*/bin/ncu"))), None)
        if tool is None:
            return "no ncu"
        path, log = self.scratch / "counted", self.scratch / "counted.csv"
        path.write_bytes(pickle.dumps((function, [item], more, self.scratch)))
        log.unlink(missing_ok=True)
        command = [
            tool, "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw",
            "--log-file", str(log), *asked, sys.executable, __file__, "child", str(path),
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f"ncu took more than {seconds:g} s"
        if done.returncode or not log.exists():
            return f"ncu: exit {done.returncode}: {(done.stderr + done.stdout)[-300:]}"
        return list(csv.DictReader(line for line in log.read_text().splitlines() if line.startswith('"')))[1:]

    def counted(self, function: Callable[..., Any], metrics: Sequence[str], *more: Any) -> list[list[int]] | str:
        """The counters of ``ncu`` for every launch of a function, or why there are none."""
        rows = self.profile(function, ["--metrics", ",".join(f"{name}.sum" for name in metrics)], None, *more)
        if isinstance(rows, str):
            return rows
        return [[int(float(row[f"{name}.sum"].replace(",", ""))) for name in metrics] for row in rows]

    def facts(self, **more: object) -> dict[str, object]:
        """The date, the device and its driver, the seed."""
        query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
        try:
            device = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            device = "none"
        said = {"date": datetime.date.today().isoformat(), "device": device, "seed": self.options.seed}
        return said | {"seconds": round(self.spent, 1)} | more

    def save(self, name: str, **arrays: Any) -> None:
        """Write ``NAME.npz`` with the facts."""
        np.savez_compressed(self.out / f"{name}.npz", facts=json.dumps(self.facts()), **arrays)

    def write(self, name: str, summary: dict[str, Any], **parts: Any) -> None:
        """Write ``NAME.json`` and print its summary."""
        summary = self.facts() | summary
        (self.out / f"{name}.json").write_text(json.dumps({"summary": summary, **parts}), encoding="utf-8")
        print(name, json.dumps(summary), flush=True)


def compile_text(kernel: KernelSource, path: Path) -> str:
    """Write the machine code of a kernel; the log where the compiler refuses it. By nvcc where it takes the text."""
    from layoutalg.codegen.compile import to_cubin

    source = path.with_suffix(".cu")
    source.write_text(kernel.text)
    flags = ["-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-o", str(path), str(source)]
    try:
        subprocess.run(["nvcc", *flags], check=True, capture_output=True, text=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        try:
            path.write_bytes(to_cubin(kernel))
        except Exception as error:  # the log is the answer
            return str(error)[-600:]
    return ""


_HERE: list[Path] = []


def here() -> Path:
    """The folder of the cubins of this child."""
    return _HERE[0]


@functools.cache
def cuda() -> Cuda:
    """The device of this child."""
    return Cuda(here())


def run_launch(job: Launch) -> dict[int, np.ndarray]:
    """Run one launch in a child."""
    return cuda().run(job)


def child(path: Path) -> None:
    """Answer the items of a file one by one; stop behind the first that faults."""
    function, items, more, cubins = pickle.loads(path.read_bytes())
    _HERE.append(cubins)
    with Path(f"{path}.out").open("wb") as out:
        for item in items:
            try:
                answer = function(item, *more)
            except RuntimeError as error:
                answer = Fault(f"{type(error).__name__}: {error}"[:300])
            pickle.dump(answer, out)
            out.flush()
            if isinstance(answer, Fault):
                os._exit(0)


def main() -> None:
    """Run a job of the table."""
    if sys.argv[1:2] == ["child"]:
        importlib.import_module("device").child(Path(sys.argv[2]))
        return
    if len(sys.argv) < 2 or sys.argv[1] not in JOBS:
        for name, job in JOBS.items():
            print(f"{name:12} {job.asks}; {', '.join(job.records)}; {job.options}")
        return
    name = sys.argv.pop(1)
    job = JOBS[name]
    parser = parser_of(
        f"{job.asks}. {__doc__}", out="device-results", seconds=job.seconds, rehearse=False, **job.options
    )
    run = importlib.import_module("device").Run(parser.parse_args())
    getattr(importlib.import_module(job.module), f"{name}_job")(run)


if __name__ == "__main__":
    main()
