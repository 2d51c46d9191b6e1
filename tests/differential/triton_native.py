"""The layout functions of Triton's compiled library that have no Python name, called by their symbols.

Used by ``triton_families.py``, in its child processes: a wrong call ends the process. Only for the 3.9.0 wheel on
x86-64 Linux, whose symbols and calling convention these are.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

GPU = "N4mlir6triton3gpu"
POINTER, INT, UINT = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
# a nanobind object: 16 bytes of header, 8 of offset and flags, then the value or a pointer to it
VALUE = 24


class ArrayRef(ctypes.Structure):
    """``llvm::ArrayRef``: passed as one value, which decides where the arguments after it go."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Native:
    """Triton's library and one context."""

    def __init__(self, context: Any) -> None:
        from triton._C import libtriton

        self.library = ctypes.CDLL(libtriton.__file__)
        self.context = self._value(context)
        self._kept: list[Any] = []

    def _value(self, wrapped: Any) -> int:
        """Return the pointer that a wrapped context or attribute holds."""
        return ctypes.c_uint64.from_address(id(wrapped) + VALUE).value

    def _call(self, symbol: str, *arguments: Any, returns: Any = None) -> Any:
        function = getattr(self.library, symbol)
        function.restype, function.argtypes = returns, [type(argument) for argument in arguments]
        return function(*arguments)

    def _array(self, values: Any, kind: Any) -> ArrayRef:
        """Return the values as an array reference; their storage lives as long as this object."""
        storage = (kind * max(1, len(values)))(*values)
        self._kept.append(storage)
        return ArrayRef(ctypes.addressof(storage), len(values))

    def _layout(self, symbol: str, *arguments: Any) -> dict[str, list[list[int]]]:
        """Call a function that returns a layout; return its bases, read from the library's own text."""
        layout, text = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(64)
        self._call(symbol, POINTER(ctypes.addressof(layout)), *arguments)
        shown = "_ZNK4mlir6triton12LinearLayout8toStringB5cxx11Ev"
        self._call(shown, POINTER(ctypes.addressof(text)), POINTER(ctypes.addressof(layout)))
        start, length = (ctypes.c_uint64.from_buffer(text, offset).value for offset in (0, 8))
        return bases_of(ctypes.string_at(start, length).decode())

    def cluster(self, swizzled: Any) -> POINTER:
        """Return the cluster attribute of a swizzled shared encoding."""
        value = ctypes.c_uint64(self._value(swizzled))
        symbol = f"_ZNK{GPU[1:]}26SwizzledSharedEncodingAttr12getCGALayoutEv"
        return POINTER(self._call(symbol, POINTER(ctypes.addressof(value)), returns=ctypes.c_uint64))

    def rotating(self, shape: Any, vec: int, per_phase: int, max_phase: int, order: Any, swizzled: Any) -> Any:
        """Return the bases of AMD's rotating shared encoding; ``swizzled`` lends the cluster."""
        made = self._call(
            f"_Z{GPU}29AMDRotatingSharedEncodingAttr3getEPNS_11MLIRContextEjjjN4llvm8ArrayRefIjEENS1_15CGAEncodingAttrE",
            POINTER(self.context),
            UINT(vec),
            UINT(per_phase),
            UINT(max_phase),
            self._array(order, ctypes.c_uint32),
            self.cluster(swizzled),
            returns=ctypes.c_uint64,
        )
        attribute = ctypes.c_uint64(made)
        return self._layout(
            f"_ZNK{GPU[1:]}29AMDRotatingSharedEncodingAttr14toLinearLayoutEN4llvm8ArrayRefIlEE",
            POINTER(ctypes.addressof(attribute)),
            self._array(shape, ctypes.c_int64),
        )

    def sm120_scale(self, shape: Any, operand: int, warps: Any, swizzled: Any) -> Any:
        """Return the bases of a scale operand of the block-scaled ``mma`` of sm_120."""
        return self._layout(
            f"_Z{GPU}28getSM120DotScaledScaleLayoutEPNS_11MLIRContextEN4llvm8ArrayRefIlEEiNS5_IjEENS1_15CGAEncodingAttrE",
            POINTER(self.context),
            self._array(shape, ctypes.c_int64),
            INT(operand),
            self._array(warps, ctypes.c_uint32),
            self.cluster(swizzled),
        )

    def unpadded(self, shape: Any, encoding: Any) -> Any:
        """Return the bases of a shared encoding without its padding."""
        return self._layout(
            f"_Z{GPU}29toLinearLayoutIgnoringPaddingEN4llvm8ArrayRefIlEENS_9AttributeE",
            self._array(shape, ctypes.c_int64),
            POINTER(self._value(encoding)),
        )

    def with_partition(self, shape: Any, encoding: Any) -> Any:
        """Return the bases of a partitioned shared encoding, the partition axis included."""
        return self._layout(
            f"_Z{GPU}31partitionedSharedToLinearLayoutEN4llvm8ArrayRefIlEENS1_29PartitionedSharedEncodingAttrE",
            self._array(shape, ctypes.c_int64),
            POINTER(self._value(encoding)),
        )

    def access_tile(self, atom: int, unpacked: bool, with_warp: bool) -> Any:
        """Return the bases of one tensor-memory access: 0 32x32b, 1 16x64b, 2 16x128b, 3 16x256b, 4 16x32bx2."""
        return self._layout(
            "_ZN4mlir6triton10nvidia_gpu13getTileLayoutEPNS_11MLIRContextENS1_14TMemAccessAtomEbb",
            POINTER(self.context),
            INT(atom),
            ctypes.c_bool(unpacked),
            ctypes.c_bool(with_warp),
        )


def bases_of(text: str) -> dict[str, list[list[int]]]:
    """Read ``- lane=1 -> (0, 1)`` lines and ``- block is a size 1 dimension`` of a printed layout."""
    bases: dict[str, list[list[int]]] = {}
    axis = ""
    for line in text.splitlines():
        if empty := re.match(r"\s*- (\w+) is a size 1 dimension", line):
            bases[empty[1]] = []
            axis = ""
            continue
        entry = re.match(r"\s*(?:- )?(\w+)=\d+ -> \(([-\d, ]*)\)", line)
        if entry:
            axis = entry[1]
            bases.setdefault(axis, []).append([int(part) for part in entry[2].split(",") if part.strip()])
    return bases
