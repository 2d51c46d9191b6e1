"""Triton's conversions between two layouts of registers, which ``device_registers`` times beside its own.

The loop with a clock is that of ``instruments.conversion_loop``: every turn changes all words before and between the
two conversions; the statement that does so takes whole words, so that elements come and go packed as ours do. Cycles
are those of one thread's clock around the loop.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

FEW, MANY, RUNS = 64, 2112, 5


@gluon.jit
def clock():
    """The multiprocessor's clock."""
    return gl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=gl.int64, is_pure=False, pack=1)


@gluon.jit
def stirred(values, pack: gl.constexpr):
    """All words changed, by something that nothing may be moved across."""
    return gl.inline_asm_elementwise(
        "xor.b32 $0, $1, 0x5a5a5a5a;", "=r,r", [values], dtype=values.dtype, is_pure=False, pack=pack
    )


@gluon.jit
def there_and_back(
    source,
    target,
    cycles,
    turns,
    size: gl.constexpr,
    first: gl.constexpr,
    second: gl.constexpr,
    pairs: gl.constexpr,
    pack: gl.constexpr,
):
    """Convert as often as is said, and store."""
    at = gl.arange(0, size, layout=first)
    values = gl.load(source + at)
    begun = clock()
    for _ in range(turns):
        for _ in gl.static_range(pairs):
            other = stirred(gl.convert_layout(stirred(values, pack), second), pack)
            values = gl.convert_layout(other, first)
    took = clock() - begun
    gl.store(target + at, values)
    gl.store(cycles, took)


def layout(bases: list[list[int]], size: int) -> Any:
    """The layout whose register, lane and warp bits go to these elements."""
    registers, lanes, warps = ([[column] for column in columns] for columns in bases)
    return gl.DistributedLinearLayout(registers, lanes, warps, [], [size])


def arguments(case: dict[str, Any], pairs: int) -> dict[str, Any]:
    """The constants of the loop's kernel."""
    first, second = (layout(case[end], case["size"]) for end in ("source", "destination"))
    return {"size": case["size"], "first": first, "second": second, "pairs": pairs, "pack": 32 // case["bits"]}


def build(case: dict[str, Any], every: tuple[int, ...]) -> None:
    """Compile the kernels of a case into Triton's cache, for aligned arrays and turns that are a multiple of 16.

    Args:
        case: The pair of layouts.
        every: Conversions there and back in a turn, of each kernel.
    """
    kind = {8: torch.int8, 16: torch.int16, 32: torch.int32}[case["bits"]]
    for pairs in every:
        there_and_back.warmup(kind, kind, torch.int64, 32, **arguments(case, pairs), num_warps=case["warps"], grid=(1,))


def launch(case: dict[str, Any], pairs: int, source: Any, target: Any, cycles: Any, turns: int) -> Any:
    """Run the loop."""
    return there_and_back[(1,)](source, target, cycles, turns, **arguments(case, pairs), num_warps=case["warps"])


@gluon.jit
def in_turns(
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


def factor_time(case: tuple[str, dict[str, int], tuple[int, ...]]) -> dict[str, Any]:
    """Nanoseconds of one conversion from the identity on (register, lane, warp) to a residual, the mean of both ways.

    The loop converts there and back, with an operation between so that conversions are not joined; the same loop
    without conversions is taken off.
    """
    dtype, axes, columns = case
    registers, warps, size = axes["register"], axes["warp"], 1 << len(columns)
    ends = ([1 << bit for bit in range(len(columns))], list(columns))
    first, second = (
        layout([each[:registers], each[registers : registers + 5], each[registers + 5 :]], size) for each in ends
    )
    kind = {"u8": torch.int8, "bf16": torch.int16, "f32": torch.int32}[dtype]
    values = torch.randint(-100, 100, (size,), dtype=kind, device="cuda")

    def once(repeats: int, converts: bool) -> tuple[float, Any]:
        found = torch.empty_like(values)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        in_turns[(1,)](values, found, repeats, size, first, second, converts, num_warps=1 << warps)
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
    return {"ns": round(moved / (2 * (MANY - FEW)), 2), "equal": same, "version": triton.__version__}
