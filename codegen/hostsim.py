"""Run a kernel's own text on the CPU, compiled as C++ with the host header, one fiber per GPU thread.

Implementation notes: the models decode the raw 128 descriptor bytes themselves and share no code with the descriptor
encoder or the Python model of the copy engine. They are compiled once per process, kernels are linked with them; recent
kernels are cached.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.complaints import ran, refused
from layoutalg.codegen.host_report import RawReport, Report, lanes_of, waits, why
from layoutalg.codegen.kernel import KernelSource, argument_cell, checked_arguments, checked_int, contiguous, misfit
from layoutalg.codegen.shared_log import COLUMNS, Trace, gathered, race
from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MissingExtraError
from layoutalg.targets.registry import TARGETS

Argument: TypeAlias = "int | bytes | npt.NDArray[Any]"
"""A kernel argument: a number or an address, the bytes of a struct, or an array."""
HEADER = Path(__file__).parent / "host_shim.h"
MATRICES = Path(__file__).parent / "host_matrices.h"
PIPELINES = Path(__file__).parent / "host_pipelines.h"
WGMMA = Path(__file__).parent / "host_wgmma.h"
_MATRICES = re.compile(r"\bla_(?:mma|mfma|wmma)_")
MAX_REGIONS = 4096
MAX_BLOCKS = 2**20
MAX_CLUSTER = 16
FAULTS = (
    "none",
    "shared memory outside the block's allocation",
    "shared address of a bulk copy not a multiple of 128 bytes",
    "global address outside every known region",
    "inner start coordinate not a multiple of 16 bytes",
    "descriptor of the wrong rank or an unsupported kind",
    "barrier used before its initialisation or more often than its count",
    "bulk copy over a live barrier",
    "transaction count outside the barrier's range",
    "kernel ended with a load in flight",
    "kernel ended with a store not waited for",
    "deadlock",
    "store with a negative start coordinate",
    "bulk copy through a dimension above 2^31",
    "more threads, barriers, copies, regions or logged accesses than the models support",
    "shared address not a multiple of the access size",
    "race: threads access one byte of shared memory without a barrier in between, and one of them writes",
    "shuffle reads an inactive lane",
    "threads of a block wait at different barriers",
    "lanes that must hold copies of an operand hold different words",
    "lanes of a warp wait at different warp-synchronous calls",
    "a full-warp instruction misses a lane: it has exited or does not exist",
    "a role barrier of no id from 1 to 15, of threads that are no whole warps or differ, or reached twice by one",
    "a block of the cluster that does not exist or has ended",
    "shared memory that a load in flight writes was used",
    "shared memory of a store in flight was overwritten",
    "shared memory of a multiply in flight was overwritten",
    "shared memory used by threads and then by a copy or a multiply without la_fence_async in between",
    "kernel ended with a multiply not waited for",
    "accumulator of a multiply in flight was written, or its operand in registers",
    "warps or lanes of a warpgroup issue different multiplies",
    "a wait missed its phase: the next one is over too",
    "cluster barrier: arrived twice without a wait, or waited without an arrival",
    "accumulator of a multiply written without la_wgmma_fence before the multiply",
)
"""Meaning of the fault numbers returned by ``run``."""
_RACE = next(text for text in FAULTS if text.startswith("race"))

_ENTRY = """
static void la_host_kernel(void** arguments) {{ {name}({values}); }}

