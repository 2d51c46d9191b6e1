"""Run kernels on a GPU: device queries, launches, tensors of other libraries.

Implementation notes: launches use the driver bindings, because a descriptor is passed by value as a 128-byte struct,
which cuda.core's launcher accepts only as its own descriptor object. numpy arrays are copied to the device and back;
device tensors are used in place. Every call synchronises.
"""

from __future__ import annotations

import ctypes
import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.compile import missing_cuda, to_cubin
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.kernel import KernelSource, argument_cell, checked_arguments, checked_int, contiguous, misfit
from layoutalg.codegen.plans import origin_arguments
from layoutalg.ground.errors import DeviceMismatchError, Diagnostic, MalformedError, MissingExtraError
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The GPU used for launches.

    Args:
        name: As the driver reports it.
        compute_capability: For example ``(9, 0)``.
        driver: The CUDA version the driver supports, for example 13000.
    """

    name: str
    compute_capability: tuple[int, int]
    driver: int

    def runs(self, arch: str) -> bool:
        """Return whether machine code for ``arch`` runs here, i.e. the compute capability is the same."""
        return arch.rstrip("af") == f"sm_{self.compute_capability[0]}{self.compute_capability[1]}"


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTensor:
    """A tensor in device memory, owned by another library.

    Args:
        pointer: Address of its first element.
        shape: Extents.
        strides: Element strides, same order.
        itemsize: Bytes of one element.
        owner: Keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    owner: object


def device() -> DeviceInfo | None:
    """Return the first GPU, or None without a GPU, driver or bindings. Never raises."""
    try:
        driver = _driver()
        _, handle = driver.cuDeviceGet(0)
        attribute = driver.CUdevice_attribute
        major = _call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle))
        minor = _call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle))
        name = _call(driver.cuDeviceGetName(256, handle))
        version = _call(driver.cuDriverGetVersion())
    except Exception:
        return None
    return DeviceInfo(name.split(b"\0")[0].decode(), (int(major), int(minor)), int(version))


def place_map(raw: bytes, address: int) -> bytes:
    """Return the descriptor with its base address moved by ``address`` bytes, modulo 2^64.

    Plans have addresses relative to their tensor; a launch adds the tensor's address.

    Example:
        >>> place_map((16).to_bytes(8, "little") + bytes(120), 0x1000)[:8].hex()
        '1010000000000000'
    """
    if not isinstance(raw, bytes) or len(raw) != 128:
        found = len(raw) if isinstance(raw, bytes) else f"a {type(raw).__name__}"
        raise MalformedError(
            Diagnostic("LA530", "this is not a descriptor", because=f"a map has 128 bytes, not {found}")
        )
    checked_int(address, "address", -(2**64), 2**64, "place_map", "LA530")
    base = (int.from_bytes(raw[:8], "little") + address) % 2**64
    return base.to_bytes(8, "little") + raw[8:]


def from_dlpack(tensor: Any) -> DeviceTensor | npt.NDArray[Any]:
    """Return a foreign tensor as a ``DeviceTensor``, or as a numpy view of host memory; nothing is copied."""
    if isinstance(tensor, (DeviceTensor, np.ndarray)):
        return tensor
    if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
        raise MalformedError(
            Diagnostic("LA531", "not a tensor", because=f"a {type(tensor).__name__} has no __dlpack__ method")
        )
    if int(tensor.__dlpack_device__()[0]) == 1:  # kDLCPU
        return np.from_dlpack(tensor)
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError as error:
        raise missing_cuda("launching", str(error)) from None
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    shape = tuple(int(extent) for extent in view.shape)
    if view.strides is None:  # row-major
        strides = tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))
    else:
        strides = tuple(int(stride) for stride in view.strides)
    return DeviceTensor(int(view.ptr), shape, strides, int(np.dtype(view.dtype).itemsize), (tensor, view))


def run(
    kernel: KernelSource,
    arguments: Sequence[int | bytes | npt.NDArray[Any] | DeviceTensor],
    *,
    blocks: int = 1,
    dynamic_smem_bytes: int | None = None,
) -> None:
    """Launch a kernel on the first GPU and wait for it.

    Args:
        kernel: The kernel; compiled on first use.
        arguments: One value per parameter. numpy arrays are copied to the device and, unless the parameter points to
            const, back in place; a ``DeviceTensor`` passes its pointer, an int an int or an address, bytes a struct.
        blocks: Grid size.
        dynamic_smem_bytes: Dynamic shared memory in bytes; by default the kernel's own number.
    """
    with _loaded(kernel, arguments, blocks, dynamic_smem_bytes) as launch:
        launch()
        _call(_ready().cuCtxSynchronize(), kernel)


