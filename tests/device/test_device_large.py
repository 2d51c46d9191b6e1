"""Arrays of more than 2^32 elements on a real GPU: every kernel that moves arrays reaches their ends, exactly."""

from __future__ import annotations

from typing import Any

import pytest

from layoutalg.codegen import launch
from layoutalg.codegen.kernels import (
    ArrayKernel,
    copy_kernel,
    gather_kernel,
    transpose_kernel,
    transpose_ring_kernel,
    transpose_windows_kernel,
)

pytestmark = pytest.mark.device("sm_90a")

SHAPE, ROWS, SPARE_BYTES = (66000, 66048), 4096, 28 << 30
MAKERS = {
    "copy by the engine": lambda: copy_kernel(SHAPE, "u8", way="tma"),
    "copy by vectors": lambda: copy_kernel(SHAPE, "u8", way="vector"),
    "transpose": lambda: transpose_kernel(SHAPE, "u8"),
    "transpose by the engine": lambda: transpose_ring_kernel(SHAPE, "u8"),
    "transpose by windows": lambda: transpose_windows_kernel(SHAPE, "u8"),
}


def on_a_large_device() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or torch.cuda.mem_get_info()[0] < SPARE_BYTES:
        pytest.skip("needs torch with a GPU of 28 GiB free")
    return torch


def ran(made: ArrayKernel, source: Any, into: Any, index: Any = None) -> None:
    blocks = min(made.blocks, 264) if made.persistent else made.blocks
    places = [launch.from_dlpack(each) for each in (source, into)]
    given = {} if index is None else {"index": launch.from_dlpack(index)}
    launch.run(made.kernel, made.arguments(*places, blocks=blocks, **given), blocks=blocks)


@pytest.mark.parametrize("name", MAKERS)
def test_copies_and_transposes(name: str) -> None:
    torch = on_a_large_device()
    source = torch.randint(0, 256, SHAPE, dtype=torch.uint8, device="cuda")
    turned = name.startswith("transpose")
    into = torch.zeros(SHAPE[::-1] if turned else SHAPE, dtype=torch.uint8, device="cuda")
    ran(MAKERS[name](), source, into)
    wanted = source.t() if turned else source
    assert all(torch.equal(into[row : row + ROWS], wanted[row : row + ROWS]) for row in range(0, len(into), ROWS))


@pytest.mark.parametrize("axis", [0, 1])
def test_gathers(axis: int) -> None:
    torch = on_a_large_device()
    source = torch.randint(0, 256, SHAPE, dtype=torch.uint8, device="cuda")
    index = torch.randint(0, SHAPE[axis], SHAPE, dtype=torch.int32, device="cuda")
    into = torch.zeros(SHAPE, dtype=torch.uint8, device="cuda")
    ran(gather_kernel(SHAPE, axis, SHAPE[axis], "u8"), source, into, index)
    for row in range(0, len(into), ROWS):
        some = slice(row, row + ROWS)
        wanted = torch.gather(source if axis == 0 else source[some], axis, index[some].long())
        assert torch.equal(into[some], wanted)
