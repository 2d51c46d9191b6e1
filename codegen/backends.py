"""Three ways to run a plan: on a GPU, as its own text on the CPU, or by the Python model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from layoutalg.codegen import hostsim, launch
from layoutalg.codegen.cuda import tile_kernel
from layoutalg.codegen.kernel import KernelSource, status_text
from layoutalg.codegen.plans import image_bytes, origin_arguments
from layoutalg.codegen.simulate import shared_image, store_memory
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, LayoutError, MissingExtraError
from layoutalg.proofs.tensormap import TensorMapPlan

Bytes: TypeAlias = npt.NDArray[np.uint8]
Spans: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Backend:
    """A plan opened on one memory, byte 0 of which is the tensor's base address."""

    # ``"cuda"``: the plan's kernel on the first GPU; ``"host"``: the kernel's text, compiled as C++ with CPU models of
    # the hardware; ``"simulator"``: the Python model of the copy engine
    name: str
    plan: TensorMapPlan  # what to run
    memory: Bytes | launch.DeviceTensor  # host memory, or its copy on the GPU

    def load(self, origin: Sequence[int]) -> tuple[Bytes, str]:
        """Return the image after one tile load, and why it is invalid (empty if valid)."""
        try:
            if self.name == "simulator":
                return shared_image(self.plan, cast(Bytes, self.memory), origin), ""
            image = np.zeros(image_bytes(self.plan), dtype=np.uint8)
            return image, self._run(origin, image)
        except LayoutError as error:
            return np.zeros(0, dtype=np.uint8), self._failed(error)

    def store(self, image: Bytes, origin: Sequence[int]) -> str:
        """Store one tile; return why it failed (empty on success)."""
        try:
            if self.name != "simulator":
                return self._run(origin, image)
            store_memory(self.plan, image, cast(Bytes, self.memory), origin)
        except LayoutError as error:
            return self._failed(error)
        return ""

    def read(self, first: int, last: int) -> Bytes:
        """Return the memory's bytes first..last-1."""
        if isinstance(self.memory, launch.DeviceTensor):
            return launch.download(self.memory, first, last)
        return self.memory[first:last]

    def _run(self, origin: Sequence[int], image: Bytes) -> str:
        kernel, status = tile_kernel(self.plan), np.zeros(1, dtype=np.int32)
        if isinstance(self.memory, launch.DeviceTensor):
            return status_text(launch.run_tile(self.plan, kernel, self.memory, image, origin))

        def arguments(addresses: Sequence[int]) -> list[hostsim.Argument]:
            return [launch.place_map(self.plan.raw, addresses[0]), *origin_arguments(self.plan, origin), image, status]

        return run_on(self.name, kernel, [self.memory], arguments) or status_text(int(status[0]))

    def _failed(self, error: LayoutError) -> str:
        """Return why a run failed; what is missing here, or does not compile on the CPU, is no result of the plan."""
        if isinstance(error, MissingExtraError) or self.name == "host":
            raise error
        diagnostic = error.diagnostic
        return f"{diagnostic.what}: {diagnostic.because}" if diagnostic.because else diagnostic.what


def run_on(
    backend: str,
    kernel: KernelSource,
    memories: Sequence[Bytes],
    arguments: Callable[[Sequence[int]], list[hostsim.Argument]],
) -> str:
    """Run a kernel on memories; return its fault (empty if none).

    Args:
        backend: ``"cuda"`` or ``"host"``.
        kernel: The kernel.
        memories: What descriptors point to; copied to a GPU, used in place on the CPU.
        arguments: The kernel's arguments, given the addresses of the memories.
    """
    if backend == "cuda":
        tensors = [launch.upload(memory) for memory in memories]
        launch.run(kernel, arguments([tensor.pointer for tensor in tensors]))
        return ""
    addresses = [memory.ctypes.data for memory in memories]
    regions = [(memory.ctypes.data, memory.nbytes) for memory in memories]
    fault = hostsim.run(kernel, arguments(addresses), regions=regions)
    return hostsim.FAULTS[fault] if fault else ""


def chosen_backend(device: object, arch: str, names: Sequence[str], call: str) -> tuple[str, str, str | None]:
    """Return the backend to use, why, and the GPU's name."""
    if not isinstance(device, str) or device not in ("auto", *names):
        raise Checker("LA540", "no such backend").malformed("device", f"must be one of {('auto', *names)}", device)
    if device == "host" and hostsim.compiler() is None:
        raise hostsim.no_compiler(call)
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
    """Open a plan on a memory; ``spans`` are the byte ranges worth copying to a GPU, None for everything."""
    return Backend(name, plan, launch.upload(memory, spans) if name == "cuda" else memory)
