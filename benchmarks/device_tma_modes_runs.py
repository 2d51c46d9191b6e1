"""Running loads of any mode into poisoned shared memory, batch by batch in child processes.

Implementation notes: word i of global memory holds 0x40000000 + i, so that one image tells which word came where. The
barrier waits for two arrivals that come late, and its raw state is read before and after the load, so that the bytes
that the engine counted are known even where the prediction was wrong. Every batch runs in a child process; a batch that
faults is halved until the faulting cases stand alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from device_backends import Cuda, child_error, compile_kernel
from device_tma_modes_driver import Encoder

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE

SCRIPT = str(Path(__file__).with_name("device_tma_modes.py"))
IMAGE_BYTES = 16384
ROOM_BYTES = 160 * 1024
BUFFER_WORDS = 1 << 24
HOME = 1 << 24  # bytes from the buffer's start to the tensor's base
HEAD_INTS = 12
NOTES = 8

_KERNEL = """
{prelude}
__device__ __forceinline__ la_u64 state(la_u32 barrier)
{{
    la_u64 value;
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(value) : "r"(barrier) : "memory");
    return value;
}}

extern "C" __global__ void __launch_bounds__(128) {name}(
    const la_tensor_map* maps, const int* heads, unsigned char* images, int image_bytes, int room_bytes, la_u64* notes)
{{
    __shared__ __align__(8) la_u64 bars[2];
    __shared__ unsigned last, touched;
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + {head_ints} * blockIdx.x;
    la_u64* note = notes + {notes} * blockIdx.x;
    unsigned char* base = la_aligned_shared(1024);
    la_u32* words = (la_u32*)base;
    for (int i = threadIdx.x; i < room_bytes / 4; i += 128) words[i] = 0xEEEEEEEEu;
    const la_u32 bar = la_shared_address(&bars[0]), spare = la_shared_address(&bars[1]);
    if (threadIdx.x == 0) {{ last = 0; touched = 0; la_mbarrier_init(bar, 2); la_mbarrier_init(spare, 2); }}
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        note[0] = state(spare);
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(spare), "r"(16) : "memory");
        note[1] = state(spare);
        la_fence_tensor_map(map);
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(head[0]) : "memory");
        note[2] = state(bar);
        const la_u32 destination = la_shared_address(base) + head[1];
        {issue}
        la_u64 began, now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
        do {{ asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); }} while (now - began < 200000);
        note[3] = state(bar);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
        bool done = false;
        for (int spin = 0; spin < 4096 && !done; ++spin) {{
            la_u32 flag;
            asm volatile("{{\\n.reg .pred p;\\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\\n"
                         "selp.u32 %0, 1, 0, p;\\n}}\\n" : "=r"(flag) : "r"(bar) : "memory");
            done = flag;
        }}
        note[4] = done;
        note[5] = state(bar);
    }}
    __syncthreads();
    unsigned top = 0, count = 0;
    for (int i = threadIdx.x; i < room_bytes; i += 128) if (base[i] != 0xEE) {{ top = i + 1; ++count; }}
    atomicMax(&last, top);
    atomicAdd(&touched, count);
    for (int i = threadIdx.x; i < image_bytes; i += 128) images[(la_u64)image_bytes * blockIdx.x + i] = base[i];
    __syncthreads();
    if (threadIdx.x == 0) {{ note[6] = last; note[7] = touched; }}
}}
"""


def kernel(mode: str, rank: int) -> KernelSource:
    """Return the kernel that runs one load per block."""
    slots = ", ".join(f"%{3 + j}" for j in range(rank))
    values = ", ".join(f'"r"(head[{2 + j}])' for j in range(rank))
    tail = ""
    if mode == "im2col":
        tail = ", {" + ", ".join(f"%{3 + rank + j}" for j in range(rank - 2)) + "}"
        values += "".join(f', "h"((unsigned short)head[{7 + j}])' for j in range(rank - 2))
    issue = (
        f'asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"\n'
        f'            " [%0], [%1, {{{slots}}}], [%2]{tail};"\n'
        f'            :: "r"(destination), "l"(map), "r"(bar), {values} : "memory");'
    )
    name = f"la_mode_{mode}_{rank}d"
    text = _KERNEL.format(prelude=PRELUDE, name=name, issue=issue, head_ints=HEAD_INTS, notes=NOTES)
    parameters = (
        ("const la_tensor_map*", "maps"), ("const int*", "heads"), ("unsigned char*", "images"), ("int", "image_bytes"),
        ("int", "room_bytes"), ("unsigned long long*", "notes"),
    )  # fmt: skip
    return KernelSource(name, text.lstrip("\n"), "sm_90a", 128, ROOM_BYTES + 1024, parameters)


def run_cases(device: Cuda, cases: list[dict[str, object]], cubins: Path) -> list[dict[str, object]]:
    """Run loads of any mode and rank; return per case the driver's status, the map, the image and the notes."""
    encoder = Encoder(device.lib)
    buffer = device.upload(np.arange(BUFFER_WORDS, dtype=np.uint32) + np.uint32(0x40000000))
    answers: list[dict[str, object]] = [{} for _ in cases]
    for index, case in enumerate(cases):
        encode = encoder.im2col if case["mode"] == "im2col" else encoder.tiled
        status, raw = encode(case["params"], buffer + HOME + case["params"][2])
        answers[index] = {"status": status, "map": raw}
    for mode, rank in sorted({(str(c["mode"]), int(c["params"][1])) for c in cases}):
        chosen = [i for i, c in enumerate(cases)
                  if (c["mode"], c["params"][1]) == (mode, rank) and answers[i]["status"] == 0]  # fmt: skip
        if not chosen:
            continue
        maps = np.frombuffer(b"".join(answers[i]["map"] for i in chosen), dtype=np.uint8)
        heads = np.zeros((len(chosen), HEAD_INTS), dtype=np.int32)
        for row, i in enumerate(chosen):
            case = cases[i]
            heads[row, 0], heads[row, 1], heads[row, 2:7] = case["expect"], case["offset"], case["coords"]
            heads[row, 7 : 7 + len(case["offsets"])] = case["offsets"]
        images = np.zeros((len(chosen), IMAGE_BYTES), dtype=np.uint8)
        notes = np.zeros((len(chosen), NOTES), dtype=np.uint64)
        there = [device.upload(v) for v in (maps, heads, images)]
        noted = device.upload(notes)
        device.launch(kernel(mode, rank), cubins, len(chosen), ROOM_BYTES + 1024,
                      [*there, IMAGE_BYTES, ROOM_BYTES, noted])  # fmt: skip
        device.download(there[2], images)
        device.download(noted, notes)
        for row, i in enumerate(chosen):
            answers[i] |= {"image": images[row], "notes": notes[row]}
    return answers


