"""Triton's conversion between two layouts of registers, there and back in a loop; ``device_conversions.py`` times it.

The loop is that of ``instruments.conversion_loop``: every turn changes all words before and between the two
conversions; the statement that does so takes whole words, so that elements come and go packed as ours do. Cycles are
those of one thread's clock around the loop.
"""

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


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
    import torch

    kind = {8: torch.int8, 16: torch.int16, 32: torch.int32}[case["bits"]]
    for pairs in every:
        there_and_back.warmup(kind, kind, torch.int64, 32, **arguments(case, pairs), num_warps=case["warps"], grid=(1,))


def launch(case: dict[str, Any], pairs: int, source: Any, target: Any, cycles: Any, turns: int) -> Any:
    """Run the loop."""
    return there_and_back[(1,)](source, target, cycles, turns, **arguments(case, pairs), num_warps=case["warps"])
