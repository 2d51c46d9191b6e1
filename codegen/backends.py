"""Three ways to run a plan: on a GPU, as its own text on the CPU, or by the Python model.

A backend is opened on one plan and one memory (byte 0 is the tensor's base address). ``load`` returns the shared-memory
image, ``store`` writes the memory, ``read`` returns part of it; a non-empty reason says why the run failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen import hostsim, launch
from layoutalg.codegen.cuda import tile_kernel
from layoutalg.codegen.kernel import KernelSource, status_text
from layoutalg.codegen.plans import origin_arguments
from layoutalg.codegen.simulate import shared_image, store_memory
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, LayoutError, MissingExtraError
from layoutalg.proofs.tensormap import TensorMapPlan

Bytes: TypeAlias = npt.NDArray[np.uint8]
Spans: TypeAlias = tuple[tuple[int, int], ...]


class Backend(Protocol):
    """What ``validate`` needs of a way to run a plan."""

    def load(self, origin: Sequence[int]) -> tuple[Bytes, str]:
        """Return the image after one tile load, and why it is invalid (empty if valid)."""
        ...

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        """Store one tile; return why it failed (empty on success)."""
        ...

    def read(self, first: int, last: int) -> Bytes:
        """Return the memory's bytes first..last-1."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """The Python model of the copy engine."""

    plan: TensorMapPlan
    memory: Bytes

    def load(self, origin: Sequence[int]) -> tuple[Bytes, str]:
        try:
            return shared_image(self.plan, self.memory, origin), ""
        except LayoutError as error:
            return np.zeros(0, dtype=np.uint8), _short(error)

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        try:
            store_memory(self.plan, image, self.memory, origin)
        except LayoutError as error:
            return _short(error)
        return ""

    def read(self, first: int, last: int) -> Bytes:
        return self.memory[first:last]


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """The plan's kernel text, compiled as C++ with CPU models of the hardware."""

    plan: TensorMapPlan
    memory: Bytes

    def load(self, origin: Sequence[int]) -> tuple[Bytes, str]:
        kernel = tile_kernel(self.plan)
        image = np.zeros(kernel.image_bytes, dtype=np.uint8)
        return image, self._run(kernel, origin, image)

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        return self._run(tile_kernel(self.plan), origin, image)

    def read(self, first: int, last: int) -> Bytes:
        return self.memory[first:last]

    def _run(self, kernel: KernelSource, origin: Sequence[int], image: Bytes) -> str:
        status = np.zeros(1, dtype=np.int32)
        raw = launch.place_map(self.plan.raw, self.memory.ctypes.data)
        arguments: list[hostsim.Argument] = [raw, *origin_arguments(self.plan, origin), image, status]
        fault = hostsim.run(kernel, arguments, regions=[(self.memory.ctypes.data, self.memory.nbytes)])
        return hostsim.FAULTS[fault] if fault else status_text(int(status[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Cuda:
    """The plan's kernel on the first GPU; the memory is copied there once."""

    plan: TensorMapPlan
    memory: launch.DeviceTensor

    def load(self, origin: Sequence[int]) -> tuple[Bytes, str]:
        kernel = tile_kernel(self.plan)
        image = np.zeros(kernel.image_bytes, dtype=np.uint8)
        try:
            status = launch.run_tile(self.plan, kernel, self.memory, image, origin)
        except MissingExtraError:
            raise
        except LayoutError as error:
            return np.zeros(0, dtype=np.uint8), _short(error)
        return image, status_text(status)

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        try:
            return status_text(launch.run_tile(self.plan, tile_kernel(self.plan), self.memory, image, origin))
        except MissingExtraError:
            raise
        except LayoutError as error:
            return _short(error)

    def read(self, first: int, last: int) -> Bytes:
        return launch.download(self.memory, first, last)


def chosen_backend(device: object, arch: str, names: Sequence[str], call: str) -> tuple[str, str, str | None]:
    """Return the backend to use, why, and the GPU's name.

    Args:
        device: One of ``names``, or ``"auto"``: a GPU of the architecture if present, otherwise the last name.
        arch: Architecture of the kernel.
        names: The backends that the caller supports.
        call: The caller.
    """
    if not isinstance(device, str) or device not in ("auto", *names):
        raise Checker("LA540", "no such backend").malformed("device", f"must be one of {('auto', *names)}", device)
    if device == "host" and hostsim.compiler() is None:
        raise MissingExtraError(Diagnostic("LA520", "running a kernel on the CPU needs a C++ compiler", (call,)))
    if device not in ("auto", "cuda"):
        return device, "", None
    info = launch.device()
    if info is not None and info.runs(arch):
        return "cuda", "", info.name
    reason = "no GPU is present" if info is None else f"{info.name} does not run {arch}"
    if device == "cuda":
        raise MissingExtraError(Diagnostic("LA532", "no usable GPU", (call,), reason))
    models = {"simulator": "the Python model of the copy engine was used", "host": "the CPU models were used"}
    return names[-1], f"{reason}: {models[names[-1]]}", None


def open_backend(name: str, plan: TensorMapPlan, memory: Bytes, spans: Spans | None = None) -> Backend:
    """Return the backend called ``"cuda"``, ``"host"`` or ``"simulator"``.

    Args:
        name: Which one.
        plan: What to run.
        memory: The tensor's memory; byte 0 is its base address.
        spans: Byte ranges worth copying to a GPU; None copies everything.
    """
    if name == "cuda":
        return Cuda(plan, launch.upload(memory, spans))
    return Host(plan, memory) if name == "host" else Simulator(plan, memory)


def _short(error: LayoutError) -> str:
    diagnostic = error.diagnostic
    return f"{diagnostic.what}: {diagnostic.because}" if diagnostic.because else diagnostic.what
