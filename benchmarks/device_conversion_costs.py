"""Measure what the instructions of layout conversions cost on a GPU: cycles a warp, dependent and in streams.

Run on a machine with an sm_90a GPU, from the root of the repository (some ten seconds):

    python3 benchmarks/device_conversion_costs.py --out DIRECTORY

One kernel text holds a kernel for every instruction, way of conflict and number of streams. ``cycles[warps]`` are those
of one instruction of one warp while so many warps of one block execute the same: the difference of a long and a short
loop, median of ``RUNS``. One stream is a chain in which every instruction needs the last (loads: with one addition);
eight streams are independent. Stores go to places of their own, since one that is overwritten may be left out. Writes
``conversion_costs_dev.json``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from layoutalg.codegen import launch  # noqa: E402
from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.codegen.portable import portable_prelude  # noqa: E402

FEW, MANY, RUNS, UNROLL, STREAMS = 8, 72, 3, 16, 8
WARPS = (1, 4, 8)
SMEM_BYTES, SLOT_BYTES = 65536, 2048
BODY = """
extern "C" __global__ void {name}(long long* cycles, la_u32* sink, int turns)
{{
    const la_u32 t = threadIdx.x;
    for (la_u32 byte = 4 * t; byte < {smem}; byte += 128) la_shared_store_b32(byte, 0);
    const la_u32 base = (la_u32)__cvta_generic_to_shared(la_shared());
    la_u32 x[{streams}], y[{streams}];
#pragma unroll
    for (int s = 0; s < {streams}; ++s) {{ x[s] = {first}; y[s] = t ^ s; }}
    const bool asked = (t & 5) == sink[0], other = (t & 3) == sink[1];
    __syncthreads();
    const long long begun = clock64();
    for (int turn = 0; turn < turns; ++turn) {{
{statements}    }}
    __syncthreads();
    const long long took = clock64() - begun;
    la_u32 sum = asked ^ other ^ base;
    for (int s = 0; s < {streams}; ++s) sum ^= x[s] ^ y[s];
    sink[2 + t] = sum;
    if (t == 0) *cycles = took;
}}
"""


@dataclass(frozen=True)
class Case:
    """One kernel: ``made`` statements of ``streams`` streams; how many instructions each holds."""

    name: str
    statement: str
    streams: int
    first: str = "t ^ s"

    @property
    def turns(self) -> int:
        """How often the loop's body holds the statement of every stream."""
        return UNROLL if self.streams == 1 else 4

    @property
    def text(self) -> str:
        """The kernel."""
        lines = [
            "        "
            + self.statement.replace("$", str(stream)).replace("@", str(SLOT_BYTES * (turn * self.streams + stream)))
            + "\n"
            for turn in range(self.turns)
            for stream in range(self.streams)
        ]
        return BODY.format(
            name=self.name, streams=self.streams, first=self.first, statements="".join(lines), smem=SMEM_BYTES
        )


