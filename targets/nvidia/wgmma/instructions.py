"""Which multiplications ``wgmma`` has: operand types, accumulators, K, N, what may be transposed, negated or sparse.

Main statements: one instruction reads 256 bits of every row of A and of B along K; with sparse A, 256 stored bits of A
meet 512 bits of B. Only 16-bit operands in shared memory may be MN-major.

References: PTX ISA 9.1 section 9.7.15.2 (shapes), 9.7.15.5 and 9.7.15.6 (dense and sparse instructions). N = 240 and
256 of the integer types are missing from the document's syntax but not from its shapes; the assembler accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia.wgmma.descriptor import checked_integer

SOURCE = "PTX ISA 9.1 section 9.7.15"
OPERAND_BITS: Mapping[str, int] = MappingProxyType(
    {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
)
"""Element types of operands and their width in shared memory."""
K_BITS = 256
"""Bits of one operand row that an instruction reads."""
FLOAT_N = tuple(range(8, 257, 8))
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


@fact("LA374")
class Multiply:
    """One pair of operand types.

    Args:
        a: Element type of A.
        b: Element type of B.
        accumulators: Element types of D.
        n: Legal numbers of columns of an instruction.
        transposable: Whether an operand in shared memory may be MN-major.
        negatable: Whether immediates may negate A and B.
        sparse: Whether A may be sparse.
    """

    a: str
    b: str
    accumulators: tuple[str, ...]
    n: tuple[int, ...]
    transposable: bool
    negatable: bool
    sparse: bool

    @property
    def bits(self) -> int:
        """Element width of A and B."""
        return OPERAND_BITS[self.a]

    @property
    def k(self) -> int:
        """Elements along K of one dense instruction; twice as many for a sparse one."""
        return K_BITS // self.bits


def _all() -> dict[tuple[str, str], Multiply]:
    half, single, whole = ("f16", "f32"), ("f32",), ("s32",)
    made = [
        Multiply("f16", "f16", half, FLOAT_N, True, True, True),
        Multiply("bf16", "bf16", single, FLOAT_N, True, True, True),
        Multiply("tf32", "tf32", single, FLOAT_N, False, True, True),
        Multiply("b1", "b1", whole, INTEGER_N, False, False, False),
    ]
    made += [Multiply(a, b, half, FLOAT_N, False, True, True) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
    made += [Multiply(a, b, whole, INTEGER_N, False, False, True) for a in ("s8", "u8") for b in ("s8", "u8")]
    return {(entry.a, entry.b): entry for entry in made}


MULTIPLIES: Mapping[tuple[str, str], Multiply] = MappingProxyType(_all())
"""By the element types of A and B."""


def multiply(a: str, b: str | None = None) -> Multiply:
    """Return the multiplication of two element types.

    Args:
        a: Element type of A.
        b: Element type of B; None for that of A.

    Example:
        >>> multiply("e4m3", "e5m2").accumulators, multiply("s8", "u8").k
        (('f16', 'f32'), 32)
    """
    other = a if b is None else b
    found = MULTIPLIES.get((a, other)) if isinstance(a, str) and isinstance(other, str) else None
    if found is None:
        pairs = ", ".join(dict.fromkeys(f"{x} x {y}" for x, y in MULTIPLIES))
        because = f"operands must be {pairs}, not {shown(a)} x {shown(other)}"
        raise MalformedError(Diagnostic("LA810", "no such wgmma multiplication", (), because, source=SOURCE))
    return found


def instruction_k(element_bits: int, sparse: bool = False) -> int:
    """Return the elements along K that one instruction multiplies.

    Args:
        element_bits: 1, 8, 16 or 32.
        sparse: Whether A is sparse.

    Example:
        >>> [instruction_k(bits) for bits in (16, 32, 8, 1)]
        [16, 8, 32, 256]
    """
    if not isinstance(sparse, bool):
        because = f"sparse must be True or False, not {shown(sparse)}"
        raise MalformedError(Diagnostic("LA810", "no such wgmma multiplication", ("instruction_k",), because))
    return (2 if sparse else 1) * K_BITS // checked_bits(element_bits)


def checked_bits(element_bits: object, where: str = "instruction_k") -> int:
    """Check an operand's element width and return it."""
    bits = checked_integer("element_bits", element_bits, where)
    if bits not in OPERAND_BITS.values():
        known = ", ".join(str(known) for known in sorted({*OPERAND_BITS.values()}))
        because = f"element_bits must be one of {known}, not {shown(bits)}"
        raise MalformedError(Diagnostic("LA810", "wgmma has no operands of this width", (where,), because))
    return bits


def n_values(dtype: str) -> tuple[int, ...]:
    """Return the legal numbers of columns for this element type of B.

    Example:
        >>> n_values("s8")[:6], len(n_values("f16"))
        ((8, 16, 24, 32, 48, 64), 32)
    """
    return multiply(dtype).n
