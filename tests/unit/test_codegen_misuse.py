"""Wrong arguments of the code generator: a named error of the library, never another exception, never an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from instruments.fragments import matrix_move_kernel, mma_kernel
from instruments.runner import runner_kernel

from layoutalg import codegen
from layoutalg.codegen import hostsim, launch
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.plans import origin_arguments
from layoutalg.codegen.prelude import wgmma_prelude
from layoutalg.ground.errors import LayoutError
from layoutalg.synth.tensormap import synthesize_tensormap

PLAN = synthesize_tensormap(
    {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [64, 64], "stride": [64, 1], "dtype": "u8", "base_align_bytes": 256},
        "tile": [16, 32], "smem": {"modes": [[[16, 32]], [[32, 1]]], "swizzle": "32B"},
    }
)  # fmt: skip
KERNEL = codegen.load_kernel(PLAN)
MEMORY = np.zeros(4096, dtype=np.uint8)
JUNK = [None, "text", 3, -1, 2**70, 1.5, True, float("nan"), [], [1, "x"], {}, b"bytes", object(), {1, 2}, (0, 0)]
ZERO = (0, 0)
CALLS: dict[str, Callable[[Any], object]] = {
    "load_kernel": codegen.load_kernel,
    "store_kernel": codegen.store_kernel,
    "validate": codegen.validate,
    "validate origins": lambda x: codegen.validate(PLAN, [x], device="simulator"),
    "validate device": lambda x: codegen.validate(PLAN, device=x),
    "default_origins": codegen.default_origins,
    "shared_image": lambda x: codegen.shared_image(x, MEMORY, ZERO),
    "shared_image memory": lambda x: codegen.shared_image(PLAN, x, ZERO),
    "shared_image origin": lambda x: codegen.shared_image(PLAN, MEMORY, x),
    "store_memory": lambda x: codegen.store_memory(x, MEMORY, MEMORY, ZERO),
    "to_cubin": lambda x: codegen.to_cubin(x, "sm_90a"),
    "to_cubin arch": lambda x: codegen.to_cubin(KERNEL, x),
    "runner_kernel": lambda x: runner_kernel(x, "load"),
    "runner_kernel direction": lambda x: runner_kernel(2, x),
    "place_map": lambda x: codegen.place_map(x, 0),
    "place_map address": lambda x: codegen.place_map(PLAN.raw, x),
    "origin_arguments": lambda x: origin_arguments(PLAN, x),
    "wgmma_tiles": codegen.wgmma_tiles,
    "product_kernel": lambda x: codegen.product_kernel(x, x),
    "validate_product": lambda x: codegen.validate_product(x, x),
    "Operand": lambda x: codegen.Operand(PLAN, x, x),
    "WgmmaTiles": lambda x: codegen.WgmmaTiles(x, 0, 64),
    "KernelSource": lambda x: KernelSource(x, "", "sm_90a", 32, 0, ()),
    "KernelSource text": lambda x: KernelSource("nothing", x, "sm_90a", 32, 0, ()),
    "from_dlpack": launch.from_dlpack,
    "upload": launch.upload,
    "wgmma_prelude": lambda x: wgmma_prelude("f16", x),
    "mma_kernel": mma_kernel,
    "matrix_move_kernel": lambda x: matrix_move_kernel("ldmatrix", x),
    "hostsim.run": lambda x: hostsim.run(KERNEL, x),
    "launch.run": lambda x: launch.run(KERNEL, x),
}
RIGHT: dict[str, tuple[object, ...]] = {
    "validate origins": (ZERO,), "shared_image origin": (ZERO,), "origin_arguments": (ZERO,), "to_cubin arch": (None,),
    "runner_kernel": (3,), "place_map address": (3, -1), "KernelSource": ("text",), "KernelSource text": ("text",),
}  # fmt: skip
"""Values that are no mistake there."""


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_named(name: str) -> None:
    for value in JUNK:
        if value not in RIGHT.get(name, ()):
            with pytest.raises(LayoutError):
                print(f"{name}({value!r}) answered", CALLS[name](value))
