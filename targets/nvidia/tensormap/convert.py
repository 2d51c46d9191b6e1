"""What a copy does to the bits of an element: fill, tf32 rounding, flush to zero.

Implementation notes: loads were measured on all kinds of values. Stores of NaN and infinities of the types that loads
convert were not, and are refused.

References: measurements on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, TargetRuleError
from layoutalg.targets.nvidia.tensormap.facts import element_bytes
from layoutalg.targets.nvidia.tensormap.fields import (
    CONVERTING_DTYPES,
    FLOAT_DTYPES,
    OOB_FILL_CODES,
    PLAIN_DTYPES,
    checked_name,
    malformed,
)

_NAN_HALF_WORD = b"\xf7\x7f"
_WORD = np.dtype("<u4")
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_INFINITY = np.uint32(0x7F800000)
_TF32_NAN = np.uint32(0x7FFFE000)


def fill_bytes(dtype: str, oob_fill: str) -> bytes:
    """Return the bytes of one out-of-bounds element.

    Mathematically: zeros, or the half-word 0x7FF7 repeated, whatever the element type; never rounded to tf32.

    Args:
        dtype: A name of ``PLAIN_DTYPES``.
        oob_fill: ``"ZERO"`` or ``"NAN"``.

    Example:
        >>> fill_bytes("f32", "NAN").hex()
        'f77ff77f'
    """
    size = element_bytes(dtype)
    if checked_name("oob_fill", oob_fill, OOB_FILL_CODES) == "ZERO":
        return bytes(size)
    if dtype not in FLOAT_DTYPES:
        raise malformed("LA301", f"oob_fill 'NAN' does not go with dtype {dtype!r}", "NaN fill needs a float type")
    return _NAN_HALF_WORD * (size // 2)


def load_convert(dtype: str, values: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the bytes that arrive in shared memory for elements inside the tensor.

    Mathematically: the identity, except for tf32 and tf32_ftz: round to nearest, ties to even, dropping 13 bits,
    denormals included, overflow becoming infinity; every NaN becomes 0x7FFFE000. No type flushes denormals, not even
    the ``_ftz`` ones.

    Args:
        dtype: A name of ``PLAIN_DTYPES``.
        values: uint8, any shape; the last axis holds whole elements, little endian.

    Example:
        >>> load_convert("tf32", np.array([0x40000FFF], "<u4").view(np.uint8)).view("<u4").tolist() == [0x40000000]
        True
    """
    size = element_bytes(checked_name("dtype", dtype, dict.fromkeys(PLAIN_DTYPES)))
    if not isinstance(values, np.ndarray) or values.dtype != np.uint8 or values.ndim == 0 or values.shape[-1] % size:
        raise malformed("LA327", "values are not a uint8 array of whole elements", f"an element has {size} bytes")
    if dtype not in ("tf32", "tf32_ftz"):
        return values
    words = np.ascontiguousarray(values).view(_WORD)
    nan = words & _MAGNITUDE > _INFINITY
    odd = (words >> np.uint32(13)) & np.uint32(1)
    rounded = (words + (np.uint32(0xFFF) + odd)) & np.uint32(0xFFFFE000)
    return np.where(nan, _TF32_NAN, rounded).astype(_WORD, copy=False).view(np.uint8)


def require_storable(dtype: str, values: npt.NDArray[np.uint8]) -> None:
    """Raise LA325 for NaN and infinities of converting types: their stores were not measured."""
    if dtype not in CONVERTING_DTYPES:
        return
    words = values.view(_WORD)
    unknown = words & _MAGNITUDE >= _INFINITY
    if unknown.any():
        because = f"the word {int(words[unknown][0]):#010x} is NaN or infinite"
        raise refused("LA325", f"how a store of {dtype} treats this value was not measured", because, "VALUE_MODEL")


def refused(code: str, what: str, because: str, rule: str, where: tuple[str, ...] = ()) -> TargetRuleError:
    """Return the error for a copy that breaks a rule or whose outcome is unknown."""
    return TargetRuleError(Diagnostic(code, what, where, because, source="rule " + rule), rule)
