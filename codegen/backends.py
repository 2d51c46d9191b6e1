"""Three ways to run a plan: on a GPU, as its own text on the CPU, or by the Python model.

Main definitions: ``Backend``, ``Simulator``, ``Host``, ``Cuda``, ``open_backend``.

Notation: a backend is opened on one plan and one memory (byte 0 is the tensor's base address). ``load`` returns the
shared-memory image, ``store`` writes the memory, ``read`` returns part of it; a non-empty reason says why nothing came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen import hostsim, launch
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.kernel import KernelSource, status_text
from layoutalg.codegen.plans import origin_arguments
from layoutalg.codegen.simulate import shared_image, store_memory
from layoutalg.ground.errors import LayoutError, MissingExtraError
from layoutalg.proofs.tensormap import TensorMapPlan

Bytes: TypeAlias = npt.NDArray[np.uint8]
Spans: TypeAlias = tuple[tuple[int, int], ...]


class Backend(Protocol):
    """What ``validate`` needs of a way to run a plan."""

    def load(self, origin: Sequence[int]) -> tuple[Bytes, str]:
        """Return the image one tile load leaves, and why it is not valid, if so."""
        ...

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        """Store one tile; return why it failed, if so."""
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
        kernel = load_kernel(self.plan)
        image = np.zeros(kernel.image_bytes, dtype=np.uint8)
        return image, self._run(kernel, origin, image)

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        return self._run(store_kernel(self.plan), origin, image)

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
        try:
            image, status = launch.load_tile(self.plan, self.memory, origin)
        except MissingExtraError:
            raise
        except LayoutError as error:
            return np.zeros(0, dtype=np.uint8), _short(error)
        return image, status_text(status)

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        try:
            return status_text(launch.store_tile(self.plan, image, self.memory, origin))
        except MissingExtraError:
            raise
        except LayoutError as error:
            return _short(error)

    def read(self, first: int, last: int) -> Bytes:
        return launch.download(self.memory, first, last)


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
