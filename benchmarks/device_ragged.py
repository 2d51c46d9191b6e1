"""Ragged copies and transposes on a device, byte for byte and beside a dense copy; what clipped maps rely on.

    python benchmarks/device_ragged.py --make build/ragged.pickle     (where islpy and z3 are: plans and kernels)
    python benchmarks/device.py ragged --made build/ragged.pickle     (on the device; the file is carried there)

``probes`` asks three things of single copies: whether addresses wrap at 2^64, so that clipped maps work, by form,
direction and element size; whether a swizzled store may begin 128 bytes but not 1024 bytes aligned; what a store writes
behind a row that ends inside 16 bytes. ``kernels`` runs every strategy on random sizes. ``speed`` times schedule and
copy, as one graph, in turns with a dense copy of as many bytes.
"""

from __future__ import annotations

import argparse
import functools
import json
import pickle
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from device import Fault, Launch, MapAt, Result, Run, here

import layoutalg as la
from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, signature
from layoutalg.codegen.kernels import ArrayKernel, copy_kernel
from layoutalg.codegen.kernels.ragged import RaggedKernel, ragged_copy_kernel, ragged_kernel
from layoutalg.codegen.kernels.ragged_transpose import ragged_transpose_kernel
from layoutalg.codegen.kernels.ring import tile_plan
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.proofs.ragged_clip import ClipPlan
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.synth.ragged.family import synthesize_ragged
from layoutalg.targets.nvidia.tensormap import TensorMap, encode

ROWS, COLUMNS, TILE = 400, 128, 32
DTYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
STRATEGIES = ("auto", "exact_pool", "overlap_pool", "shift_back", "clip read_write", "clip write_only")
GROUPS = 24
BYTES = 1 << 28
"""Of the tensor that is timed."""
SPEEDS = [(1024, 4), (1024, 8), (1024, 16), (1024, 64), (1024, 100), (4096, 4), (4096, 33), (16384, 4), (2048, 1000)]
"""Bytes of a row, mean rows of a group."""

_PROBE = """
extern "C" __global__ void __launch_bounds__(128) {name}({signature})
{{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 address = la_shared_address(tile), barrier = address + {room};
    for (int i = threadIdx.x; i < {room}; i += 128) tile[i] = {first};
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();
    bool done = true;
    if (threadIdx.x == 0) {{
{act}    }}
    __syncthreads();
    {last}
    if (threadIdx.x == 0) *status = done ? 1 : 2;
}}
"""


def probe_kernel(direction: str, rank: int, room: int = 32768) -> KernelSource:
    """One copy between a map and an image of shared memory: (map, start, bytes, c0, ..., image, status)."""
    coords = [f"c{dim}" for dim in range(rank)]
    listed, load = ", ".join(coords), direction == "load"
    parameters = (
        (MAP_TYPE, "map"), ("int", "start"), ("int", "bytes"), *[("int", name) for name in coords],
        ("unsigned char*" if load else "const unsigned char*", "image"), ("int*", "status"),
    )  # fmt: skip
    act = (
        f"        la_arrive_expect_tx(barrier, bytes);\n"
        f"        la_tma_load_{rank}d(address + start, &map, barrier, {listed});\n"
        f"        done = la_wait_parity(barrier, 0);\n"
        if load
        else f"        la_tma_store_{rank}d(&map, address + start, {listed});\n"
        "        la_store_commit();\n        la_store_wait();\n"
    )
    name = f"ragged_probe_{direction}_{rank}"
    text = _PROBE.format(
        name=name, signature=signature(parameters), room=room, first="0xEE" if load else "image[i]", act=act,
        last=f"for (int i = threadIdx.x; i < {room}; i += 128) image[i] = tile[i];" if load else "",
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, "sm_90a", 128, room + 1024 + 8, parameters)


def raw_of(tm: TensorMap) -> bytes:
    return encode(tm, target="sm_90a")


def clip_probes(rng: np.random.Generator) -> list[Launch]:
    """Loads and stores of whole, partial and empty tiles of groups, and of rows above a group, which are in bounds."""
    jobs = []
    for size, dtype in DTYPES.items():
        for form, direction in (("read_write", "load"), ("read_write", "store"), ("write_only", "store")):
            columns = 128 // size
            dense = tile_plan((ROWS, columns), dtype, (TILE, columns), "128B", "sm_90a", direction)
            plan = ClipPlan.of(dense, 0, form)
            kernel = probe_kernel(direction, plan.tensor_map.rank)
            for offset, length, row in (
                (0, 100, 0),
                (7, 45, 32),
                (390, 10, 0),
                (123, 0, 0),
                (200, 64, 32),
                (50, 31, 0),
                (50, 31, -8),
                (123, 0, -8),
                (120, 100, -24),
            ):
                jobs.append(_clip_job(plan, kernel, (offset, length, row), rng))
    return jobs


