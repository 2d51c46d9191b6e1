"""Read shape, strides and type of other libraries' arrays: numpy, torch, CuPy, JAX and anything with DLPack.

No library is imported and no element is read. Torch tensors are read through their methods,
``__cuda_array_interface__`` and ``__array_interface__`` are dictionaries, and a DLPack capsule is a C structure that is
read without consuming it, so its owner still frees it.

References: DLPack 1.0 ``DLManagedTensor``; CUDA array interface version 3; NumPy array interface version 3.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from layoutalg.ground.check import Checker

_CHECK = Checker("LA375", "invalid tensor")
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_DLPACK_FLOAT8 = range(7, 15)
_CUDA = 2


class Description(NamedTuple):
    """Shape and strides in elements, outermost first; the library's name for the type; the address, 0 if unknown."""

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: object
    address: int = 0


def described(value: Any) -> Description | None:
    """Return the description of an array; None if the value has none.

    Example:
        >>> described(np.zeros((4, 6), np.float16)[::2]).stride
        (12, 1)
        >>> described("text") is None
        True
    """
    if callable(getattr(value, "stride", None)) and hasattr(value, "shape") and hasattr(value, "dtype"):
        with contextlib.suppress(TypeError):  # what is no tensor may have these names for other things
            return Description(tuple(value.shape), tuple(value.stride()), value.dtype, _pointer(value))
    for protocol in ("__cuda_array_interface__", "__array_interface__"):
        found = getattr(value, protocol, None)
        if isinstance(found, Mapping):
            return _interface(found, getattr(value, "dtype", None))
    if hasattr(value, "__dlpack__"):
        return _dlpack(value)
    return None


def _pointer(value: Any) -> int:
    try:
        return int(value.data_ptr())
    except Exception:  # tensors without storage raise various errors
        return 0


def _interface(found: Mapping[str, Any], dtype: object) -> Description:
    """Read an array interface; ``dtype`` is the array's own, for types that the interface cannot name."""
    exact = np.dtype(found["typestr"])
    shape = tuple(found["shape"])
    data = found.get("data")
    address = data[0] if isinstance(data, tuple) else 0
    strides = found.get("strides")
    if strides is not None:
        for place, step in enumerate(strides):
            if step % exact.itemsize:
                rule = f"must be a multiple of the element's {exact.itemsize} bytes"
                raise _CHECK.malformed(f"strides[{place}]", rule, f"{step} bytes")
        strides = tuple(step // exact.itemsize for step in strides)
    return Description(shape, strides, exact if dtype is None or exact.kind != "V" else dtype, int(address))


class _Tensor(ctypes.Structure):
    """``DLTensor``, the first member of ``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _dlpack(value: Any) -> Description:
    """Read a DLPack capsule; it is not renamed, so its destructor still frees it."""
    try:
        device = getattr(value, "__dlpack_device__", lambda: (1, 0))()
        capsule = value.__dlpack__(stream=-1) if device[0] == _CUDA else value.__dlpack__()  # -1: do not synchronise
        pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        pointer = pointer_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dltensor")
    except Exception as error:
        raise _CHECK.malformed("tensor", "must export a DLPack capsule", f"{type(error).__name__}: {error}") from None
    tensor = ctypes.cast(pointer, ctypes.POINTER(_Tensor)).contents
    kind = "float8_e4m3fn" if tensor.code in _DLPACK_FLOAT8 and tensor.bits == 8 else _DLPACK_KINDS.get(tensor.code)
    name = kind if kind is None or kind.startswith(("float8", "bool")) else f"{kind}{tensor.bits}"
    if name is None or tensor.lanes != 1:
        raise _CHECK.malformed("dtype", "must be a scalar DLPack type", (tensor.code, tensor.bits, tensor.lanes))
    shape = tuple(tensor.shape[place] for place in range(tensor.ndim))
    stride = tuple(tensor.strides[place] for place in range(tensor.ndim)) if tensor.strides else None
    return Description(shape, stride, name, (tensor.data or 0) + tensor.byte_offset)
