"""The 64 bits of a wgmma matrix descriptor."""

from __future__ import annotations

from fuzz.drive import contract

from layoutalg.targets.nvidia import wgmma

BINARY = True
SEEDS = [
    wgmma.MatrixDescriptor(
        start_address_bytes=start, leading_bytes=leading, stride_bytes=1024, base_offset=offset, swizzle=swizzle
    )
    .encode()
    .to_bytes(8, "little")
    for start, leading, offset, swizzle in ((0, 128, 0, "128B"), (1024, 16, 0, "NONE"), (512, 256, 1, "64B"))
]


def target(data: bytes) -> None:
    for number in (int.from_bytes(data, "little"), int.from_bytes(data[:8], "little", signed=True)):
        contract(wgmma.decode, wgmma.MatrixDescriptor.encode, number)
