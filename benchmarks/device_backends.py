"""What a campaign runs on: the driver's few calls through ctypes, or the CPU models under the same names.

Also what all device scripts share: kernels to cubins, children that may fault, and the name of the device.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from layoutalg.codegen.kernel import KernelSource


def compile_kernel(kernel: KernelSource, folder: Path) -> None:
    """Write ``folder/NAME.cubin``: by nvcc where it exists and takes the text, else by the run-time compiler."""
    source, target = folder / f"{kernel.name}.cu", folder / f"{kernel.name}.cubin"
    source.write_text(kernel.text)
    flags = ["-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-o", str(target), str(source)]
    try:
        subprocess.run(["nvcc", *flags], check=True, capture_output=True, text=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        from layoutalg.codegen.compile import to_cubin

        target.write_bytes(to_cubin(kernel))


def child_error(command: list[str], seconds: float) -> str:
    """Run a command; return nothing where it succeeds, else the last line of its errors, or ``timeout``."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "timeout"
    return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][-300:] if done.returncode else ""


def device_text(query: str = "name,driver_version") -> str:
    """Return the device's name and driver as the system reports them; "none" without one."""
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "none"


def struct(raw: bytes) -> object:
    """Return bytes as a struct passed by value."""
    return (ctypes.c_ubyte * len(raw)).from_buffer_copy(raw)


class Cuda:
    """A few driver calls through ctypes; every failure raises with the driver's number."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int()
        context = ctypes.c_void_p()
        self.check("cuInit", 0)
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.check("cuCtxSetCurrent", context)
        self.modules: dict[str, ctypes.c_void_p] = {}

    def check(self, name: str, *args: object) -> None:
        code = getattr(self.lib, name)(*args)
        if code:
            raise RuntimeError(f"{name}={code}")

    def alloc(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer.value

    def upload(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        pointer = self.alloc(array.nbytes)
        self.write(pointer, array)
        return pointer

    def write(self, pointer: int, array: np.ndarray) -> None:
        self.check(
            "cuMemcpyHtoD_v2",
            ctypes.c_uint64(pointer),
            array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(array.nbytes),
        )

    def download(self, pointer: int, array: np.ndarray) -> np.ndarray:
        self.check(
            "cuMemcpyDtoH_v2",
            array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(pointer),
            ctypes.c_size_t(array.nbytes),
        )
        return array

    def free(self, pointer: int) -> None:
        self.check("cuMemFree_v2", ctypes.c_uint64(pointer))

    def filled(self, size: int, value: int) -> int:
        """Return memory that holds one byte value throughout."""
        pointer = self.alloc(size)
        self.check("cuMemsetD8_v2", ctypes.c_uint64(pointer), ctypes.c_ubyte(value), ctypes.c_size_t(size))
        return pointer

    def repeated(self, block: np.ndarray, size: int) -> int:
        """Return memory that repeats a block."""
        pointer = self.alloc(-(-size // block.size) * block.size)
        self.write(pointer, block)
        for at in range(block.size, size, block.size):
            self.check(
                "cuMemcpyDtoD_v2", ctypes.c_uint64(pointer + at), ctypes.c_uint64(pointer), ctypes.c_size_t(block.size)
            )
        return pointer

    def launch(self, kernel: KernelSource, cubins: Path, blocks: int, smem: int, args: list[object]) -> None:
        if kernel.name not in self.modules:
            module = ctypes.c_void_p()
            self.check("cuModuleLoadData", ctypes.byref(module), (cubins / f"{kernel.name}.cubin").read_bytes())
            self.modules[kernel.name] = module
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), self.modules[kernel.name], kernel.name.encode())
        self.check("cuFuncSetAttribute", function, 8, smem)
        values = [struct(v) if isinstance(v, bytes) else ctypes.c_uint64(v) if "*" in t else ctypes.c_int(v)
                  for (t, _), v in zip(kernel.parameters, args, strict=True)]  # fmt: skip
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.check("cuLaunchKernel", function, blocks, 1, 1, kernel.threads, 1, 1, smem, None, pointers, None)
        self.check("cuCtxSynchronize")

    def encode(self, row: np.ndarray, address: int) -> tuple[int, bytes]:
        """Return the driver's verdict and the 128 bytes for one row of params, at an absolute address."""
        p = [int(v) for v in row]
        rank = p[1]
        raw = np.zeros(32, dtype=np.uint64)
        start = (-raw.ctypes.data % 128) // 8
        aligned = raw[start : start + 16]
        dims = (ctypes.c_uint64 * 5)(*[v & (2**64 - 1) for v in p[3:8]])
        strides = (ctypes.c_uint64 * 4)(*[v & (2**64 - 1) for v in p[8:12]])
        box = (ctypes.c_uint32 * 5)(*[v & 0xFFFFFFFF for v in p[12:17]])
        steps = (ctypes.c_uint32 * 5)(*[v & 0xFFFFFFFF for v in p[17:22]])
        code = self.lib.cuTensorMapEncodeTiled(
            ctypes.c_void_p(aligned.ctypes.data), p[0], ctypes.c_uint32(rank), ctypes.c_void_p(address), dims, strides,
            box, steps, *p[22:26]
        )  # fmt: skip
        return code, aligned.tobytes() if code == 0 else bytes(128)


