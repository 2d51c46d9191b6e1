"""A kernel as a value: its text, its parameters, its launch requirements and its status words.

Implementation notes: the text is complete. It compiles with CUDA for the device and, with ``LA_HOST`` defined and the
host header included first, with a C++ compiler for the CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from layoutalg.ground import limits
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, shown
from layoutalg.ground.text import is_cpp_name
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES

MAX_THREADS = 1024
"""Threads per block (CUDA C++ programming guide, technical specifications per compute capability)."""
THREADS = 128
"""Threads of the copy kernels."""
STATUS_DONE, STATUS_TIMEOUT, STATUS_ORIGIN = 1, 2, 3
_STATUS_TEXTS = {
    STATUS_DONE: "",
    STATUS_TIMEOUT: "the expected bytes did not arrive in time",
    STATUS_ORIGIN: "no start coordinates express this origin",
}


def status_text(status: int) -> str:
    """Return the meaning of a kernel's status word; empty for success.

    Example:
        >>> status_text(STATUS_DONE), status_text(0)
        ('', 'the kernel did not finish: status 0')
    """
    return _STATUS_TEXTS.get(status & 0xFF, f"the kernel did not finish: status {status}")


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Text of one kernel and the numbers a launch needs.

    Args:
        name: Symbol of the ``extern "C"`` kernel.
        text: Complete CUDA text, no header needed.
        arch: Real architecture, for example ``"sm_90a"``.
        threads: Threads per block.
        dynamic_smem_bytes: Dynamic shared memory to launch with; for runners, the maximum over all launches.
        parameters: ``(C type, name)`` of every kernel parameter, in order.
        image_bytes: Bytes of the shared-memory image the kernel writes or reads; 0 if the launch decides.
        grid: Required number of blocks, or the name of the parameter that states it: another grid would skip or repeat
            work. None if any grid works.
        barriers: ``(name, first byte, slots)`` of rings of barriers in dynamic shared memory, counted from its first
            multiple of 1024 bytes; 8 bytes a slot. Names for messages.
        roles: ``(name, first warp, warps)`` of warps that run code of their own. Names for messages.

    Example:
        >>> text = 'extern "C" __global__ void nothing(int x) {}'
        >>> kernel = KernelSource("nothing", text, "sm_90a", 32, 0, (("int", "x"),))
        >>> kernel.parameters
        (('int', 'x'),)
    """

    name: str
    text: str
    arch: str
    threads: int
    dynamic_smem_bytes: int
    parameters: tuple[tuple[str, str], ...]
    image_bytes: int = 0
    grid: int | str | None = None
    barriers: tuple[tuple[str, int, int], ...] = ()
    roles: tuple[tuple[str, int, int], ...] = ()

    def __post_init__(self) -> None:
        checked_name(self.name)
        if not isinstance(self.text, str):
            because = f"text must be a string, not a {type(self.text).__name__}"
            raise MalformedError(Diagnostic("LA506", "this is not a kernel", (f"kernel {self.name}",), because))
        if len(self.text) > limits.KERNEL_TEXT:
            because = f"its text has {len(self.text)} characters, more than {limits.KERNEL_TEXT}"
            raise BudgetError(Diagnostic("LA002", "this kernel is too long", (f"kernel {self.name}",), because))
        where = f"kernel {self.name}"
        checked_int(self.threads, "threads", 1, MAX_THREADS + 1, where)
        checked_int(self.dynamic_smem_bytes, "dynamic_smem_bytes", 0, MAX_SMEM_BYTES + 1, where)
        checked_int(self.image_bytes, "image_bytes", 0, 2**31, where)
        for kind, most in (("barriers", MAX_SMEM_BYTES), ("roles", MAX_THREADS // 32)):
            for name, first, many in getattr(self, kind):
                if not isinstance(name, str) or not name.isprintable() or not name:
                    because = f"a name of {kind} must be printable text, not {shown(name)}"
                    raise MalformedError(Diagnostic("LA506", "this is not a kernel", (where,), because))
                checked_int(first, f"the first of {kind}", 0, most, where)
                checked_int(many, f"the number of {kind}", 1, most + 1, where)
        if isinstance(self.grid, str):
            Checker("LA506", "this is not a kernel").names(self.grid, "grid", [name for _, name in self.parameters])
        elif self.grid is not None:
            checked_int(self.grid, "grid", 1, 2**31, where)


def signature(parameters: Sequence[tuple[str, str]]) -> str:
    """Return a parameter list as C text."""
    return ", ".join(f"{kind} {name}" for kind, name in parameters)


def misfit(code: str, where: str, because: str) -> MalformedError:
    """Return the error for a launch that does not fit the kernel."""
    return MalformedError(Diagnostic(code, "the launch does not fit the kernel", (where,), because))


def checked_arguments(kernel: object, arguments: Sequence[Any], blocks: int, code: str) -> KernelSource:
    """Return the kernel; refuse a launch without one argument per parameter or with the wrong grid."""
    kernel = Checker(code, "the launch does not fit the kernel").kind(kernel, KernelSource, "kernel")
    count = len(arguments) if isinstance(arguments, (list, tuple)) else f"a {type(arguments).__name__}"
    if count != len(kernel.parameters):
        because = f"the kernel takes {len(kernel.parameters)} arguments, not {count}"
        raise misfit(code, f"kernel {kernel.name}", because)
    if kernel.grid is not None:
        named = [name for _, name in kernel.parameters].index(kernel.grid) if isinstance(kernel.grid, str) else None
        wanted = kernel.grid if named is None else arguments[named]
        if wanted != blocks:
            said = f"it needs {wanted} blocks" if named is None else f"its argument {kernel.grid} is {wanted}"
            because = f"{said}, but the grid has {blocks}: work would be skipped or repeated"
            raise misfit(code, f"kernel {kernel.name}", because)
    return kernel


def argument_cell(kind: str, name: str, value: object, code: str) -> tuple[int, object]:
    """Return the address of a parameter's value (a pointer, the bytes of a struct, an int) and what keeps it alive."""
    if isinstance(value, bytes) and not kind.endswith("*"):
        store = (ctypes.c_ubyte * (len(value) + 128))()
        address = ctypes.addressof(store)
        address += -address % 128
        ctypes.memmove(address, value, len(value))
        return address, store
    limit = 2**64 if kind.endswith("*") else 2**31
    if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
        wanted = "an array or an address" if kind.endswith("*") else "a 32-bit integer"
        raise misfit(code, f"parameter {name}", f"must be {wanted}, not {value!r}")
    cell = ctypes.c_uint64(value % 2**64) if kind.endswith("*") else ctypes.c_int(value)
    return ctypes.addressof(cell), cell


def contiguous(value: npt.NDArray[Any], name: str, code: str) -> npt.NDArray[Any]:
    """Return an array argument, refused if it is not contiguous."""
    if not value.flags.c_contiguous:
        raise misfit(code, f"parameter {name}", "the array is not contiguous")
    return value


def checked_name(name: object) -> str:
    """Return a kernel's name, refused unless it is a valid C++ identifier.

    Example:
        >>> checked_name("copy_2d")
        'copy_2d'
    """
    if isinstance(name, str) and is_cpp_name(name) and name != "main":
        return name
    shown = repr(name[:40]) if isinstance(name, str) else f"a {type(name).__name__}"
    because = f"name must be a C++ identifier of at most 255 letters, digits and underscores, not {shown}"
    raise MalformedError(Diagnostic("LA506", "this is not a kernel name", ("name",), because))


def checked_int(value: object, argument: str, low: int, end: int, where: str, code: str = "LA506") -> int:
    """Return an integer in [low, end); others would be truncated or reinterpreted by a launch."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value < end:
        because = f"{argument} must be an integer from {low} to {end - 1}, not {shown(value)}"
        raise MalformedError(Diagnostic(code, "a number is out of range for a launch", (where,), because))
    return value
