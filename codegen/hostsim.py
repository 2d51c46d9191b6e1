"""Run a kernel's own text on the CPU, compiled as C++ with the host header, one fiber per GPU thread.

Implementation notes: the models decode the raw 128 descriptor bytes themselves and share no code with the descriptor
encoder or the Python model of the copy engine. Recently compiled kernels are cached.
"""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.complaints import ran, refused
from layoutalg.codegen.kernel import KernelSource, argument_cell, checked_arguments, checked_int, contiguous, misfit
from layoutalg.codegen.shared_log import COLUMNS, Trace, gathered, race
from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MissingExtraError
from layoutalg.targets.registry import TARGETS

Argument: TypeAlias = "int | bytes | npt.NDArray[Any]"
"""A kernel argument: a number or an address, the bytes of a struct, or an array."""
HEADER = Path(__file__).parent / "host_shim.h"
MATRICES = Path(__file__).parent / "host_matrices.h"
WGMMA = Path(__file__).parent / "host_wgmma.h"
_MATRICES = re.compile(r"\bla_(?:mma|mfma|wmma)_")
MAX_REGIONS = 4096
MAX_BLOCKS = 2**20
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
    "a role barrier whose id is not 1 to 15, or whose threads are no whole warps or not the same for all that meet",
    "a block of the cluster that does not exist",
)
"""Meaning of the fault numbers returned by ``run``."""
_RACE = next(text for text in FAULTS if text.startswith("race"))

_ENTRY = """
static void la_host_kernel(void** arguments) {{ {name}({values}); }}

extern "C" int la_host_run(void** arguments, unsigned blocks, unsigned threads, unsigned bytes, unsigned skew,
                           const unsigned char* const* first, const size_t* sizes, unsigned count,
                           void* log, size_t capacity, size_t* logged, void* told)
{{
    la_host::Launch how = {{blocks, threads, bytes, skew, {{(la_host::Access*)log, capacity, 0, nullptr}}}};
    const int fault = la_host::launch(how, la_host_kernel, arguments, first, sizes, count, (la_host::Told*)told);
    *logged = how.trace.count;
    return fault;
}}
"""


def compiler() -> str | None:
    """Return the path of the C++ compiler, or None."""
    return shutil.which("g++") or shutil.which("clang++")


@functools.lru_cache(maxsize=limits.KERNELS)
def _library(name: str, text: str, parameters: tuple[tuple[str, str], ...], arch: str) -> ctypes.CDLL:
    program = compiler()
    if program is None:
        raise no_compiler(f"kernel {name}", "neither g++ nor clang++ is on the PATH")
    values = ", ".join(f"*({kind}*)arguments[{i}]" for i, (kind, _) in enumerate(parameters))
    with tempfile.TemporaryDirectory(prefix="layoutalg-") as folder:
        source, target = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        source.write_text(f"{text}\n{_ENTRY.format(name=name, values=values)}", encoding="utf-8")
        command = [program, "-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-DLA_HOST"]
        command.append(f"-DLA_LANES={lanes_of(arch)}")
        command += ["-include", str(HEADER)]
        if "la_wgmma_" in text:
            command += ["-include", str(WGMMA)]
        if _MATRICES.search(text):
            rdna = re.fullmatch(r"RDNA(\d)", TARGETS[arch].isa) if arch in TARGETS else None
            command += ["-include", str(MATRICES), *([f"-DLA_RDNA={rdna[1]}"] if rdna else [])]
        command += ["-o", str(target), str(source)]
        try:
            code, log = ran(command, f"compiling the kernel {name}")
        except OSError as error:
            raise no_compiler(f"kernel {name}", str(error)) from None
        if code:
            raise refused("LA521", "the kernel text does not compile as C++", f"kernel {name}", log, text)
        return ctypes.CDLL(str(target))


