"""The loop by which threads copy global memory as vectors of 16 bytes: how much is in flight, through which caches.

A thread loads ``each`` vectors, then stores them, ``turns`` times. Operators of caches are those of PTX; on AMD and the
CPU accesses are plain.

References: PTX ISA 9.1, ``ld.global.nc``, ``st`` (cache operators, eviction priorities), ``createpolicy``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from layoutalg.codegen.kernels.answer import CHECK, power
from layoutalg.codegen.kernels.turned import fields
from layoutalg.ground.record import Checked
from layoutalg.targets.registry import lookup, vendor_of
from layoutalg.targets.target_model import model_of

LOADS: Final = ("", ".cs", ".nc", ".nc.L1::no_allocate", ".nc.L1::no_allocate.L2::256B", ".L2::evict_first")
STORES: Final = ("", ".cs", ".cg", ".L1::no_allocate", ".L2::evict_first")
OWN_REGISTERS: Final = 16
"""Registers of a thread beside its vectors: NVRTC 13 takes 43 for 8 vectors, 77 for 16 (sm_90a)."""
POLICY: Final = ".L2::evict_first"
"""The operator that is a policy of the L2 cache."""

_ACCESS = """
// {what} 16 bytes by {instruction}.
__device__ __forceinline__ {result} la_copy_{verb}({parameters})
{{
#ifdef LA_HOST
    {plain}
#else
{body}#endif
}}
"""


@dataclass(frozen=True, slots=True)
class CopyLoop(Checked):
    """How the threads of a block copy.

    Example:
        >>> CopyLoop(each=4, load=".nc", store=".cs")
        CopyLoop(threads=256, each=4, turns=1, apart=False, load='.nc', store='.cs')
    """

    threads: int = 256  # threads of a block, a power of two from 32 to 1024
    each: int = 4  # vectors that a thread loads before it stores the first, 1 to 16
    turns: int = 1  # how often it does so, 1 to 8; indices of all turns are loaded first
    apart: bool = False  # whether the turns of a block lie a grid apart, rather than beside each other
    load: str = ""  # cache operator of loads, one of ``LOADS``
    store: str = ""  # cache operator of stores, one of ``STORES``

    def _validate(self) -> None:
        power(self.threads, "threads", 32, 1024)
        CHECK.integer(self.each, "each", 1, 17)
        CHECK.integer(self.turns, "turns", 1, 9)
        CHECK.choice(self.load, "load", LOADS)
        CHECK.choice(self.store, "store", STORES)

    def bounds(self, target: str) -> str:
        """Return the arguments of ``__launch_bounds__``: as many blocks together as have room for all vectors.

        Without them ptxas fits more blocks by storing some vectors before it loads others.

        Example:
            >>> CopyLoop().bounds("sm_90a"), CopyLoop(each=8).bounds("sm_90a"), CopyLoop().bounds("gfx942")
            ('256, 8', '256, 5', '256')
        """
        found = lookup(target)
        if found.vendor == "amd":
            return str(self.threads)
        file: Any = model_of(target).limit("registers_per_block")
        fit = file.value // (self.threads * (4 * self.each + OWN_REGISTERS))
        return f"{self.threads}, {max(1, min(found.blocks, found.threads // self.threads, fit))}"

    def prelude(self, target: str) -> str:
        """Return the device functions that ``moves`` calls, behind ``portable_prelude``."""
        text = ""
        if self._by(target, self.load):
            text += _access("load", self.load)
        return text + _access("store", self.store) if self._by(target, self.store) else text

    def moves(
        self,
        target: str,
        step: int,
        names: tuple[str, str],
        each: int | None = None,
        guards: tuple[Callable[[int], str], Callable[[int], str]] = (lambda _: "", lambda _: ""),
        indents: tuple[int, int] = (4, 4),
    ) -> tuple[str, str]:
        """Return the C statements that load a thread's vectors, and those that store them.

        Its vectors are ``step`` apart from the pointers on; vector i is loaded on the first guard, zero otherwise, and
        stored on the second.
        """
        loads, stores = "", ""
        for number in range(self.each if each is None else each):
            taken, put = (
                self.read(target, names[0], f"{number * step}"),
                self.write(target, names[1], f"{number * step}"),
            )
            loaded, stored = (guard(number) for guard in guards)
            taken = f"{loaded} ? {taken} : la_words4{{}}" if loaded else taken
            loads += f"{' ' * indents[0]}const la_words4 a{number} = {taken};\n"
            stores += f"{' ' * indents[1]}{f'if ({stored}) ' if stored else ''}{put.format(value=f'a{number}')};\n"
        return loads, stores

    def read(self, target: str, pointer: str, index: str) -> str:
        """Return the C expression of one vector behind a pointer."""
        if self._by(target, self.load):
            return f"la_copy_load({pointer} + {index})"
        if vendor_of(target) == "amd":  # clang for AMD would spill structs copied as a whole to scratch memory
            return f"la_words4{{{{{', '.join(fields(4, f'{pointer}[{index}]'))}}}}}"
        return f"{pointer}[{index}]"

    def write(self, target: str, pointer: str, index: str) -> str:
        """Return the C statement that stores ``{value}``, a place to format, behind a pointer."""
        if self._by(target, self.store):
            return f"la_copy_store({pointer} + {index}, {{value}})"
        return f"{pointer}[{index}] = {{value}}"

    def _by(self, target: str, operator: str) -> bool:
        """Whether an access is a function of the prelude."""
        return bool(operator) and vendor_of(target) == "nvidia"


def _access(verb: str, operator: str) -> str:
    """Return the device function of a load or a store with a cache operator."""
    load = verb == "load"
    held = '"=r"(found' if load else '"r"(value'
    words = ", ".join(f"{held}.word[{at}])" for at in range(4))
    places = "{%0, %1, %2, %3}, [%4]" if load else "[%0], {%1, %2, %3, %4}"
    name = f"{'ld' if load else 'st'}.global{operator if operator != POLICY else '.L2::cache_hint'}.v4.u32"
    operands = f': {words} : "l"(from)' if load else f':: "l"(into), {words}'
    body = "    la_words4 found;\n" if load else ""
    if operator == POLICY:
        body += '    la_u64 policy;\n    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));\n'
        places, operands = f"{places}, %5", f'{operands}, "l"(policy)'
    body += f'    asm volatile("{name} {places};"\n                 {operands});\n' + "    return found;\n" * load
    return _ACCESS.format(
        what=f"{verb.capitalize()}s", verb=verb, instruction=name, result="la_words4" if load else "void", body=body,
        parameters="const la_words4* from" if load else "la_words4* into, const la_words4& value",
        plain="return *from;" if load else "*into = value;",
    )  # fmt: skip


PLAIN_LOOP: Final = CopyLoop()
"""The loop of pieces below ``SHORT_BYTES``, whose lines several threads share: without operators of caches."""
COPY_LOOP: Final = CopyLoop(512, 2, load=".nc.L1::no_allocate", store=".L1::no_allocate")
"""The loop of contiguous memory: 0.98 of the driver's copy on an H200, which uses the copy engines. It leaves the L2
cache as it is; policies that evict gain less than 0.1 %."""
PAGE_LOOP: Final = replace(COPY_LOOP, threads=64)
"""The loop of pieces of at least ``PAGE_BYTES``: the fastest of the loops that were tried, 0.96 to 0.98 of the
driver's contiguous copy (``benchmarks/device.py indirect --only loops pages``). Small blocks spread the pages in
flight: blocks of 512 threads reach 0.93 to 0.95."""
SHORT_BYTES, PAGE_BYTES = 128, 2048


def piece_loop(size: int) -> CopyLoop:
    """Return the loop that copies pieces of contiguous bytes, ``size`` each.

    Example:
        >>> [piece_loop(size).threads for size in (64, 512, 4096)]
        [256, 512, 64]
    """
    return PLAIN_LOOP if size < SHORT_BYTES else PAGE_LOOP if size >= PAGE_BYTES else COPY_LOOP