def cases() -> Iterator[Case]:
    """Yield every kernel."""
    plain = {
        "shfl_idx": 'asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, -1;" : "+r"(x[$]) : "r"((t ^ 5) % 32));',
        "shfl_bfly": 'asm volatile("shfl.sync.bfly.b32 %0, %0, 3, 31, -1;" : "+r"(x[$]));',
        "select": 'asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; selp.b32 %0, %0, %1, p;}"'
                  ' : "+r"(x[$]) : "r"(y[$] + $), "r"((la_u32)asked));',
        "permute": 'asm volatile("prmt.b32 %0, %0, %1, 0x5140;" : "+r"(x[$]) : "r"(y[$]));',
    }  # fmt: skip
    for name, statement in plain.items():
        for streams in (1, STREAMS):
            yield Case(f"{name}_s{streams}", statement, streams)
    for words in (1, 2, 4):
        vector = {1: "b32", 2: "v2.b32", 4: "v4.b32"}[words]
        names = ["a", "b", "c", "d"][:words]
        listed = names[0] if words == 1 else f"{{{', '.join(names)}}}"
        for ways in (1, 2, 4):
            first = f"base + t % 32 * {4 * words * ways}u"
            load = (
                f'asm volatile("{{.reg .b32 {", ".join(names)}; ld.shared.{vector} {listed}, [%0]; '
                f'add.u32 %0, %0, {names[-1]};}}" : "+r"(x[$]) :: "memory");'
            )
            values = "%1" if words == 1 else f"{{{', '.join(['%1'] * words)}}}"
            store = f'asm volatile("st.shared.{vector} [%0 + @], {values};" :: "r"(x[$]), "r"(y[$] ^ y[$]) : "memory");'
            for streams in (1, STREAMS):
                yield Case(f"load_b{32 * words}_w{ways}_s{streams}", load, streams, first)
            yield Case(f"store_b{32 * words}_w{ways}_s{STREAMS}", store, STREAMS, first)
    for words in (1, 2, 4):
        names = ["a", "b", "c", "d"][:words]
        for trans in ("", ".trans"):
            for ways in (1, 2):
                first = f"base + t % {8 * words} * {16 * ways}u"
                kind = f"sync.aligned.m8n8.x{words}{trans}.shared.b16"
                load = (
                    f'asm volatile("{{.reg .b32 {", ".join(names)}; ldmatrix.{kind} {{{", ".join(names)}}}, [%0]; '
                    f'add.u32 %0, %0, {names[-1]};}}" : "+r"(x[$]) :: "memory");'
                )
                values = ", ".join(["%1"] * words)
                store = (
                    f'asm volatile("stmatrix.{kind} [%0], {{{values}}};" :: "r"(x[$]), "r"(y[$] ^ y[$]) : "memory");'
                )
                end = f"x{words}{trans.replace('.', '_')}_w{ways}"
                for streams in (1, STREAMS):
                    yield Case(f"ldmatrix_{end}_s{streams}", load, streams, first)
                yield Case(f"stmatrix_{end}_s{STREAMS}", store, STREAMS, first)
    yield Case("barrier_s1", "__syncthreads();", 1)
    yield Case("warp_barrier_s1", "__syncwarp();", 1)
    for wait in ("__syncthreads();", "__syncwarp();"):
        around = (
            'asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" :: "r"(x[$] ^ 64u), "r"(y[$] ^ y[$]) : "memory"); '
            + wait
            + ' asm volatile("{.reg .b32 a, b, c, d; ld.shared.v4.b32 {a, b, c, d}, [%0]; add.u32 %0, %0, a;}"'
            ' : "+r"(x[$]) :: "memory"); ' + wait
        )
        name = "block" if "threads" in wait else "warp"
        yield Case(f"round_trip_{name}_s1", around, 1, "base + t * 16u")


def main() -> None:
    """Compile one text, run every kernel."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=22, help="no kernel starts after them")
    given = parser.parse_args()
    begun = time.monotonic()
    every = list(cases())
    text = portable_prelude("sm_90a") + "".join(case.text for case in every)
    rows: list[dict[str, Any]] = []
    for case in every:
        row: dict[str, Any] = {"name": case.name, "streams": case.streams, "cycles": {}}
        for warps in WARPS:
            if time.monotonic() - begun > given.seconds:
                row["error"] = "not begun: out of time"
                break
            kernel = KernelSource(
                case.name, text, "sm_90a", 32 * warps, SMEM_BYTES,
                (("long long*", "cycles"), ("la_u32*", "sink"), ("int", "turns")),
            )  # fmt: skip
            try:
                found = [once(kernel, MANY) - once(kernel, FEW) for _ in range(RUNS)]
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"[:300]
                break
            done = (MANY - FEW) * case.turns * case.streams
            row["cycles"][warps] = round(statistics.median(found) / done, 3)
        rows.append(row)
    summary = {
        "date": datetime.date.today().isoformat(), "device": str(launch.device()), "few": FEW, "many": MANY,
        "unroll": UNROLL, "runs": RUNS, "kernels": len(rows), "errors": sum("error" in row for row in rows),
        "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "conversion_costs_dev.json").write_text(json.dumps({"summary": summary, "rows": rows}, indent=0))
    print(json.dumps(summary, indent=1))
    for row in rows:
        print(row["name"], row["cycles"], row.get("error", ""))


def once(kernel: KernelSource, turns: int) -> int:
    """Return the cycles of one launch."""
    cycles, sink = np.zeros(1, dtype=np.int64), np.zeros(2 + kernel.threads, dtype=np.uint32)
    launch.run(kernel, [cycles, sink, turns])
    return int(cycles[0])


if __name__ == "__main__":
    main()
