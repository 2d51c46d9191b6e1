"""A kernel as a value: its text, its parameters and what a launch must provide.

Main definitions: ``KernelSource``.

Implementation notes: the text is complete. It compiles with CUDA for the device and, with ``LA_HOST`` defined and the
host header in front, with a C++ compiler for the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Text of one kernel and the numbers a launch needs.

    Args:
        name: Symbol of the ``extern "C"`` kernel.
        text: Complete CUDA text, no header needed.
        arch: Real architecture, for example ``"sm_90a"``.
        threads: Threads per block.
        dynamic_smem_bytes: Dynamic shared memory to launch with; for runners the largest that any launch may ask.
        parameters: ``(C type, name)`` of every kernel parameter, in order.
        image_bytes: Bytes of the shared-memory image the kernel writes or reads; 0 where a launch decides.

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

    def signature(self) -> str:
        """Return the parameter list as C text."""
        return ", ".join(f"{kind} {name}" for kind, name in self.parameters)
