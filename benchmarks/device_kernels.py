"""Kernels that move arrays: copies, transposes, gathers, staging, timed beside copies of the driver.

Every kernel first moves random data, compared byte for byte; then the median of ``REPEATS`` timings of ``BATCH``
launches is taken. In the same process the driver's copy from device to device, PyTorch's copy and its transposing copy
are timed; beside gathers ``torch.gather`` with the same indices and ``torch.index_select`` with one row of them.
"""

from __future__ import annotations

import ctypes
import functools
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from device import Fault, Run

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernel import argument_cell
from layoutalg.codegen.kernels import (
    ArrayKernel,
    copy_kernel,
    gather_kernel,
    staging_kernel,
    transpose_kernel,
    transpose_ring_kernel,
    transpose_windows_kernel,
)
from layoutalg.codegen.kernels.transpose import tile_swizzle
from layoutalg.codegen.kernels.turned import TileShape

REPEATS, BATCH = 9, 8
BYTES = {"u8": 1, "f16": 2, "f32": 4, "f64": 8}


def gather(shape: tuple[int, ...], dtype: str, axis: int, count: int, **options: Any) -> ArrayKernel:
    """A gather with the arguments of a job."""
    return gather_kernel(shape, axis, count, dtype, **options)


def staging(shape: tuple[int, ...], dtype: str, tile: tuple[int, int], threads: int) -> ArrayKernel:
    """Tiles that are stored by rows and read back by lanes below each other, 16 bytes of a row a lane."""
    form = TileShape(*tile, 16 // BYTES[dtype], 1, 32, threads // 32)
    return staging_kernel(tile_swizzle(form, 8 * BYTES[dtype], "sm_90a"), shape)


MAKERS: dict[str, Any] = {
    "copy": copy_kernel, "transpose": transpose_kernel, "ring": transpose_ring_kernel,
    "windows": transpose_windows_kernel, "gather": gather, "staging": staging,
}  # fmt: skip
Job = tuple[str, tuple[int, ...], str, dict[str, Any]]
EVEN, ODD = (8192, 8192), (8191, 8193)


def plain_jobs() -> list[Job]:
    """Transposes by the threads' own loads and stores, and copies by vectors."""
    jobs: list[Job] = [("copy", EVEN, "f32", {"way": "vector", "per_thread": n}) for n in (2, 4, 8)]
    tiles: dict[tuple[str, tuple[int, int]], list[dict[str, Any]]] = {
        ("f32", EVEN): [
            {"tile": (64, 64), "threads": 256, "group": group} for group in (1, 4, 16, 128)
        ] + [
            {"tile": (32, 32), "threads": 64}, {"tile": (64, 32), "threads": 128}, {"tile": (32, 64), "threads": 128},
            {"tile": (128, 64), "threads": 256}, {"tile": (64, 128), "threads": 256},
            {"tile": (128, 32), "threads": 256}, {"tile": (64, 64), "threads": 256, "vector_bytes": 8},
            {"tile": (64, 64), "threads": 256, "vector_bytes": 4},
        ],
        ("f16", EVEN): [
            {"tile": (64, 64), "threads": 64, "group": group} for group in (1, 4, 16)
        ] + [
            {"tile": (128, 64), "threads": 128}, {"tile": (64, 128), "threads": 128},
            {"tile": (128, 128), "threads": 256}, {"tile": (256, 64), "threads": 256},
            {"tile": (64, 64), "threads": 256, "vector_bytes": 8},
            {"tile": (128, 64), "threads": 256, "vector_bytes": 8},
            {"tile": (128, 128), "threads": 256, "vector_bytes": 8},
        ],
        ("f32", ODD): [
            {"tile": (64, 64), "threads": 256, "group": group} for group in (1, 4, 16, 128)
        ] + [
            {"tile": (32, 128), "threads": 256}, {"tile": (128, 32), "threads": 256},
            {"tile": (128, 64), "threads": 512},
            {"tile": (64, 128), "threads": 512}, {"tile": (128, 128), "threads": 512},
            {"tile": (128, 128), "threads": 1024}, {"tile": (32, 32), "threads": 128},
        ],
        ("u8", EVEN): [{"tile": (128, 128), "threads": 256}, {"tile": (128, 128), "threads": 128}],
        ("f64", EVEN): [{"tile": (64, 32), "threads": 256}, {"tile": (32, 32), "threads": 128}],
    }  # fmt: skip
    for (dtype, shape), many in tiles.items():
        jobs += [("transpose", shape, dtype, {**options, "way": "vectors"}) for options in many]
    return jobs


def engine_jobs() -> list[Job]:
    """Transposes and copies by the copy engine; the last part is the table by rank, box and swizzle."""
    jobs: list[Job] = []
    for tile, stages, leaving, down in (
        ((32, 32), 2, 2, False), ((32, 32), 4, 2, False), ((64, 64), 2, 1, False), ((64, 64), 2, 2, False),
        ((64, 64), 2, 2, True), ((64, 32), 2, 2, False), ((32, 64), 2, 2, False), ((64, 64), 3, 2, False),
        ((128, 64), 2, 1, False), ((64, 128), 2, 1, False),
    ):  # fmt: skip
        jobs.append(("ring", EVEN, "f32", {"tile": tile, "stages": stages, "leaving": leaving, "down": down}))
    for tile, stages, leaving, down in (
        ((64, 64), 2, 2, False), ((64, 64), 4, 2, False), ((64, 64), 2, 2, True), ((128, 64), 2, 2, False),
        ((64, 128), 2, 2, False), ((128, 128), 2, 1, False),
    ):  # fmt: skip
        jobs.append(("ring", EVEN, "f16", {"tile": tile, "stages": stages, "leaving": leaving, "down": down}))
    jobs += [("ring", EVEN, "u8", {}), ("ring", EVEN, "f64", {"tile": (32, 32)})]
    for tile, stages in (
        ((16, 256), 2),
        ((16, 256), 4),
        ((16, 256), 8),
        ((32, 256), 4),
        ((32, 256), 6),
        ((64, 256), 3),
        ((8, 256), 8),
        ((64, 64), 4),
        ((128, 32), 4),
    ):
        jobs.append(("copy", EVEN, "f32", {"way": "tma", "tile": tile, "stages": stages}))
    table = [
        ((1 << 26,), (256,), "NONE"), (EVEN, (4, 256), "NONE"), (EVEN, (64, 8), "NONE"), (EVEN, (64, 16), "NONE"),
        (EVEN, (256, 16), "NONE"), (EVEN, (256, 8), "32B"), (EVEN, (256, 16), "64B"), (EVEN, (128, 32), "128B"),
        (EVEN, (64, 64), "128B"), (EVEN, (16, 256), "128B"), ((256, 512, 512), (4, 16, 64), "NONE"),
        ((256, 512, 512), (4, 32, 32), "128B"), ((64, 64, 128, 128), (2, 4, 16, 32), "NONE"),
        ((64, 64, 128, 128), (2, 4, 16, 32), "128B"), ((16, 16, 32, 64, 128), (2, 2, 4, 8, 32), "NONE"),
        ((16, 16, 32, 64, 128), (2, 2, 4, 8, 32), "128B"),
    ]  # fmt: skip
    jobs += [("copy", shape, "f32", {"way": "tma", "tile": tile, "swizzle": way}) for shape, tile, way in table]
    return jobs


def window_jobs() -> list[Job]:
    """Transposes of rows that begin anywhere, written by whole sectors."""
    jobs: list[Job] = []
    sizes = {"f32": ((64, 16), (128, 16), (128, 8)), "f16": ((128, 16), (128, 8), (256, 16)),
             "u8": ((256, 16), (256, 8), (128, 16), (512, 16))}  # fmt: skip
    for shape in (ODD, (8191, 8192), (8192, 8193)):
        for dtype, many in sizes.items():
            for rows, vectors in many:
                for threads, group in ((512, 1), (512, 64), (1024, 64)):
                    options = {"rows": rows, "vectors": vectors, "threads": threads, "group": group}
                    jobs.append(("windows", shape, dtype, options))
    return jobs


def gather_jobs() -> list[Job]:
    """Gathers along short, middle and long rows and across rows, each by every way that it allows."""
    jobs: list[Job] = []
    for dtype in ("f32", "f16", "f64"):
        for shape, axis, ways in (
            ((1 << 19, 64), 1, ("warp", "shared", "direct")), ((1 << 14, 4096), 1, ("shared", "direct")),
            (EVEN, 0, ("direct",)),
        ):  # fmt: skip
            for way in ways:
                for index_dtype in ("s32", "s64"):
                    options = {"axis": axis, "count": shape[axis], "way": way, "index_dtype": index_dtype}
                    jobs.append(("gather", shape, dtype, options))
    jobs += [
        ("gather", (1 << 19, 64), "f32", {"axis": 1, "count": 64, "way": "warp", "threads": threads})
        for threads in (128, 512)
    ]
    return jobs


def staging_jobs() -> list[Job]:
    """Tiles through swizzled shared memory."""
    jobs: list[Job] = []
    for dtype in ("f16", "f32", "u8", "f64"):
        for tile, threads in (((64, 64), 128), ((64, 64), 256), ((32, 128), 128), ((128, 64), 256)):
            jobs.append(("staging", EVEN, dtype, {"tile": tile, "threads": threads}))
    return jobs


JOBS = {"windows": window_jobs, "plain": plain_jobs, "engine": engine_jobs, "gathers": gather_jobs,
        "staging": staging_jobs}  # fmt: skip


def made(job: Job) -> tuple[ArrayKernel, bytes] | str:
    """Return the kernel of a job and its machine code, or why there is none."""
    kind, shape, dtype, options = job
    try:
        kernel = MAKERS[kind](shape, dtype, **options)
        return kernel, to_cubin(kernel.kernel)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]


