"""Time Triton's conversions between layouts of registers: a JSON list of cases on standard input, a line for each.

Run by ``device_factor.py``. The source layout is the identity on (register, lane, warp), the target the case's
residual. The loop converts there and back, with an operation between so that conversions are not joined; the same
loop without conversions is taken off. One block; nanoseconds of one conversion, the mean of both directions.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

FEW, MANY, RUNS = 64, 2112, 5
TYPES = {"u8": torch.int8, "bf16": torch.int16, "f32": torch.int32}


@gluon.jit
def there_and_back(
    source, target, repeats, size: gl.constexpr, first: gl.constexpr, second: gl.constexpr, converts: gl.constexpr
):
    """Convert as often as is said, and store."""
    at = gl.arange(0, size, layout=first)
    values = gl.load(source + at)
    for turn in range(repeats):
        low = turn.to(values.dtype)
        if converts:
            other = gl.convert_layout(values, second)
            values = gl.convert_layout(other ^ low, first) + low
        else:
            values = (values ^ low) + low
    gl.store(target + at, values)


def layout(columns: list[int], registers: int) -> Any:
    """The layout of registers whose bits go to these tensor bits."""
    size = 1 << len(columns)
    bases = [[column] for column in columns]
    return gl.DistributedLinearLayout(
        bases[:registers], bases[registers : registers + 5], bases[registers + 5 :], [], [size]
    )


def nanoseconds(case: dict[str, Any]) -> tuple[float, bool]:
    """The time of one conversion, and whether the values came through."""
    columns, registers, warps = case["columns"], case["registers"], case["warps"]
    size = 1 << len(columns)
    first, second = (layout(bits, registers) for bits in ([1 << b for b in range(len(columns))], columns))
    values = torch.randint(-100, 100, (size,), dtype=TYPES[case["dtype"]], device="cuda")

    def once(repeats: int, converts: bool) -> tuple[float, Any]:
        found = torch.empty_like(values)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        there_and_back[(1,)](values, found, repeats, size, first, second, converts, num_warps=1 << warps)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e6, found

    same = bool(torch.equal(once(37, True)[1], once(37, False)[1]))
    took = {}
    for converts in (True, False):
        for repeats in (FEW, MANY):
            once(repeats, converts)
            took[converts, repeats] = statistics.median(once(repeats, converts)[0] for _ in range(RUNS))
    moved = (took[True, MANY] - took[True, FEW]) - (took[False, MANY] - took[False, FEW])
    return moved / (2 * (MANY - FEW)), same


def main() -> None:
    """Answer every case, whatever happens to the others."""
    for case in json.load(sys.stdin):
        row: dict[str, Any] = {"case": case["case"], "version": triton.__version__}
        try:
            took, same = nanoseconds(case)
            row |= {"ns": round(took, 2), "equal": same}
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