def _clip_job(plan: ClipPlan, kernel: KernelSource, group: tuple[int, int, int], rng: np.random.Generator) -> Launch:
    """One copy of rows ``row`` to ``row + TILE - 1`` of a group."""
    offset, length, row = group
    (coords,) = plan.coordinates((max(0, row), 0), offset, length)
    coords = tuple([c + (min(0, row) if dim == plan.ragged_dim else 0) for dim, c in enumerate(coords)])
    memory = rng.integers(0, 256, (ROWS, 128), dtype=np.uint8)
    image = np.full((32768 // 128, 128), 0xEE, np.uint8)
    tile = rng.integers(0, 256, (TILE, 128), dtype=np.uint8)
    valid = max(0, min(TILE, length - row))
    swizzled = np.arange(128)[None] ^ ((np.arange(TILE) % 8) * 16)[:, None]
    wanted = memory.copy()
    if plan.direction == "load":
        tile[:valid], tile[valid:] = memory[offset + row : offset + row + valid], 0
    else:
        wanted[offset + row : offset + row + valid] = tile[:valid]
    np.put_along_axis(image[:TILE], swizzled, tile, 1)
    if plan.direction == "load":
        given, out = np.full_like(image, 0x55), 3 + plan.tensor_map.rank
        expected = {out: image}
    else:
        given, out = image, 3 + plan.tensor_map.rank
        expected = {out + 2: wanted}
    probe = replace(kernel, parameters=(*kernel.parameters, ("unsigned char*", "memory")),
                    text=kernel.text.replace("int* status)", "int* status, unsigned char* memory)"))  # fmt: skip
    arguments = [MapAt(plan.raw, out + 2), 0, TILE * 128, *coords, given, np.zeros(1, np.int32), memory]
    name = f"{plan.form} {plan.direction}{' above' * (row < 0)}"
    facts = {"what": name, "element_bytes": plan.problem.element_bytes, "group": group}
    return Launch(name, probe, arguments, (out, out + 1, out + 2), 1, expected, facts, risky=True)


def store_probes(rng: np.random.Generator) -> list[Launch]:
    """Swizzled stores that begin between the periods of the swizzle, and stores whose rows end inside 16 bytes."""
    jobs = []
    kernel = probe_kernel("store", 2)
    kernel = replace(kernel, parameters=(*kernel.parameters, ("unsigned char*", "memory")),
                     text=kernel.text.replace("int* status)", "int* status, unsigned char* memory)"))  # fmt: skip
    for swizzle, mask in (("128B", 7), ("64B", 3), ("32B", 1)):
        span = 16 * (mask + 1)
        for start in range(0, 1024, 128):
            tm = TensorMap("u8", (span, 64), (span,), (span, 8), swizzle=swizzle)
            image = rng.integers(0, 256, 32768, dtype=np.uint8)
            at = start + np.arange(8)[:, None] * span + np.arange(span)[None]
            rows = image[at ^ ((at >> 7 & mask) << 4)]
            memory = np.zeros((64, span), np.uint8)
            wanted = memory.copy()
            wanted[5:13] = rows
            facts = {"what": f"swizzle {swizzle}", "start": start}
            arguments = [MapAt(raw_of(tm), 7), start, 0, 0, 5, image, np.zeros(1, np.int32), memory]
            jobs.append(Launch("swizzled", kernel, arguments, (6, 7), 1, {7: wanted}, facts))
    for size, dtype in DTYPES.items():
        for extent in range(1, 32 // size + 1):
            inner = 32 // size
            tm = TensorMap(dtype, (extent, 8), (64,), (inner, 4))
            image = rng.integers(1, 256, 32768, dtype=np.uint8)
            memory = np.zeros((8, 64), np.uint8)
            wanted, reach = memory.copy(), -(-extent * size // 16) * 16
            wanted[2:6, :reach] = image[:128].reshape(4, 32)[:, :reach]
            facts = {"what": f"clobber {size}", "extent": extent}
            arguments = [MapAt(raw_of(tm), 7), 0, 0, 0, 2, image, np.zeros(1, np.int32), memory]
            jobs.append(Launch("clobber", kernel, arguments, (6, 7), 1, {7: wanted}, facts))
    return jobs


# -------------------------------------------------------------------------------------------------------------- kernels


@dataclass(frozen=True)
class Case:
    """A kernel, the sizes it is given, and how it is judged."""

    kind: str
    strategy: str
    shape: tuple[int, int]
    element_bytes: int
    made: RaggedKernel
    sizes: tuple[int, ...]
    starts: tuple[int, ...] = ()
    dense: ArrayKernel | None = None
    facts: tuple[tuple[str, Any], ...] = ()


def clip_family(tensor: la.Tensor, tile: tuple[int, int], smem: Any, form: str) -> RaggedFamily:
    """A clipped family before any probe: what is to be found out."""
    base = synthesize_ragged(tensor, tile, smem, strategy="overfetch")
    plan = base.plans[0]
    assert isinstance(plan, TensorMapPlan)
    if form == "write_only":  # loads are of the dense map; the form is that of stores
        document = plan.problem.to_json() | {"direction": "store"}
        document.pop("oob_fill", None)  # type: ignore[arg-type]
        plan = la.synth.synthesize_tensormap(document)
    return replace(base, strategy="clip", stated="", plans=(ClipPlan.of(plan, 0, form),))


def random_sizes(rng: np.random.Generator, rows: int, groups: int, least: int, multiple: int) -> tuple[int, ...]:
    """Sizes of which some are 0, with sum at most ``rows``."""
    found, rest = [], rows
    for _ in range(groups):
        size = int(rng.choice((0, rng.integers(1, 8), rng.integers(1, 2 * TILE), rng.integers(1, rows // 3))))
        size = min(size, rest) // multiple * multiple
        size = 0 if size < least else size
        found.append(size)
        rest -= size
    return tuple(found)


def kernel_cases(rng: np.random.Generator) -> list[Case]:
    """Every strategy, swizzled and not, by offsets and sizes, placed elsewhere, of several heights; transposes."""
    cases = []
    smem = f"Sw<3,3,3> o 0 o ({TILE},64):(64,1)"
    tensor = la.Tensor((4096, COLUMNS), dtype="u16")
    for strategy in STRATEGIES:
        name, _, form = strategy.partition(" ")
        family = clip_family(tensor, (TILE, 64), smem, form) if form else la.ragged(
            tensor, GROUPS, (TILE, 64), smem, name
        )  # fmt: skip
        for given, placed in (("offsets", False), ("sizes", False), ("offsets", True)):
            label = f"copy_{strategy.replace(' ', '_')}_{given}_{placed}"
            made = ragged_kernel(family, groups=GROUPS, given=given, placed=placed, into_rows=6000 if placed else None,
                                 name=label)  # fmt: skip
            for _ in range(4):
                sizes = random_sizes(rng, 4096, GROUPS, family.least_rows, 1)
                starts = np.cumsum([0, *sizes[:-1]]) + np.arange(GROUPS) * 70 if placed else np.zeros(0)
                cases.append(Case("copy", strategy, (4096, COLUMNS), 2, made, sizes, tuple(map(int, starts))))
    for dtype, size in (("u16", 2), ("f32", 4), ("u8", 1), ("u64", 8)):
        shape = (4096, 2048 // size)
        made = ragged_copy_kernel(shape, dtype, GROUPS, way="boxes", name=f"heights_{size}")
        turned = ragged_transpose_kernel(shape, dtype, GROUPS, name=f"turned_{size}")
        for _ in range(3):
            cases.append(Case("copy", "heights", shape, size, made, random_sizes(rng, 4096, GROUPS, 1, 1)))
            cases.append(
                Case("transpose", "rests", shape, size, turned, random_sizes(rng, 4096, GROUPS, 1, 16 // size))
            )
    return cases


def speed_cases(rng: np.random.Generator) -> list[Case]:
    """Copies of many bytes by rows and sizes, with the dense copy of as many."""
    cases = []
    for row, mean in SPEEDS:
        rows, columns = BYTES // row, row // 4
        groups = min(16384, rows // mean)
        rows = min(rows, groups * mean)
        sizes = rng.multinomial(rows, np.full(groups, 1 / groups)) if mean > 16 else np.full(groups, mean)
        dense = copy_kernel((rows, columns), "f32", way="tma", tile=(16384 // min(row, 1024), min(columns, 256)),
                            stages=6, name=f"dense_{row}_{mean}")  # fmt: skip
        for strategy in ("auto", "exact_pool"):
            made = ragged_copy_kernel((rows, columns), "f32", groups, way="boxes", strategy=strategy,
                                      name=f"speed_{row}_{mean}_{strategy}")  # fmt: skip
            facts = (("row_bytes", row), ("mean_rows", mean), ("groups", groups))
            cases.append(
                Case("speed", strategy, (rows, columns), 4, made, tuple(map(int, sizes)), dense=dense, facts=facts)
            )
    return cases


def waste(case: Case, tile: int) -> dict[str, float]:
    """Share of the loaded rows that no group needs, and of tiles that are not whole."""
    sizes = np.asarray(case.sizes)
    tiles = int((-(-sizes // tile)).sum())
    return {
        "wasted": tiles * tile / max(1, int(sizes.sum())) - 1,
        "tails": int((sizes % tile > 0).sum()) / max(1, tiles),
    }


@functools.cache
def torch() -> Any:
    import torch

    torch.zeros(1, device="cuda")
    return torch


def built(kernel: KernelSource) -> bytes:
    """The machine code that the job has compiled."""
    return (here() / f"{kernel.name}.cubin").read_bytes()


def run_case(case: Case) -> dict[str, Any]:
    """Run the two kernels on random data and compare every byte; time them where a dense copy is given."""
    from device_products import launcher

    t, made = torch(), case.made
    kinds = {1: t.uint8, 2: t.int16, 4: t.int32, 8: t.int64}
    source = t.empty(case.shape, dtype=kinds[case.element_bytes], device="cuda")
    source.view(t.uint8).random_(0, 256)
    index = t.int32 if made.index_bytes == 4 else t.int64
    ends = np.cumsum([0, *case.sizes])
    given = t.tensor(ends if made.given == "offsets" else case.sizes, dtype=index, device="cuda")
    starts = t.tensor(case.starts, dtype=index, device="cuda") if made.placed else None
    schedule = t.full((made.schedule_words,), -1, dtype=t.int32, device="cuda")
    into = made.arrays[1].shape
    result = t.full(into, 85, dtype=kinds[case.element_bytes], device="cuda")
    wanted = result.clone()
    if case.kind == "transpose":
        wanted[:, : ends[-1]] = source[: ends[-1]].t()
    elif starts is None:
        wanted[: ends[-1]] = source[: ends[-1]]
    else:
        for start, first, last in zip(case.starts, ends, ends[1:], strict=False):
            wanted[start : start + last - first] = source[first:last]
    first = made.schedule_arguments(
        given.data_ptr(), schedule.data_ptr(), placed=None if starts is None else starts.data_ptr()
    )
    plan, _ = launcher(made.scheduler, built(made.scheduler), first, made.schedule_blocks)
    units = t.cuda.get_device_properties(0).multi_processor_count
    resident = max(1, 229376 // (made.kernel.dynamic_smem_bytes + 1024))
    blocks = min(made.blocks, units * min(resident, 8))
    status = t.zeros(blocks, dtype=t.int32, device="cuda")
    arguments = made.arguments(source.data_ptr(), result.data_ptr(), schedule.data_ptr(), blocks, status.data_ptr())
    act, numbers = launcher(made.kernel, built(made.kernel), arguments, blocks)
    plan()
    act()
    t.cuda.synchronize()
    header = schedule[:4].tolist()
    row = {
        "kind": case.kind, "strategy": case.strategy, "equal": bool(t.equal(result, wanted)),
        "status": bool((status == 1).all()), "header": header, "rows": int(ends[-1]),
    } | dict(case.facts) | numbers | waste(case, header[1])  # fmt: skip
    return row if case.dense is None else row | timed(case, plan, act, source, result, units)


def timed(case: Case, plan: Any, act: Any, source: Any, result: Any, units: int) -> dict[str, Any]:
    """Schedule and copy as one graph, in turns with the dense copy and PyTorch's."""
    from device_products import graphed, launcher, milliseconds

    dense, t = case.dense, torch()
    assert dense is not None
    resident = max(1, 229376 // (dense.kernel.dynamic_smem_bytes + 1024))
    blocks = min(dense.blocks, units * min(resident, 8))
    status = t.zeros(blocks, dtype=t.int32, device="cuda")
    arguments = dense.arguments(source.data_ptr(), result.data_ptr(), blocks, status.data_ptr())
    peer, _ = launcher(dense.kernel, built(dense.kernel), arguments, blocks)

    def both() -> None:
        plan()
        act()

    many = 4
    acts = [graphed(each, many) for each in (both, peer, act, plan, lambda: result.copy_(source))]
    mine, theirs, alone, listing, copied = milliseconds(acts, many)
    moved = 2 * source.numel() * source.element_size()
    return {
        "ms": mine, "gbps": moved / mine / 1e6, "dense_ms": theirs, "dense_gbps": moved / theirs / 1e6,
        "ratio": theirs / mine, "copy_ms": alone, "copy_ratio": theirs / alone, "schedule_us": 1e3 * listing,
        "torch_gbps": moved / copied / 1e6,
    }  # fmt: skip


def made_cases(seed: int = 0) -> list[Case]:
    """All kernels of the job, planned here."""
    rng = np.random.default_rng(seed)
    return [*kernel_cases(rng), *speed_cases(rng)]


def probed(jobs: Sequence[Launch], results: Sequence[Result]) -> list[dict[str, Any]]:
    """What came back of each probe."""
    return [
        job.facts | {"wrong": result.wrong(job), "fault": result.fault}
        for job, result in zip(jobs, results, strict=True)
    ]


def verdict_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The entry of ``targets/probes.json``: forms right for every element size that was tried."""
    right: dict[tuple[str, int], bool] = {}
    for row in rows:
        if "element_bytes" in row:
            key = row["what"], row["element_bytes"]
            right[key] = right.get(key, True) and not row["wrong"] and not row["fault"]
    sizes = sorted({size for _, size in right})
    moved = [form for form in dict.fromkeys(form for form, _ in right) if all(right[form, size] for size in sizes)]
    above = {form for form, _ in right if form.endswith("above")}
    return {
        "forms": [form for form in moved if form not in above],
        "above": "moved" if above and above <= {*moved} else "",
        "element_bytes": sizes, "wrong": [list(key) for key, fine in right.items() if not fine],
    }  # fmt: skip


def best_ratios(speeds: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The best ratio to a dense copy for each row and mean size."""
    found: dict[str, float] = {}
    for row in speeds:
        name = f"{row['mean_rows']} x {row['row_bytes']} B"
        found[name] = max(found.get(name, 0.0), round(row["ratio"], 3))
    return found


def clip_job(run: Run) -> None:
    """The probes of clipped maps alone."""
    jobs = clip_probes(np.random.default_rng(run.options.seed))
    run.compile([job.kernel for job in jobs])
    probes = probed(jobs, run.launches(jobs))
    print(json.dumps(verdict_of(probes), indent=1), flush=True)
    run.write("clip_dev", {"clip": verdict_of(probes)}, probes=probes)


def ragged_job(run: Run) -> None:
    """Probes, then every kernel, then speeds."""
    rng = np.random.default_rng(run.options.seed)
    path = Path(run.options.made)
    cases: list[Case] = pickle.loads(path.read_bytes()) if path.is_file() else made_cases(run.options.seed)
    jobs = [*clip_probes(rng), *store_probes(rng)]
    kernels = [kernel for case in cases for kernel in (case.made.kernel, case.made.scheduler)]
    kernels += [case.dense.kernel for case in cases if case.dense is not None]
    run.compile([*kernels, *[job.kernel for job in jobs]])
    probes = probed(jobs, run.launches(jobs))
    found = run.each(run_case, cases, group=len(cases), seconds=run.options.seconds, workers=1)
    rows: list[dict[str, Any]] = []
    for case, told in zip(cases, found, strict=True):
        name = {"kind": case.kind, "strategy": case.strategy}
        rows.append(name | {"fault": told.text} if isinstance(told, Fault) else told)
    ran = [row for row in rows if "equal" in row]
    speeds = [row for row in ran if "ratio" in row]
    for row in speeds:
        print(f"{row['row_bytes']:6} B x {row['mean_rows']:5}  {row['strategy']:11} {row['gbps']:7.0f} GB/s  "
              f"{row['ratio']:.3f} of dense, without schedule {row['copy_ratio']:.3f}  "
              f"waste {row['wasted']:.2f}  tails {row['tails']:.2f}  "
              f"schedule {row['schedule_us']:.1f} us")  # fmt: skip
    simple = [row for row in probes if "element_bytes" not in row]
    run.write("ragged_dev", {
        "kernels": len(rows), "equal": sum(row["equal"] and row["status"] for row in ran),
        "faults": [row["fault"] for row in rows if "fault" in row][:8], "clip": verdict_of(probes),
        "swizzled_starts": sum(not row["wrong"] and not row["fault"] for row in simple if "start" in row),
        "clobber": sum(not row["wrong"] and not row["fault"] for row in simple if "extent" in row),
        "probes": len(probes), "best_ratio": best_ratios(speeds),
        "median_ratio": statistics.median([row["ratio"] for row in speeds]) if speeds else None,
    }, probes=probes, rows=rows)  # fmt: skip


def main() -> None:
    """Plan all kernels of the job into a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--make", required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    import device_ragged  # so that the pickle names this module, not __main__

    path = Path(given.make)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(device_ragged.made_cases(given.seed)))
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