@dataclass(frozen=True)
class Case:
    """The arrays of a launch, what it must write, and what other libraries do for the same."""

    source: Any
    result: Any
    wanted: Any
    index: Any = None
    peers: dict[str, Any] = field(default_factory=dict)


class Device:
    """What launches and timings share."""

    def __init__(self) -> None:
        import torch
        from cuda.bindings import driver

        self.torch, self.driver = torch, driver
        torch.cuda.init()
        self.units = torch.cuda.get_device_properties(0).multi_processor_count
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)

    def call(self, result: tuple[Any, ...]) -> Any:
        code, *values = result
        if int(code):
            raise RuntimeError(f"driver: {code!s}")
        return values[0] if values else None

    def milliseconds(self, act: Any) -> float:
        """The median time of one launch."""
        torch = self.torch
        for _ in range(3):
            act()
        times = []
        for _ in range(REPEATS):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            for _ in range(BATCH):
                act()
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last) / BATCH)
        return statistics.median(times)

    def references(self, shape: tuple[int, ...], source: Any, result: Any) -> dict[str, float]:
        """Times of the driver's and PyTorch's copies, and of PyTorch's transposing copy."""
        size = source.numel() * source.element_size()
        driver, stream = self.driver, self.stream.cuda_stream
        found = {
            "memcpy": self.milliseconds(
                lambda: driver.cuMemcpyDtoDAsync(result.data_ptr(), source.data_ptr(), size, stream)
            ),
            "torch_copy": self.milliseconds(lambda: result.copy_(source)),
        }
        if len(shape) == 2:
            found["torch_transpose"] = self.milliseconds(lambda: source.t().contiguous())
        return found

    def case(self, job: Job, kernel: ArrayKernel, source: Any, result: Any) -> Case:
        """The arrays of a job, and what must come out."""
        torch, (kind, _, _, options) = self.torch, job
        if kind == "gather":
            found, index, into = kernel.arrays
            axis, words = options["axis"], {4: torch.int32, 8: torch.int64}[index.element_bytes]
            where = torch.randint(0, found.shape[axis], index.shape, dtype=words, device="cuda")
            wide = where.long()
            row = (wide[0] if axis == 1 else wide[:, 0]).contiguous()
            peers = {
                "torch_gather": lambda: torch.gather(source, axis, wide),
                "torch_index_select": lambda: torch.index_select(source, axis, row),
            }
            result = torch.empty(into.shape, dtype=source.dtype, device="cuda")
            return Case(source, result, torch.gather(source, axis, wide), where, peers)
        if kind == "staging":
            assert kernel.swizzle is not None
            rows, cols = kernel.swizzle.smem.in_dims.values()
            blocks, loads, threads, registers = kernel.arrays[1].shape
            layouts = [access.layout for access in kernel.swizzle.accesses[1:]]
            places = torch.tensor([layout.table().tolist() for layout in layouts], device="cuda")
            places = places.reshape(loads, threads, registers)
            tiles = source.reshape(source.shape[0] // rows, rows, -1, cols).permute(0, 2, 1, 3)
            wanted = tiles.reshape(blocks, rows, cols)[:, places % rows, places // rows]
            return Case(source, torch.empty_like(wanted), wanted)
        return Case(source, result, source if kind == "copy" else source.t())

    def run(self, kernel: ArrayKernel, cubin: bytes, case: Case) -> dict[str, Any]:
        """Compare what a kernel writes, then time it; persistent ones with several grids."""
        source, result, wanted = case.source, case.result, case.wanted
        torch, driver = self.torch, self.driver
        function = self.call(
            driver.cuModuleGetFunction(self.call(driver.cuModuleLoadData(cubin)), kernel.kernel.name.encode())
        )
        smem, threads = kernel.kernel.dynamic_smem_bytes, kernel.kernel.threads
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call(driver.cuFuncSetAttribute(function, limit, smem))
        registers = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
        local = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
        resident = self.call(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, smem))
        row: dict[str, Any] = {
            "resident": int(resident), "registers": int(self.call(driver.cuFuncGetAttribute(registers, function))),
            "local_bytes": int(self.call(driver.cuFuncGetAttribute(local, function))), "smem": smem,
            "conflicts": sum(each.turns - each.ideal for each in kernel.served),
        }  # fmt: skip
        status = torch.zeros(kernel.blocks if kernel.persistent else 1, dtype=torch.int32, device="cuda")
        grids = [min(kernel.blocks, many * self.units) for many in sorted({resident, max(1, resident // 2)})]
        row["grids"] = {}
        for blocks in dict.fromkeys(grids) if kernel.persistent else [kernel.blocks]:
            given = kernel.arguments(
                source.data_ptr(), result.data_ptr(), blocks, status.data_ptr(),
                None if case.index is None else case.index.data_ptr(),
            )  # fmt: skip
            cells = [argument_cell(*parameter, value, "LA533")
                     for parameter, value in zip(kernel.kernel.parameters, given, strict=True)]  # fmt: skip
            pointers = (ctypes.c_void_p * len(cells))(*[address for address, _ in cells])
            where, stream = ctypes.addressof(pointers), self.stream.cuda_stream

            def act(blocks: int = blocks, where: int = where, stream: int = stream) -> None:
                self.call(driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, smem, stream, where, 0))

            result.fill_(85)
            status.zero_()
            act()
            torch.cuda.synchronize()
            equal = bool(torch.equal(result.view(wanted.shape), wanted))
            fine = not kernel.persistent or bool((status[:blocks] == 1).all())
            time_ms = self.milliseconds(act)
            row["grids"][str(blocks)] = {"equal": equal, "status": fine, "ms": time_ms,
                                         "gbps": kernel.moved_bytes / time_ms / 1e6}  # fmt: skip
        best = max(row["grids"].values(), key=lambda each: each["gbps"])
        row["peers"] = {name: self.milliseconds(act) for name, act in case.peers.items()}
        row.update(best, equal=all(each["equal"] and each["status"] for each in row["grids"].values()))
        return row


@functools.cache
def device() -> Device:
    """The device of this child."""
    return Device()


@functools.lru_cache(maxsize=1)
def arrays(shape: tuple[int, ...], dtype: str) -> tuple[Any, Any, dict[str, float]]:
    """Random data, room for the result, and the times of copies."""
    torch = device().torch
    types = {"u8": torch.uint8, "f16": torch.int16, "f32": torch.int32, "f64": torch.int64}
    source = torch.empty(shape, dtype=types[dtype], device="cuda")
    source.view(torch.uint8).random_(0, 256)
    result = torch.empty_like(source)
    return source, result, device().references(shape, source, result)


def run_kernel(work: tuple[Job, ArrayKernel, bytes]) -> dict[str, Any]:
    """Run and time one kernel; the times of copies of its array are in ``references``."""
    job, kernel, cubin = work
    source, result, references = arrays(job[1], job[2])
    row = device().run(kernel, cubin, device().case(job, kernel, source, result))
    return row | {"references": references, "bytes": 2 * source.numel() * source.element_size()}


def kernels_job(run: Run) -> None:
    """Make all kernels of each kind, then run them one after the other in one child."""
    lines: list[dict[str, Any]] = []
    for which in run.options.kinds or list(JOBS):
        jobs = JOBS[which]()
        with ProcessPoolExecutor(12, mp_context=get_context("fork")) as pool:
            answers = list(pool.map(made, jobs))
        run.refused |= {f"{which} {number}": log for number, log in enumerate(answers) if isinstance(log, str)}
        if run.options.rehearse:
            continue
        work = [(job, *answer) for job, answer in zip(jobs, answers, strict=True) if not isinstance(answer, str)]
        found = iter(run.each(run_kernel, work, group=len(work), seconds=run.options.seconds, workers=1))
        known: set[tuple[Any, ...]] = set()
        for number, (job, answer) in enumerate(zip(jobs, answers, strict=True)):
            row = {
                "number": number,
                "which": which,
                **dict(zip(("kind", "shape", "dtype", "options"), job, strict=True)),
            }
            told = Fault(answer) if isinstance(answer, str) else next(found)
            if isinstance(told, Fault):
                lines.append(row | {"error": told.text})
                continue
            copies = {key: told.pop(key) for key in ("references", "bytes")}
            if (job[1], job[2]) not in known:
                lines.append({"which": which, "shape": job[1], "dtype": job[2], **copies})
            known.add((job[1], job[2]))
            lines.append(row | told)
    if run.options.rehearse:
        run.compile(())
    write(run, lines)


def write(run: Run, lines: list[dict[str, Any]]) -> None:
    """Write everything and the best of every kind, with ratios to the copies of the same process."""
    ran = [row for row in lines if "gbps" in row]
    reference = {(row["which"], tuple(row["shape"]), row["dtype"]): row for row in lines if "references" in row}
    best: dict[str, Any] = {}
    for row in ran:
        told = reference[row["which"], tuple(row["shape"]), row["dtype"]]
        fast = min(told["references"]["memcpy"], told["references"]["torch_copy"])
        row["of_copy"] = row["gbps"] * fast / told["bytes"] * 1e6
        row["of_memcpy"] = row["gbps"] * told["references"]["memcpy"] / told["bytes"] * 1e6
        peer = {"copy": None, "staging": "torch_copy"}.get(row["kind"], "torch_transpose")
        peers = {**told["references"], **row["peers"]}
        if peer := "torch_gather" if row["kind"] == "gather" else peer:
            row["to_torch"] = row["ms"] / peers[peer]
        name = f"{row['kind']} {'x'.join(map(str, row['shape']))} {row['dtype']}"
        if name not in best or row["gbps"] > best[name]["gbps"]:
            keys = (
                "options",
                "gbps",
                "of_copy",
                "of_memcpy",
                "to_torch",
                "peers",
                "resident",
                "registers",
                "local_bytes",
            )
            best[name] = {key: row[key] for key in keys if key in row}
    copies = {" ".join(map(str, key)): {name: row["bytes"] / ms / 1e6 for name, ms in row["references"].items()}
              for key, row in reference.items()}  # fmt: skip
    run.write("kernels_dev", {
        "kernels": len(ran), "equal": sum(row["equal"] for row in ran), "best": best, "copy_gbps": copies,
        "errors": [row["error"] for row in lines if "error" in row][:8],
    }, rows=lines)  # fmt: skip
