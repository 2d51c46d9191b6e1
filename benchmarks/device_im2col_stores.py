"""Ask a device what stores through im2col and interleaved maps write.

    python3 benchmarks/device_im2col_stores.py --out DIR [--scale 1.0] [--seconds 150]

Needs a GPU with compute capability 9.0 and its driver. Writes ``stores.npz`` and, of those that may fault,
``risky.npz`` (every case and the global window that it left), and ``summary.json`` (per group: completed, refused,
faults, windows that are not the one predicted).

Notation: ``params``, ``coords`` as in ``device_tma_modes``. Word i of shared memory holds 0x40000000 + i, the window of
global memory was 0xA5 throughout, and the tensor's base lies ``HOME`` bytes after the window's start.

Implementation notes: the prediction is the load read backwards: each pixel, or slice, that lies inside the tensor is
written, in whole chunks of 16 bytes where the channels end inside one. Every batch runs in a child process; a batch
that faults is halved until the faulting cases stand alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import device_tma_modes_runs as runs  # noqa: E402
from device_backends import Cuda, device_text  # noqa: E402
from device_tma_modes_driver import ELEMENT_BYTES, Encoder  # noqa: E402
from device_tma_modes_im2col import im2col_case  # noqa: E402
from device_tma_modes_interleave import random_interleaved  # noqa: E402

from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.codegen.prelude import PRELUDE  # noqa: E402
from layoutalg.targets.nvidia import im2col, tensormap  # noqa: E402
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE  # noqa: E402
from layoutalg.targets.nvidia.tensormap import batch  # noqa: E402
from layoutalg.targets.nvidia.tensormap.execute import interleaved_places  # noqa: E402
from layoutalg.targets.nvidia.tensormap.fields import (  # noqa: E402
    DTYPES,
    INTERLEAVE_CODES,
    L2_PROMOTION_CODES,
    OOB_FILL_CODES,
)

WINDOW_BYTES = 40960
HOME = 4096
SOURCE_BYTES = 32768
POISON = 0xA5
_SPATIAL = 2

_KERNEL = """
{prelude}
extern "C" __global__ void __launch_bounds__(128) {name}(
    const la_tensor_map* maps, const int* heads, int source_bytes, la_u64* notes)
{{
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + {head_ints} * blockIdx.x;
    unsigned char* base = la_aligned_shared(1024);
    la_u32* words = (la_u32*)base;
    for (int i = threadIdx.x; i < source_bytes / 4; i += 128) words[i] = 0x40000000u + i;
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        la_fence_tensor_map(map);
        const la_u32 source = la_shared_address(base) + head[1];
        asm volatile("cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group [%0, {{{slots}}}], [%1];"
                     :: "l"(map), "r"(source), {values} : "memory");
        la_store_commit();
        la_store_wait();
        notes[{notes} * blockIdx.x + 4] = 1;
    }}
}}
"""


def kernel(mode: str, rank: int) -> KernelSource:
    """Return the kernel that runs one store per block."""
    slots = ", ".join(f"%{2 + j}" for j in range(rank))
    values = ", ".join(f'"r"(head[{2 + j}])' for j in range(rank))
    name = f"la_store_{mode}_{rank}d"
    text = _KERNEL.format(
        prelude=PRELUDE, name=name, slots=slots, values=values, rank=rank, head_ints=runs.HEAD_INTS, notes=runs.NOTES,
        mode="im2col_no_offs" if mode == "im2col" else mode,
    )  # fmt: skip
    parameters = (
        ("const la_tensor_map*", "maps"), ("const int*", "heads"), ("int", "source_bytes"),
        ("unsigned long long*", "notes"),
    )  # fmt: skip
    return KernelSource(name, text.lstrip("\n"), "sm_90a", 128, SOURCE_BYTES + 1024, parameters)


# --- what is predicted --------------------------------------------------------------------------------------------

_NAMES = (
    {entry.code: name for name, entry in DTYPES.items()},
    {code: name for name, code in INTERLEAVE_CODES.items()},
    {entry.map_code: name for name, entry in SWIZZLE_TABLE.items()},
    {code: name for name, code in L2_PROMOTION_CODES.items()},
    {code: name for name, code in OOB_FILL_CODES.items()},
)


def im2col_map(p: list[int]) -> im2col.Im2colMap:
    """Return the im2col map of 29 numbers."""
    rank = p[1]
    dtype, *names = (table[code] for code, table in zip((p[0], *p[25:29]), _NAMES, strict=True))
    spatial = rank - _SPATIAL
    return im2col.Im2colMap(
        dtype, tuple(p[3 : 3 + rank]), tuple(p[8 : 7 + rank]), tuple(p[12 : 12 + spatial]),
        tuple(p[15 : 15 + spatial]), p[18], p[19], tuple(p[20 : 20 + rank]), *names, p[2],
    )  # fmt: skip


def predicted(case: dict[str, object]) -> np.ndarray:
    """Return the window that the store is believed to leave."""
    p = list(case["params"])
    p[2] += HOME
    coords = list(case["coords"])[: p[1]]
    if case["mode"] == "tile":
        tm = batch.from_row(p)
        address, inside = interleaved_places(tm, coords)
        width = pitch = tensormap.unit_bytes(tm)
        swizzle = tm.swizzle
    else:
        tm = im2col_map(p)
        address, inside = im2col.pixel_addresses(tm, coords, [0] * (tm.rank - _SPATIAL))
        width, pitch, swizzle = im2col.row_bytes(tm), im2col.row_pitch_bytes(tm), tm.swizzle
    chunks = np.arange(0, width, 16, dtype=np.int64)
    at = int(case["offset"]) + pitch * np.arange(address.size, dtype=np.int64)[:, None] + chunks
    source = (np.arange(SOURCE_BYTES // 4, dtype=np.uint32) + np.uint32(0x40000000)).view(np.uint8)
    values = source[tensormap.apply_swizzle(swizzle, at)[..., None] + np.arange(16)]
    kept = np.broadcast_to(inside[:, None], at.shape)
    to = address[:, None] + chunks
    if case["mode"] == "im2col" and tm.interleave == "NONE":
        size = tensormap.element_bytes(tm.dtype)
        first = coords[0] * size + chunks  # the first byte of each chunk along C
        kept = kept & (first >= 0) & (first < tm.dims[0] * size)
        to = to + coords[0] * size
    window = np.full(WINDOW_BYTES, POISON, np.uint8)
    window[to[kept][:, None] + np.arange(16)] = values[kept]
    return window


# --- cases --------------------------------------------------------------------------------------------------------


def reach(p: list[int]) -> int:
    """Return the bytes from the window's start to the end of the tensor, with a spare chunk."""
    rank = p[1]
    inner = 32 if p[25 if len(p) == 29 else 22] else ELEMENT_BYTES[p[0]]
    return HOME + p[2] + inner * p[3] + sum((d - 1) * s for d, s in zip(p[4 : 3 + rank], p[8 : 7 + rank], strict=True))


