"""Kernels of one shared-memory access per lane, for hardware counters to look at."""

from __future__ import annotations

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.ground.errors import Diagnostic, MalformedError

KINDS = {"load": (8, 16, 32, 64, 128), "store": (8, 16, 32, 64, 128), "ldmatrix": (128,), "stmatrix": (128,)}
"""Accesses that can be probed, with their bits per lane."""
PROBE_BYTES = 65536

_PROBE = """
// One {bits}-bit {kind} per lane at the byte offset the lane is given; nothing else touches shared memory.
extern "C" __global__ void __launch_bounds__(32) {name}(const int* offsets, la_u32* words)
{{
    const la_u32 address = la_shared_address(la_shared()) + offsets[threadIdx.x];
    la_u32 w[{count}];
    for (int v = 0; v < {count}; ++v) w[v] = words[threadIdx.x * {count} + v];
    {statement}
    for (int v = 0; v < {count}; ++v) words[threadIdx.x * {count} + v] = w[v];
}}
"""


def bank_probe_kernel(kind: str, bits: int) -> KernelSource:
    """Return the kernel ``(offsets, words)`` of one warp in which every lane does one shared-memory access.

    Args:
        kind: ``"load"`` or ``"store"``; ``"ldmatrix"`` or ``"stmatrix"`` (x4: every lane gives the offset of a row).
        bits: Bits per lane: 8, 16, 32, 64 or 128, 128 for the matrix kinds; offsets are multiples of as many bytes,
            below ``PROBE_BYTES``.

    Raises: MalformedError: LA500.

    Example:
        >>> bank_probe_kernel("load", 64).name
        'la_shared_load_64'
    """
    if kind not in KINDS or type(bits) is not int or bits not in KINDS[kind]:
        because = f"kind and bits must be one of {KINDS}, not {kind!r} and {bits!r}"
        raise MalformedError(Diagnostic("LA500", "no such shared-memory access", because=because))
    reads = kind in ("load", "ldmatrix")
    count = max(1, bits // 32)
    words = ", ".join(f"%{v + (not reads)}" for v in range(count))
    if kind in ("load", "store"):
        suffix = f"v{count}.b32" if count > 1 else f"u{bits}" if bits < 32 else "b32"
        opcode = f"{'ld' if reads else 'st'}.shared.{suffix}"
    else:
        opcode = f"{kind}.sync.aligned.m8n8.x4.shared.b16"
    group = f"{{{words}}}" if count > 1 else words
    operands = ", ".join(f'"{"=" * reads}r"(w[{v}])' for v in range(count))
    if reads:
        statement = f'asm volatile("{opcode} {group}, [%{count}];" : {operands} : "r"(address) : "memory");'
    else:
        statement = f'asm volatile("{opcode} [%0], {group};" :: "r"(address), {operands} : "memory");'
    name = f"la_shared_{kind}_{bits}"
    text = _PROBE.format(bits=bits, kind=kind, name=name, count=count, statement=statement)
    parameters = (("const int*", "offsets"), ("la_u32*", "words"))
    return KernelSource(name, PRELUDE + text, "sm_90a", 32, PROBE_BYTES, parameters)
