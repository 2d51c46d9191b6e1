"""The 128 bytes of a TensorMap."""

from __future__ import annotations

from functools import partial

from fuzz.drive import contract

from layoutalg.targets.nvidia import tensormap

BINARY = True
SEEDS = [
    tensormap.encode(
        tensormap.TensorMap(
            dtype=dtype,
            dims=(512, 1024),
            strides_bytes=(4096,),
            box=(16, 64),
            element_strides=(1, 1),
            interleave="NONE",
            swizzle=swizzle,
            l2_promotion="128B",
            oob_fill="ZERO",
            base_address=4096,
        )
    )
    for dtype, swizzle in (("bf16", "32B"), ("f32", "NONE"), ("u8", "128B"), ("f64", "128B"))
]


def target(data: bytes) -> None:
    for name in ("sm_90a", "sm_100a"):
        contract(partial(tensormap.decode, target=name), partial(tensormap.encode, target=name), data)