def group_of(how: str, case: dict[str, object]) -> str:
    """Return the group of a case; stores that may fault stand apart: box beyond the tensor, negative starts."""
    p, rank, mode = case["params"], case["params"][1], case["mode"]
    if mode == "im2col":
        if min(p[12:15]) < 0 or max(p[15:18]) > 0:
            return "risky/beyond"
        if how == "outside":
            return "risky/outside"
    if min(case["coords"][:rank]) < 0:
        last = {"im2col": "im2col", "tile": "interleaved"}[mode]
        return f"risky/negative_{last}" + ("_n" if case["coords"][rank - 1] < 0 else "")
    return f"{mode}/{how}"


def pulled_inside(rng: np.random.Generator, case: dict[str, object]) -> None:
    """Move the corner's box of a case into the tensor, and the start into the box."""
    p, rank, coords = case["params"], case["params"][1], case["coords"]
    first = 0 if p[25] else 1
    for j in range(rank - _SPATIAL):
        extent = p[3 + first + j]
        p[12 + j] = min(max(p[12 + j], 0), extent - 1)
        p[15 + j] = max(min(p[15 + j], 0), p[12 + j] - extent + 1)
        coords[first + j] = int(rng.integers(p[12 + j], extent + p[15 + j]))


def groups(scale: float) -> dict[str, list[dict[str, object]]]:
    """Return random stores by group; those that may fault are few."""
    sizes = {"plain": 160, "steps": 120, "steps_c": 40, "channels": 60, "batch": 40, "swizzle": 100, "narrow": 60,
             "shifted": 40, "mixed": 120, "outside": 0, "interleaved_im2col": 120, "interleaved": 240}  # fmt: skip
    risky = 20
    found: dict[str, list[dict[str, object]]] = {}
    for number, (how, count) in enumerate(sizes.items()):
        rng = np.random.default_rng(6100 + number)
        taken = drawn = 0
        while taken < int(count * scale) or drawn < 400:
            drawn += 1
            if how.startswith("interleaved"):
                case = random_interleaved(rng, "im2col" if how.endswith("im2col") else "tile")
            else:
                case = im2col_case(rng, how)
            if case is None or reach(case["params"]) > WINDOW_BYTES - 1024:
                continue
            case["offsets"] = []
            if case["mode"] == "im2col" and how != "outside" and rng.random() < 0.9:
                pulled_inside(rng, case)
            group = group_of(how, case)
            if rng.random() < 0.9 and (predicted(case) != POISON).sum() < 64:
                continue  # most stores are to write something
            most = min(risky, 4 + number * 4) if group.startswith("risky") else int(count * scale)
            if len(found.get(group, ())) < most:
                found.setdefault(group, []).append(case)
                taken += not group.startswith("risky")
    return found


