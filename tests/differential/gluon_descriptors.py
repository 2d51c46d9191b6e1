"""Run Gluon texts: a JSON list of [dtype, text] on standard input, the descriptors' fields on standard output.

Run with an interpreter that has triton (3.9.0 was used); no device and no torch is needed.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "uint8": "u8", "int32": "i32", "uint16": "u16"}
SHORT |= {"uint32": "u32"}
found = []
for dtype, text in json.load(sys.stdin):
    kind = type("dtype", (), {"is_floating_point": "float" in dtype, "__str__": lambda _, name=SHORT[dtype]: name})()
    base = SimpleNamespace(dtype=kind, data_ptr=lambda: 4096)
    scope = {"gl": gl, "TensorDescriptor": TensorDescriptor, "base": base}
    try:
        exec(text, scope)
        made = scope["descriptor"]
        found.append([made.shape, made.strides, made.block_shape, made.padding, made.layout.swizzle_byte_width])
    except Exception as error:
        found.append(repr(error))
print(json.dumps(found))
