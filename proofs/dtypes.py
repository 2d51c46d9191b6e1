"""Element types by the names that other libraries give them.

Main definitions: ``dtype_name``.

Implementation notes: an engine that copies bytes has no signed 8- and 16-bit types and no 8-bit floats; they travel as
unsigned integers of their width, as in CUTLASS. ``float``, ``int`` and ``long`` mean different widths to different
libraries and are refused.
"""

from __future__ import annotations

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import shown
from layoutalg.targets.nvidia.tensormap import PLAIN_DTYPES

_CHECK = Checker("LA375", "this is not a tensor")
_SPELT = {
    "u8": "uint8 int8 s8 i8 byte bool float8e4m3fn float8e4m3 float8e5m2 float8e4m3fnuz float8e5m2fnuz "
    "float8e4m3b11fnuz float8e8m0fnu float8e8m0 floate4m3 floate5m2 floatue8m0 fp8e4nv fp8e5 fp8e4b8 fp8e5b16 fp8e4b15 "
    "e4m3 e5m2",
    "u16": "uint16 int16 s16 i16 short",
    "u32": "uint32",
    "s32": "int32 i32",
    "u64": "uint64",
    "s64": "int64 i64",
    "f16": "float16 half fp16",
    "bf16": "bfloat16",
    "f32": "float32 fp32",
    "f64": "float64 double fp64",
    "tf32": "tfloat32",
}
_NAMES = {name: name for name in PLAIN_DTYPES} | {
    other: name for name, text in _SPELT.items() for other in text.split()
}


def dtype_name(value: object) -> str:
    """Return the TensorMap name of an element type.

    Args:
        value: A name or a type object of numpy, torch, ml_dtypes, CuTe (``Float16``, ``cutlass::half_t``) or Triton
            (``fp16``, ``tl.bfloat16``).

    Raises: MalformedError: LA375.

    Example:
        >>> [dtype_name(name) for name in ("bf16", "torch.float16", "BFloat16", "cutlass::half_t", np.int32, "fp8e4nv")]
        ['bf16', 'f16', 'bf16', 'f16', 's32', 'u8']
    """
    name = _spelling(value)
    if name in PLAIN_DTYPES:
        return name
    short = name.replace("::", ".").rpartition(".")[2].lower().removesuffix("_t").replace("_", "")
    if short not in _NAMES:
        rule = f"must be one of {', '.join(PLAIN_DTYPES)}, or another library's name of one of these"
        raise _CHECK.malformed("dtype", rule, value)
    return _NAMES[short]


def _spelling(value: object) -> str:
    """Return the name of a type, however it is given."""
    if isinstance(value, str):
        return value[:80]
    if isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, (np.generic, int, float, complex))
    ):
        exact = np.dtype(value)
        return exact.name if exact.isnative else f"{exact.name} in foreign byte order"
    for attribute in ("name", "__name__"):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return name[:80]
    return shown(value, 80)