# --- running ------------------------------------------------------------------------------------------------------


def run_cases(device: Cuda, cases: list[dict[str, object]], cubins: Path) -> list[dict[str, object]]:
    """Run stores; return per case the driver's status, the map, the window and the notes."""
    encoder = Encoder(device.lib)
    windows = device.filled(WINDOW_BYTES * len(cases), POISON)
    answers: list[dict[str, object]] = []
    for index, case in enumerate(cases):
        encode = encoder.im2col if case["mode"] == "im2col" else encoder.tiled
        status, raw = encode(case["params"], windows + WINDOW_BYTES * index + HOME + case["params"][2])
        answers.append({"status": status, "map": raw})
    noted = np.zeros((len(cases), runs.NOTES), dtype=np.uint64)
    for mode, rank in sorted({(str(c["mode"]), int(c["params"][1])) for c in cases}):
        chosen = [i for i, c in enumerate(cases)
                  if (c["mode"], c["params"][1]) == (mode, rank) and answers[i]["status"] == 0]  # fmt: skip
        if not chosen:
            continue
        maps = np.frombuffer(b"".join(answers[i]["map"] for i in chosen), dtype=np.uint8)
        heads = np.zeros((len(chosen), runs.HEAD_INTS), dtype=np.int32)
        for row, i in enumerate(chosen):
            heads[row, 1], heads[row, 2:7] = cases[i]["offset"], cases[i]["coords"]
        notes = np.zeros((len(chosen), runs.NOTES), dtype=np.uint64)
        there = [device.upload(v) for v in (maps, heads, notes)]
        device.launch(kernel(mode, rank), cubins, len(chosen), SOURCE_BYTES + 1024,
                      [there[0], there[1], SOURCE_BYTES, there[2]])  # fmt: skip
        device.download(there[2], notes)
        noted[chosen] = notes
    images = device.download(windows, np.empty((len(cases), WINDOW_BYTES), dtype=np.uint8))
    return [answer | {"image": images[i], "notes": noted[i]} for i, answer in enumerate(answers)]


def summarise(out: Path) -> dict[str, dict[str, object]]:
    """Compare every window with the prediction; return per group what came of it."""
    told: dict[str, dict[str, object]] = {}
    for name in ("stores", "risky"):
        with np.load(out / f"{name}.npz", allow_pickle=False) as stored:
            told |= compared(dict(stored))
    return told


def compared(data: dict[str, np.ndarray]) -> dict[str, dict[str, object]]:
    """Return per group of one file what came of its cases."""
    told: dict[str, dict[str, object]] = {}
    for i, group in enumerate(data["group"].tolist()):
        width = 29 if data["mode"][i] == "im2col" else 26
        case = {"mode": str(data["mode"][i]), "params": data["params"][i].tolist()[:width],
                "coords": data["coords"][i].tolist(), "offset": int(data["offset"][i])}  # fmt: skip
        row = told.setdefault(group, {"cases": 0, "refused": 0, "faults": {}, "compared": 0, "wrong": 0, "first": None})
        row["cases"] += 1
        if data["fault"][i]:
            row["faults"][str(data["fault"][i])] = row["faults"].get(str(data["fault"][i]), 0) + 1
        elif data["status"][i]:
            row["refused"] += 1
        else:
            row["compared"] += 1
            different = np.flatnonzero(predicted(case) != data["image"][i])
            row["wrong"] += bool(different.size)
            if different.size and row["first"] is None:
                row["first"] = {"case": i, "bytes": int(different.size), "at": different[:4].tolist()}
    return told


def main() -> None:
    """Probe, or run one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("--out", default="im2col_stores")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--scale", type=float, default=1.0)
    for name in ("cubins", "job", "answer"):
        parser.add_argument(f"--{name}")
    arguments = parser.parse_args()
    if arguments.what == "worker":
        runs.worker(arguments, run_cases, WINDOW_BYTES)
        return
    out, began = Path(arguments.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    cubins = Path(tempfile.mkdtemp(prefix="cubins-"))
    runs.compile_kernels(cubins, kernel)
    drawn = groups(arguments.scale)
    print(f"compiled and drawn in {time.monotonic() - began:.0f} s", {k: len(v) for k, v in drawn.items()}, flush=True)
    if arguments.what == "compile":
        return
    campaign = runs.Campaign(out, cubins, arguments.seconds, __file__, WINDOW_BYTES)
    campaign.section("stores", {k: v for k, v in drawn.items() if not k.startswith("risky")}, 20)
    campaign.section("risky", {k: v for k, v in drawn.items() if k.startswith("risky")}, 1)
    facts = device_text()
    told = summarise(out)
    told_all = {"device": facts, "date": time.strftime("%Y-%m-%d"), "groups": told}
    (out / "summary.json").write_text(json.dumps(told_all, indent=1))
    for group, row in told.items():
        print(group, row, flush=True)
    print(facts, f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