def no_compiler(where: str, because: str = "") -> MissingExtraError:
    """Return the error of a machine without a C++ compiler."""
    what = "running a kernel on the CPU needs a C++ compiler"
    return MissingExtraError(Diagnostic("LA520", what, (where,), because))


def lanes_of(arch: str) -> int:
    """Return the lanes of a warp or wave of a kernel's target."""
    target = TARGETS.get(arch)
    return 32 if target is None else target.lanes


def run(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    *,
    blocks: int = 1,
    dynamic_smem_bytes: int | None = None,
    skew_bytes: int = 0,
    regions: Sequence[tuple[int, int]] = (),
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

    Returns:
        0, or an index into ``FAULTS``.
    """
    return _launched(kernel, arguments, blocks, dynamic_smem_bytes, skew_bytes, regions, None)[0]


def trace(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    *,
    blocks: int = 1,
    capacity: int = 2**20,
    races: bool = False,
    regions: Sequence[tuple[int, int]] = (),
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
    """
    checked_int(capacity, "capacity", 1, 2**26, f"kernel {kernel.name}", "LA522")
    log = np.zeros((capacity, COLUMNS), dtype=np.uint32)
    fault, count, told = _launched(kernel, arguments, blocks, None, 0, regions, log)
    lanes, why = lanes_of(kernel.arch), _why(fault, told, kernel)
    if races and fault == 0:
        why = race(log[:count], lanes)
        fault = FAULTS.index(_RACE) if why else 0
    return Trace(fault, gathered(log[:count], lanes), kernel.arch, why)


def _why(fault: int, told: Sequence[int], kernel: KernelSource) -> str:
    """Return where a fault happened, with the lines of the text, or where the threads wait forever."""
    block, thread, byte, at_block, at_warp, ended, line, met = told
    if FAULTS[fault] == "deadlock":
        rest = kernel.threads - at_block - at_warp - ended
        where = {"wait at __syncthreads": at_block, "wait for their warp": at_warp, "have ended": ended, "run": rest}
        counts = ", ".join(f"{many} threads {what}" for what, many in where.items() if many)
        return f"in block {block}, {counts}{_line(kernel, line, 'at')}{_line(kernel, met, 'at')}"
    at = f", byte {byte}" if FAULTS[fault].startswith("shared") else ""
    lines = _line(kernel, line, "at") + _line(kernel, met, "others wait at")
    return f"thread {thread} of block {block}{at}{lines}" if fault else ""


def _line(kernel: KernelSource, number: int, how: str) -> str:
    """Describe a line of the text; empty if unknown."""
    lines = kernel.text.splitlines()
    return f"; {how} line {number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""


def _launched(
    kernel: KernelSource,
    arguments: Sequence[Argument],
    blocks: int,
    dynamic_smem_bytes: int | None,
    skew_bytes: int,
    regions: Sequence[tuple[int, int]],
    log: npt.NDArray[np.uint32] | None,
) -> tuple[int, int, tuple[int, ...]]:
    """Return the fault number, the number of log rows written, and where the fault was."""
    checked_arguments(kernel, arguments, blocks, "LA522")
    smem = kernel.dynamic_smem_bytes if dynamic_smem_bytes is None else dynamic_smem_bytes
    launch = {"blocks": (blocks, MAX_BLOCKS), "dynamic_smem_bytes": (smem, 2**31), "skew_bytes": (skew_bytes, 2**31)}
    for argument, (number, limit) in launch.items():
        checked_int(number, argument, 0, limit, f"kernel {kernel.name}", "LA522")
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
    logged, told = ctypes.c_size_t(0), (ctypes.c_uint32 * 8)()
    where, capacity = (None, 0) if log is None else (ctypes.c_void_p(log.ctypes.data), len(log))
    fault = library.la_host_run(
        pointers, blocks, kernel.threads, smem, skew_bytes, first, sizes, len(known), where, ctypes.c_size_t(capacity),
        ctypes.byref(logged), told,
    )  # fmt: skip
    return int(fault), int(logged.value), tuple(told)