def milliseconds(
    kernel: KernelSource,
    arguments: Sequence[int | bytes | npt.NDArray[Any] | DeviceTensor],
    *,
    blocks: int = 1,
    repeats: int = 12,
) -> float:
    """Launch a kernel on the first GPU again and again; return the median time of a launch.

    Args:
        kernel: The kernel.
        arguments: As of ``run``.
        blocks: Grid size.
        repeats: Launches that are timed, behind two that are not.
    """
    checked_int(repeats, "repeats", 1, 1 << 16, f"kernel {kernel.name}", "LA533")
    with _loaded(kernel, arguments, blocks, None) as launch:
        driver = _ready()
        marks = [_call(driver.cuEventCreate(0)) for _ in range(repeats + 1)]
        try:
            launch()
            launch()
            for mark in marks[:-1]:
                _call(driver.cuEventRecord(mark, 0))
                launch()
            _call(driver.cuEventRecord(marks[-1], 0))
            _call(driver.cuCtxSynchronize(), kernel)
            return statistics.median(
                [float(_call(driver.cuEventElapsedTime(*pair))) for pair in itertools.pairwise(marks)]
            )
        finally:
            for mark in marks:
                driver.cuEventDestroy(mark)


@contextmanager
def _loaded(
    kernel: KernelSource, arguments: Sequence[Any], blocks: int, dynamic_smem_bytes: int | None
) -> Iterator[Callable[[], None]]:
    """Give what launches a kernel; without an error arrays come back at the end."""
    checked_arguments(kernel, arguments, blocks, "LA533")
    smem = kernel.dynamic_smem_bytes if dynamic_smem_bytes is None else dynamic_smem_bytes
    checked_int(smem, "dynamic_smem_bytes", 0, MAX_SMEM_BYTES + 1, f"kernel {kernel.name}", "LA533")
    checked_int(blocks, "blocks", 1, 2**31, f"kernel {kernel.name}", "LA533")
    cubin = to_cubin(kernel)
    driver = _ready()
    module = _call(driver.cuModuleLoadData(cubin))
    allocations: list[tuple[Any, npt.NDArray[Any], bool]] = []
    try:
        function = _call(driver.cuModuleGetFunction(module, kernel.name.encode()))
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _call(driver.cuFuncSetAttribute(function, limit, smem))
        cells = [
            _cell(driver, kind, name, value, allocations)
            for (kind, name), value in zip(kernel.parameters, arguments, strict=True)
        ]
        pointers = (ctypes.c_void_p * len(cells))(*[address for address, _ in cells])
        grid = blocks, 1, 1, kernel.threads, 1, 1, smem, 0
        yield lambda: _call(driver.cuLaunchKernel(function, *grid, ctypes.addressof(pointers), 0))
        for pointer, array, back in allocations:
            if back:
                _call(driver.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
    finally:
        for pointer, _, _ in allocations:
            driver.cuMemFree(pointer)
        driver.cuModuleUnload(module)


def load_tile(plan: TensorMapPlan, tensor: object, origin: Sequence[int]) -> tuple[npt.NDArray[np.uint8], int]:
    """Load one tile on the GPU and return the shared-memory image and the kernel's status (1 done, 2 timed out).

    Args:
        plan: A plan with direction ``"load"``.
        tensor: uint8 numpy array whose byte 0 is the tensor's base address (copied to the device), or any tensor with
            ``__dlpack__``, used in place.
        origin: Tile origin in elements, outermost first.
    """
    kernel = load_kernel(plan)
    image = np.zeros(kernel.image_bytes, dtype=np.uint8)
    return image, run_tile(plan, kernel, tensor, image, origin)


def store_tile(plan: TensorMapPlan, image: npt.NDArray[np.uint8], tensor: object, origin: Sequence[int]) -> int:
    """Store one tile on the GPU from a shared-memory image into ``tensor``; return the kernel's status.

    Args:
        plan: A plan with direction ``"store"``.
        image: uint8; byte 0 is the tile base.
        tensor: As for ``load_tile``; written in place.
        origin: Tile origin in elements, outermost first.
    """
    kernel, there = store_kernel(plan), from_dlpack(tensor)
    placed = upload(there) if isinstance(there, np.ndarray) else there
    status = run_tile(plan, kernel, placed, image, origin)
    if isinstance(there, np.ndarray):
        there.view(np.uint8).reshape(-1)[:] = download(placed, 0, there.nbytes)
    return status


def run_tile(
    plan: TensorMapPlan, kernel: KernelSource, tensor: Any, image: npt.NDArray[np.uint8], origin: Sequence[int]
) -> int:
    """Run the kernel of one tile and return its status."""
    there = from_dlpack(tensor)
    placed = upload(there) if isinstance(there, np.ndarray) else there
    status = np.zeros(1, dtype=np.int32)
    run(kernel, [place_map(plan.raw, _base(plan, placed)), *origin_arguments(plan, origin), image, status])
    return int(status[0])


class _Allocation:
    """Device memory that is freed with its last owner."""

    def __init__(self, size: int) -> None:
        driver = _ready()
        self._free = driver.cuMemFree  # at the end of the interpreter the module may be gone before its functions
        self.pointer = _call(driver.cuMemAlloc(max(size, 16)))

    def __del__(self) -> None:
        pointer = getattr(self, "pointer", None)
        if pointer is not None:
            self._free(pointer)


def upload(array: npt.NDArray[Any], spans: Sequence[tuple[int, int]] | None = None) -> DeviceTensor:
    """Return a copy of a contiguous array in device memory, freed with the last reference to it.

    Args:
        array: The array.
        spans: Byte ranges (first, last + 1) to copy; the rest of the device memory stays uninitialised.
    """
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        because = "array must be a contiguous numpy array"
        raise misfit("LA533", "upload", because)
    owner = _Allocation(array.nbytes)
    for first, last in ((0, array.nbytes),) if spans is None else spans:
        _call(_ready().cuMemcpyHtoD(int(owner.pointer) + first, array.ctypes.data + first, last - first))
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return DeviceTensor(int(owner.pointer), array.shape, strides, array.itemsize, owner)


def download(tensor: DeviceTensor, first: int, last: int) -> npt.NDArray[np.uint8]:
    """Return bytes first..last-1 of a device tensor, counted from its first element."""
    out = np.zeros(last - first, dtype=np.uint8)
    if out.size:
        _call(_ready().cuMemcpyDtoH(out.ctypes.data, tensor.pointer + first, out.nbytes))
    return out


def _base(plan: TensorMapPlan, tensor: DeviceTensor) -> int:
    """Return the tensor's address; it must have the alignment stated by the plan's problem."""
    if tensor.pointer % plan.problem.base_align_bytes:
        raise MalformedError(
            Diagnostic(
                "LA536",
                "the tensor is less aligned than its problem states",
                because=f"address {tensor.pointer:#x} is not a multiple of {plan.problem.base_align_bytes}",
            )
        )
    return tensor.pointer


def _cell(
    driver: Any, kind: str, name: str, value: Any, allocations: list[tuple[Any, npt.NDArray[Any], bool]]
) -> tuple[int, object]:
    """Return the address of a parameter's value and what keeps it alive; arrays are copied to the device."""
    given: object = value.pointer if isinstance(value, DeviceTensor) else value
    if isinstance(value, np.ndarray):
        pointer = _call(driver.cuMemAlloc(max(contiguous(value, name, "LA533").nbytes, 16)))
        allocations.append((pointer, value, not kind.startswith("const ")))
        _call(driver.cuMemcpyHtoD(pointer, value.ctypes.data, value.nbytes))
        given = int(pointer)
    return argument_cell(kind, name, given, "LA533")


def _driver() -> Any:
    """Return the initialised driver bindings."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise missing_cuda("launching", str(error)) from None
    try:
        _call(driver.cuInit(0))
    except (RuntimeError, OSError, DeviceMismatchError) as error:
        raise MissingExtraError(
            Diagnostic("LA532", "no usable GPU", because=str(error).strip().splitlines()[0])
        ) from None
    return driver


def _ready() -> Any:
    """Return the driver bindings with the first GPU's primary context current."""
    driver = _driver()
    handle = _call(driver.cuDeviceGet(0))
    _call(driver.cuCtxSetCurrent(_call(driver.cuDevicePrimaryCtxRetain(handle))))
    return driver


def _call(result: tuple[Any, ...], kernel: KernelSource | None = None) -> Any:
    """Return the result of a driver call after checking its status."""
    code, *values = result
    if int(code):
        where = (f"kernel {kernel.name}",) if kernel else ()
        raise DeviceMismatchError(Diagnostic("LA534", "the driver reports an error", where, f"{code!s}"))
    return values[0] if values else None