class Host:
    """The same calls on the CPU models; a rehearsal, not evidence about hardware."""

    def __init__(self) -> None:
        self.buffers: dict[int, np.ndarray] = {}

    def alloc(self, size: int) -> int:
        buffer = np.zeros(size + 256, dtype=np.uint8)
        pointer = buffer.ctypes.data + (-buffer.ctypes.data % 256)
        self.buffers[pointer] = buffer
        return pointer

    def upload(self, array: np.ndarray) -> int:
        pointer = self.alloc(array.nbytes)
        self.write(pointer, np.ascontiguousarray(array))
        return pointer

    def write(self, pointer: int, array: np.ndarray) -> None:
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def download(self, pointer: int, array: np.ndarray) -> np.ndarray:
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)
        return array

    def free(self, pointer: int) -> None:
        del self.buffers[pointer]

    def filled(self, size: int, value: int) -> int:
        """Return memory that holds one byte value throughout."""
        pointer = self.alloc(size)
        ctypes.memset(pointer, value, size)
        return pointer

    def repeated(self, block: np.ndarray, size: int) -> int:
        """Return memory that repeats a block."""
        return self.upload(np.resize(block, size))

    def launch(self, kernel: KernelSource, _: Path, blocks: int, smem: int, args: list[object]) -> None:
        from layoutalg.codegen.hostsim import run

        regions = [(pointer, buffer.size - 256) for pointer, buffer in self.buffers.items()]
        fault = run(kernel, args, blocks=blocks, dynamic_smem_bytes=smem, regions=regions)
        if fault:
            raise RuntimeError(f"host model fault={fault}")

    def encode(self, row: np.ndarray, address: int) -> tuple[int, bytes]:
        p = [int(v) for v in row]
        rank = p[1]
        formats = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8)
        w = [0] * 32
        w[0], w[1] = address & 0xFFFFFFFF, address >> 32 & 0xFFFFFFFF
        w[2] = (
            (rank - 1) << 4
            | formats[p[0]] << 7
            | p[22] << 11
            | p[23] << 13
            | p[25] << 15
            | (p[0] >= 11) << 16
            | p[24] << 17
        )
        for i in range(rank - 1):
            w[3 + i] = p[8 + i] >> 4 & 0xFFFFFFFF
            w[7] |= (p[8 + i] >> 36) << (4 * i)
        for i in range(rank):
            w[8 + i] = p[3 + i] - 1
            w[13] |= (p[17 + i] - 1) << (3 * i)
        w[13] |= (p[12] - 1) << 24
        w[14] = sum((p[12 + i] - 1) << (8 * (i - 1)) for i in range(1, rank))
        return 0, np.array(w, dtype=np.uint32).tobytes()
