"""Programs written by hand for ops that no kernel of the library uses: cp.async, named barriers, restarted counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.codegen import hostsim
from layoutalg.codegen.host_report import Report
from layoutalg.codegen.pipeline import Emitted, Loop, Program, Worker
from layoutalg.proofs.pipeline.document import Pipeline

ROWS, WORDS = 16, 64
"""Rows of a bag, and words of a row."""


def gather_document(stages: int, threads: int, readers: int, groups: bool = False) -> dict[str, Any]:
    """Threads copy rows into a ring; readers add them up. With ``groups`` they wait for their copies themselves."""
    copied: list[dict[str, Any]] = [{"op": "wait", "bar": "empty", "ph": -1}, {"op": "cp_async", "buf": "R"}]
    arrive = {"op": "arrive", "bar": "full", "n": threads, "off": -1}
    if groups:
        loop = [*copied, {"op": "cp_async_commit"}, {"op": "cp_async_wait", "n": 1}, arrive]
        post = [{"op": "cp_async_wait", "n": 0}, arrive]
    else:
        loop, post = [*copied, {"op": "cp_async_arrive", "bar": "full", "n": threads}], []
    read = [{"op": "wait", "bar": "full"}, {"op": "read", "buf": "R"}, {"op": "arrive", "bar": "empty", "n": readers}]
    return {
        "schema": "layoutalg/pipeline/1", "stages": stages, "buffers": {"R": {"bytes": 4 * ROWS * WORDS}},
        "barriers": {"full": {"count": threads}, "empty": {"count": readers}},
        "roles": [{"name": "gather", "loop": loop, "post": post}, {"name": "add", "loop": read}],
    }  # fmt: skip


GATHER = """\
for (la_u32 part = t; part < {parts}; part += {threads}) {{
    const la_u32 row = part / {chunks}, place = part % {chunks};
    const int each = k * {rows} + (int)row;
    const la_u32* from = table + {words} * (each < many ? index[each] : 0) + {step} * place;
    la_cp_async_fill_{bytes}($R + {bytes} * part, from, each < many ? {bytes} : 0);
}}"""
ADD = """\
for (la_u32 column = t; column < {words}; column += {threads}) {{
    la_u32 sum = 0;
    for (la_u32 row = 0; row < {rows}; ++row)
        sum = 3 * sum + la_shared_load_b32($R_byte + 4 * ({words} * row + column));
    bags[{words} * k + column] = sum;
}}"""


def gather(stages: int = 3, warps: tuple[int, int] = (2, 2), width: int = 16, groups: bool = False) -> Program:
    """Bags of rows of a table, picked by an index, the last one padded with zeros."""
    threads = 32 * warps[0]
    copy = GATHER.format(
        parts=4 * ROWS * WORDS // width, threads=threads, chunks=4 * WORDS // width, rows=ROWS, bytes=width,
        words=WORDS, step=width // 4,
    )  # fmt: skip
    add = ADD.format(words=WORDS, threads=32 * warps[1], rows=ROWS)
    return Program(
        Pipeline.from_json(gather_document(stages, threads, warps[1], groups)),
        (
            Worker((Loop("gather", (("loop[1]", copy),)),), warps[0]),
            Worker((Loop("add", (("loop[1]", add),)),), warps[1]),
        ),
        (("const la_u32*", "table"), ("const int*", "index"), ("la_u32*", "bags"), ("int", "many")),
        f"(many + {ROWS - 1}) / {ROWS}",
    )


def gathered(table: npt.NDArray[np.uint32], index: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    """What the kernel has to give."""
    bags = -(-len(index) // ROWS)
    rows = np.zeros((bags * ROWS, WORDS), dtype=np.uint32)
    rows[: len(index)] = table[index]
    sums = np.zeros((bags, WORDS), dtype=np.uint32)
    for row in range(ROWS):
        sums = np.uint32(3) * sums + rows.reshape(bags, ROWS, WORDS)[:, row]
    return sums


def gather_case(many: int, seed: int = 5) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """A table and an index of its rows."""
    rng = np.random.default_rng(seed)
    room = rng.integers(0, 1 << 32, 40 * WORDS + 4, dtype=np.uint32)
    table = room[-room.ctypes.data % 16 // 4 :][: 40 * WORDS].reshape(40, WORDS)
    return table, rng.integers(0, 40, many).astype(np.int32)


def run_gather(made: Emitted, many: int, seed: int) -> tuple[Report, str, bool]:
    """Run on the CPU: what it reports, which wait gave up, whether all bits are right."""
    table, index = gather_case(many)
    wanted = gathered(table, index)
    bags, status = np.zeros_like(wanted), np.zeros(1, dtype=np.int32)
    report = hostsim.examine(made.kernel, [table, index, bags, many, status], seed=seed)
    return report, made.gave_up(int(status[0])), bool((bags == wanted).all())
