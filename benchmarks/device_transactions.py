"""Sectors and requests of single accesses to global memory, by the counters of ncu.

Every case is a launch of one warp in which each active lane does one load or store; where the lanes are is text of the
kernel (constant memory), so that nothing else reaches global memory: widths of 1 to 16 bytes, loads and stores,
strides, permutations, shared addresses, any places, inactive lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from device import Run, cuda

from layoutalg.codegen.kernel import KernelSource
from layoutalg.targets.global_memory import instruction, touched

TARGET, LANES = "sm_90a", 32
ROOM = 1 << 24
"""Bytes of the buffer."""
NAMES = [f"{kind}.global.{shape}" for kind in ("ld", "st") for shape in ("b8", "b16", "b32", "v2.b32", "v4.b32")]
SECTORS = [f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}" for what in ("sectors", "requests") for op in ("ld", "st")]
MORE = {
    "sets": [f"l1tex__t_set_accesses_pipe_lsu_mem_global_op_{op}" for op in ("ld", "st")],
    "tags": [f"l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_{op}" for op in ("ld", "st")],
    "l2": ["lts__t_sectors_srcunit_tex_op_read", "lts__t_sectors_srcunit_tex_op_write"],
}
"""Counters that not every version has, each pair asked for alone: ways of the tag stage, and sectors that reach L2."""
Case = tuple[str, int]
"""An instruction, and the number of the case among its own."""

_KERNEL = """
__constant__ int {name}_starts[{cases}][32] = {{ {starts} }};
extern "C" __global__ void __launch_bounds__(32) {name}(unsigned char* data, int which)
{{
    const int own = {name}_starts[which][threadIdx.x];
    unsigned int w[{words}];
    for (int v = 0; v < {words}; ++v) w[v] = threadIdx.x + v;
    const unsigned long long address = (unsigned long long)__cvta_generic_to_global(data) + own;
    if (own >= 0) {statement}
    volatile __shared__ unsigned int sink[32][{words}];  // the words are used, but not in global memory
    for (int v = 0; v < {words}; ++v) sink[threadIdx.x][v] = w[v];
}}
"""


def lanes_of(rng: np.random.Generator, size: int, how: int) -> npt.NDArray[np.int64]:
    """Return the first byte of each lane, -1 for an inactive one."""
    lanes = np.arange(LANES)
    stride = int(rng.choice([1, 1, 1, 2, 3, 4, 8, 16, 33, 64, 256, 1024]))
    units = int(rng.integers(0, 64)) + lanes * stride
    if how == 1:
        units = rng.permutation(units)
    elif how == 2:
        units = rng.integers(0, int(rng.choice([4, 32, 128, 4096, ROOM // size])), LANES)
    elif how == 3:
        units = units[lanes & ~int(rng.choice([1, 2, 3, 7, 8, 16, 31]))]
    elif how == 4:  # rows of a matrix: some lanes along a row, the others down
        along = 1 << int(rng.integers(0, 5))
        units = int(rng.integers(0, 8)) + lanes % along + lanes // along * int(rng.choice([8, 17, 64, 100, 1024]))
    share = rng.choice([0.0, 0.0, 0.1, 0.5, 0.9])
    active = (rng.random(LANES) >= share) | (lanes == int(rng.integers(0, LANES)))
    return np.where(active, units * size, -1)


def cases(each: int) -> dict[str, list[npt.NDArray[np.int64]]]:
    """Return the cases of every instruction, the same every time."""
    rng = np.random.default_rng(982)
    return {name: [lanes_of(rng, instruction(name, TARGET).bytes, case % 5) for case in range(each)] for name in NAMES}


def touch_kernel(name: str, starts: Sequence[npt.NDArray[np.int64]]) -> KernelSource:
    """Return the kernel (data, which) of an instruction, with its lanes as text."""
    access = instruction(name, TARGET)
    words = max(1, access.bits // 32)
    slots = ", ".join(f"%{v + access.store}" for v in range(words))
    group = f"{{{slots}}}" if words > 1 else slots
    spelt = name.replace(".b8", ".u8").replace(".b16", ".u16") if access.bits < 32 else name
    operands = ", ".join(f'"{"" if access.store else "="}r"(w[{v}])' for v in range(words))
    if access.store:
        statement = f'asm volatile("{spelt} [%0], {group};" :: "l"(address), {operands} : "memory");'
    else:
        statement = f'asm volatile("{spelt} {group}, [%{words}];" : {operands} : "l"(address) : "memory");'
    label = f"la_touch_{name.replace('.', '_')}"
    rows = ", ".join("{" + ",".join(map(str, lanes.tolist())) + "}" for lanes in starts)
    text = _KERNEL.format(name=label, cases=len(starts), starts=rows, words=words, statement=statement)
    return KernelSource(label, text, TARGET, LANES, 0, (("unsigned char*", "data"), ("int", "which")))


def touch_all(_: object, kernels: list[KernelSource], each: int) -> None:
    """Launch every case once, in order, for a profiler to count."""
    data = cuda().alloc(ROOM + 64)
    for kernel in kernels:
        for which in range(each):
            cuda().launch(kernel, [data, which])


def grouped(starts: npt.NDArray[np.int64], size: int, together: int) -> int:
    """Return the sectors of one access if so many lanes are served together, each group its own."""
    return int(touched(starts.reshape(-1, together), size, 32).sum())


def transactions_job(run: Run) -> None:
    """Count every case; say how many are as the library counts, and as it would count parts of a warp."""
    every = cases(run.options.cases)
    kernels = [touch_kernel(name, starts) for name, starts in every.items()]
    run.compile(kernels)
    flat = [(name, starts) for name, each in every.items() for starts in each]
    counted = run.counted(touch_all, SECTORS, kernels, run.options.cases)
    told = counted if isinstance(counted, str) else "ncu"
    if isinstance(counted, list) and len(counted) != len(flat):
        told, counted = f"ncu counted {len(counted)} of {len(flat)} launches", told
    rows = [{"instruction": name, "starts": starts.tolist()} for name, starts in flat]
    if isinstance(counted, list):
        for row, numbers in zip(rows, counted, strict=True):
            row |= {"sectors": sum(numbers[:2]), "requests": sum(numbers[2:])}
    further = {}
    for what, pair in MORE.items():
        if not isinstance(counted, list) or run.spent > run.options.seconds:
            further[what] = "not asked"
            continue
        found = run.counted(touch_all, pair, kernels, run.options.cases)
        fits = isinstance(found, list) and len(found) == len(flat)
        further[what] = "ncu" if fits else str(found)[-200:]
        if fits:
            for row, numbers in zip(rows, found, strict=True):
                row[what] = sum(map(int, numbers))
    summary = {"accesses": len(rows), "counters": told, **further}
    for together, what in ((32, "as_warps"), (16, "as_halves"), (8, "as_quarters")):
        alike = [
            grouped(np.array(row["starts"]), instruction(row["instruction"], TARGET).bytes, together) == row["sectors"]
            for row in rows
            if "sectors" in row
        ]
        summary[what] = sum(alike)
    lines = [
        int(touched(np.array([row["starts"]]), instruction(row["instruction"], TARGET).bytes, 128)[0]) for row in rows
    ]
    for what in ("requests", "sets", "tags"):
        summary[f"{what}_as_lines"] = sum(row.get(what) == count for row, count in zip(rows, lines, strict=True))
    run.write("transactions_dev", summary, rows=rows)