class Campaign:
    """Runs batches in child processes, several at a time, and isolates the faulting cases."""

    def __init__(
        self, out: Path, cubins: Path, seconds: float, script: str = SCRIPT, image_bytes: int = IMAGE_BYTES
    ) -> None:
        self.out, self.cubins, self.end = out, cubins, time.monotonic() + seconds
        self.script, self.image_bytes = script, image_bytes
        self.scratch = Path(tempfile.mkdtemp(prefix="modes-"))
        self.pool = ThreadPoolExecutor(12)

    def batch(self, cases: list[dict[str, object]]) -> list[dict[str, object]]:
        """Return one answer per case."""
        blank = {"status": -1, "map": bytes(128), "image": np.zeros(self.image_bytes, np.uint8),
                 "notes": np.zeros(NOTES, np.uint64)}  # fmt: skip
        if time.monotonic() > self.end:
            return [blank | {"fault": "not run: budget"} for _ in cases]
        stem = tempfile.mktemp(dir=self.scratch)
        Path(stem + ".json").write_text(json.dumps(cases))
        command = [sys.executable, self.script, "worker", "--cubins", str(self.cubins), "--job", stem + ".json",
                   "--answer", stem + ".npz"]  # fmt: skip
        error = child_error(command, 60)[-80:]
        if not error:
            with np.load(stem + ".npz") as stored:
                got = dict(stored)
            return [{"status": int(s), "map": m.tobytes(), "image": i, "notes": t, "fault": ""} for s, m, i, t in
                    zip(got["status"], got["maps"], got["images"], got["notes"], strict=True)]  # fmt: skip
        if len(cases) == 1:
            return [blank | {"fault": error}]
        half = len(cases) // 2
        return self.batch(cases[:half]) + self.batch(cases[half:])

    def section(self, name: str, groups: dict[str, list[dict[str, object]]], chunk: int) -> None:
        """Run groups and write one file."""
        jobs = [(group, cases[i : i + chunk]) for group, cases in groups.items() for i in range(0, len(cases), chunk)]
        answers = list(self.pool.map(lambda job: self.batch(job[1]), jobs))
        flat = [(group, case, answer) for (group, cases), got in zip(jobs, answers, strict=True)
                for case, answer in zip(cases, got, strict=True)]  # fmt: skip
        width = max(len(case["params"]) for _, case, _ in flat)
        pad = lambda row, n: [*row, *[-1] * (n - len(row))]  # noqa: E731
        np.savez_compressed(
            self.out / f"{name}.npz",
            group=np.array([g for g, _, _ in flat]), mode=np.array([c["mode"] for _, c, _ in flat]),
            params=np.array([pad(c["params"], width) for _, c, _ in flat], dtype=np.int64),
            coords=np.array([c["coords"] for _, c, _ in flat], dtype=np.int32),
            offsets=np.array([pad(c["offsets"], 3) for _, c, _ in flat], dtype=np.int32),
            expect=np.array([c["expect"] for _, c, _ in flat], dtype=np.int32),
            offset=np.array([c["offset"] for _, c, _ in flat], dtype=np.int32),
            status=np.array([a["status"] for _, _, a in flat], dtype=np.int32),
            fault=np.array([a["fault"] for _, _, a in flat]),
            maps=np.frombuffer(b"".join(a["map"] for _, _, a in flat), dtype=np.uint8).reshape(-1, 128),
            image=np.stack([a["image"] for _, _, a in flat]), notes=np.stack([a["notes"] for _, _, a in flat]),
        )  # fmt: skip
        for group in groups:
            rows = [a for g, _, a in flat if g == group]
            faults = sorted({str(a["fault"]) for a in rows} - {""})
            done = sum(int(a["notes"][4]) for a in rows)
            refused = sum(a["status"] > 0 for a in rows)
            print(f"{name}/{group}: {len(rows)} cases, {refused} refused, {done} completed, "
                  f"{sum(bool(a['fault']) for a in rows)} faults {faults[:3]}", flush=True)  # fmt: skip


def compile_kernels(cubins: Path, make: Callable[[str, int], KernelSource] = kernel) -> None:
    """Write a cubin per mode and rank."""
    for mode in ("tile", "im2col"):
        for rank in (3, 4, 5):
            compile_kernel(make(mode, rank), cubins)


def worker(arguments: argparse.Namespace, run: Callable[..., list[dict[str, object]]], image_bytes: int) -> None:
    """Run one job file in this process."""
    cases = json.loads(Path(arguments.job).read_text())
    answers = run(Cuda(), cases, Path(arguments.cubins))
    np.savez(
        arguments.answer,
        status=np.array([a["status"] for a in answers], dtype=np.int32),
        maps=np.frombuffer(b"".join(a["map"] for a in answers), dtype=np.uint8).reshape(len(cases), 128),
        images=np.stack([a.get("image", np.zeros(image_bytes, np.uint8)) for a in answers]),
        notes=np.stack([a.get("notes", np.zeros(NOTES, np.uint64)) for a in answers]),
    )