extern "C" __attribute__((visibility("default"))) int la_host_run(
    void** arguments, unsigned blocks, unsigned threads, unsigned bytes, unsigned skew, unsigned seed, unsigned cluster,
    const unsigned char* const* first, const size_t* sizes, unsigned count, void* log, size_t capacity, size_t* logged,
    void* report)
{{
    la_host::Launch how = {{blocks, threads, bytes, skew, seed, cluster,
                           {{(la_host::Access*)log, capacity, 0, nullptr}}}};
    const int fault = la_host::launch(how, la_host_kernel, arguments, first, sizes, count, (la_host::Report*)report);
    *logged = how.trace.count;
    return fault;
}}
"""


def compiler() -> str | None:
    """Return the path of the C++ compiler, or None."""
    return shutil.which("g++") or shutil.which("clang++")


def _compiled(command: list[str], lanes: int, headers: Sequence[Path], name: str, text: str = "") -> None:
    """Run the compiler with the headers."""
    program, *rest = command
    options = ["-std=c++17", "-O1", "-w", "-fPIC", "-fvisibility=hidden", "-DLA_HOST", f"-DLA_LANES={lanes}"]
    included = [part for header in headers for part in ("-include", str(header))]
    try:
        code, log = ran([program, *options, *included, *rest], f"compiling the kernel {name}")
    except OSError as error:
        raise no_compiler(f"kernel {name}", str(error)) from None
    if code:
        raise refused("LA521", "the kernel text does not compile as C++", f"kernel {name}", log, text)


@functools.lru_cache(maxsize=16)
def _core(program: str, lanes: int, headers: tuple[Path, ...]) -> bytes:
    """Return the object file of the models themselves, which every kernel is linked with."""
    with tempfile.TemporaryDirectory(prefix="layoutalg-") as folder:
        target = Path(folder, "core.o")
        _compiled(
            [program, "-DLA_HOST_CORE", "-c", "-x", "c++", os.devnull, "-o", str(target)], lanes, headers, "models"
        )
        return target.read_bytes()


@functools.lru_cache(maxsize=limits.KERNELS)
def _library(name: str, text: str, parameters: tuple[tuple[str, str], ...], arch: str) -> ctypes.CDLL:
    program = compiler()
    if program is None:
        raise no_compiler(f"kernel {name}", "neither g++ nor clang++ is on the PATH")
    values = ", ".join(f"*({kind}*)arguments[{i}]" for i, (kind, _) in enumerate(parameters))
    lanes, models = lanes_of(arch), [HEADER]
    models += [PIPELINES] if "la_mbarrier_init" in text else []
    models += [WGMMA] if "la_wgmma_" in text else []
    options = []
    if _MATRICES.search(text):
        rdna = re.fullmatch(r"RDNA(\d)", TARGETS[arch].isa) if arch in TARGETS else None
        options += ["-include", str(MATRICES), *([f"-DLA_RDNA={rdna[1]}"] if rdna else [])]
    with tempfile.TemporaryDirectory(prefix="layoutalg-") as folder:
        source, core, target = (Path(folder, part) for part in ("kernel.cpp", "core.o", "kernel.so"))
        source.write_text(f"{text}\n{_ENTRY.format(name=name, values=values)}", encoding="utf-8")
        core.write_bytes(_core(program, lanes, tuple(models)))
        _compiled([program, *options, "-shared", str(source), str(core), "-o", str(target)], lanes, models, name, text)
        return ctypes.CDLL(str(target))


def no_compiler(where: str, because: str = "") -> MissingExtraError:
    """Return the error of a machine without a C++ compiler."""
    what = "running a kernel on the CPU needs a C++ compiler"
    return MissingExtraError(Diagnostic("LA520", what, (where,), because))


def run(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    *,
    blocks: int = 1,
    dynamic_smem_bytes: int | None = None,
    skew_bytes: int = 0,
    regions: Sequence[tuple[int, int]] = (),
    seed: int = 0,
    cluster: int = 1,
) -> int:
    """Run a kernel on the CPU and return its fault number, 0 if it ran to its end.

    Args:
        kernel: The kernel.
        arguments: One value per parameter: an array or an address for a pointer, an int, or the bytes of a struct.
            Arrays are used in place: the kernel writes into them.
        blocks: Grid size.
        dynamic_smem_bytes: Dynamic shared memory in bytes; by default the kernel's own number.
        skew_bytes: Offset of dynamic shared memory from a 1024-byte boundary, a multiple of 16.
        regions: ``(address, bytes)`` the copy engine may access; by default the arrays among the arguments.
        seed: The schedule: with 0 threads take turns; others draw the order of warps and copies, each always the same.
        cluster: Blocks of a cluster, which run together, 1 to 16; must divide ``blocks``.

    Returns:
        0, or an index into ``FAULTS``.
    """
    return examine(
        kernel, arguments, blocks=blocks, dynamic_smem_bytes=dynamic_smem_bytes, skew_bytes=skew_bytes,
        regions=regions, seed=seed, cluster=cluster,
    ).fault  # fmt: skip


def examine(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    *,
    blocks: int = 1,
    dynamic_smem_bytes: int | None = None,
    skew_bytes: int = 0,
    regions: Sequence[tuple[int, int]] = (),
    seed: int = 0,
    cluster: int = 1,
) -> Report:
    """Run a kernel on the CPU and return its fault, where it was, and the waits that gave up.

    Arguments as for ``run``; ``kernel.roles`` and ``kernel.barriers`` name roles and barriers. A wait gives up once no
    thread and no copy can go on; the kernel then ends with its own status.
    """
    launch = _Launch(blocks, dynamic_smem_bytes, skew_bytes, seed, cluster)
    fault, _, raw = _launched(kernel, arguments, launch, regions, None)
    return Report(fault, _why(fault, raw, kernel, skew_bytes), waits(raw, kernel, skew_bytes))


def trace(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    *,
    blocks: int = 1,
    capacity: int = 2**20,
    races: bool = False,
    regions: Sequence[tuple[int, int]] = (),
    seed: int = 0,
) -> Trace:
    """Run a kernel on the CPU and return its warps' shared-memory accesses through the portable functions.

    Args:
        kernel: A kernel that uses the functions of ``codegen.portable``.
        arguments: As for ``run``.
        blocks: Grid size.
        capacity: Maximum number of logged accesses (per lane); beyond it the run ends with a fault.
        races: Whether unordered accesses are a fault: two threads access one byte, one of them writes, without
            ``__syncthreads`` (or, within a warp, ``la_sync_warp``) in between. Plain pointer accesses are not seen.
        regions: As for ``run``.
        seed: As for ``run``.
    """
    checked_int(capacity, "capacity", 1, 2**26, f"kernel {kernel.name}", "LA522")
    log = np.zeros((capacity, COLUMNS), dtype=np.uint32)
    fault, count, raw = _launched(kernel, arguments, _Launch(blocks, None, 0, seed, 1), regions, log)
    lanes, why = lanes_of(kernel.arch), _why(fault, raw, kernel, 0)
    if races and fault == 0:
        met = race(log[:count], lanes)
        fault, why = (FAULTS.index(_RACE), met) if met else (0, why)
    return Trace(fault, gathered(log[:count], lanes), kernel.arch, why)


def _why(fault: int, raw: RawReport, kernel: KernelSource, skew_bytes: int) -> str:
    """Return where a fault was; without one, the first wait that gave up."""
    if fault:
        return why(FAULTS[fault], raw.told, kernel, skew_bytes)
    return next((str(wait) for wait in waits(raw, kernel, skew_bytes)), "")


@dataclass(frozen=True, slots=True)
class _Launch:
    blocks: int
    dynamic_smem_bytes: int | None
    skew_bytes: int
    seed: int
    cluster: int


def _launched(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    launch: _Launch,
    regions: Sequence[tuple[int, int]],
    log: npt.NDArray[np.uint32] | None,
) -> tuple[int, int, RawReport]:
    """Return the fault number, the number of log rows written, and what the run says."""
    checked_arguments(kernel, arguments, launch.blocks, "LA522")
    smem = kernel.dynamic_smem_bytes if launch.dynamic_smem_bytes is None else launch.dynamic_smem_bytes
    numbers = {
        "blocks": (launch.blocks, 0, MAX_BLOCKS), "dynamic_smem_bytes": (smem, 0, 2**31),
        "skew_bytes": (launch.skew_bytes, 0, 2**31), "seed": (launch.seed, 0, 2**32),
        "cluster": (launch.cluster, 1, MAX_CLUSTER + 1),
    }  # fmt: skip
    for argument, (number, low, limit) in numbers.items():
        checked_int(number, argument, low, limit, f"kernel {kernel.name}", "LA522")
    if launch.blocks % launch.cluster:
        because = f"{launch.blocks} blocks are no clusters of {launch.cluster}"
        raise misfit("LA522", f"kernel {kernel.name}", because)
    library = _library(kernel.name, kernel.text, kernel.parameters, kernel.arch)
    cells: list[object] = []
    pointers = (ctypes.c_void_p * len(arguments))()
    known = list(regions)
    for i, ((kind, name), value) in enumerate(zip(kernel.parameters, arguments, strict=True)):
        given: object = value
        if isinstance(value, np.ndarray):
            given = contiguous(value, name, "LA522").ctypes.data
            if not regions:
                known.append((value.ctypes.data, value.nbytes))
        pointers[i], keep = argument_cell(kind, name, given, "LA522")
        cells.append(keep)
    if len(known) > MAX_REGIONS:
        because = f"at most {MAX_REGIONS} regions, not {len(known)}"
        raise misfit("LA522", f"kernel {kernel.name}", because)
    first = (ctypes.c_void_p * max(len(known), 1))(*[address for address, _ in known])
    sizes = (ctypes.c_size_t * max(len(known), 1))(*[size for _, size in known])
    logged, raw = ctypes.c_size_t(0), RawReport()
    where, capacity = (None, 0) if log is None else (ctypes.c_void_p(log.ctypes.data), len(log))
    fault = library.la_host_run(
        pointers, launch.blocks, kernel.threads, smem, launch.skew_bytes, ctypes.c_uint32(launch.seed), launch.cluster,
        first, sizes, len(known), where, ctypes.c_size_t(capacity), ctypes.byref(logged), ctypes.byref(raw),
    )  # fmt: skip
    return int(fault), int(logged.value), raw
