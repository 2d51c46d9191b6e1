"""Which shared byte ``tcgen05.mma`` reads for each element of an operand, as documented.

Main statements: an operand is read by the documented canonical layouts: in chunks of 16 bytes, whose address is the
start plus one step per digit of (mn, k); the swizzle then XORs bits of the whole address. The 4- and 6-bit elements of
the f8f6f4 kinds are packed sixteen to a chunk, from its first bit on.

Implementation notes: refused because no available document covers them: operand rows that run past their swizzle span;
K-major operands under 32-byte atoms; where the absolute leading mode splits K; nonzero base offsets for 32-byte atoms.

References: PTX ISA 9.1 sections 9.7.16.3.3 (canonical layouts), 9.7.16.4.1 and 9.7.16.10; CUTLASS 4, the canonical
layout of 32-byte atoms.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import TargetRuleError
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia.reading import ROW_BYTES, Digit, Meaning, denoted, offsets, step_bytes
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tcgen05.descriptor import (
    ADDRESS_LIMIT_BYTES,
    UNIT_BYTES,
    MatrixDescriptor,
    broken,
    descriptor_violations,
)
from layoutalg.targets.nvidia.tcgen05.instruction import BITS, KINDS, Kind, checked_kind

MAJORS = ("K", "MN")
SOURCE = "PTX ISA 9.1 section 9.7.16.3.3"
CHECK = Checker("LA844", "invalid tcgen05.mma operand")


@fact("LA844")
class ReadPattern:
    """How chunks of an operand split into digits, fastest first, and what each digit adds to the address.

    Args:
        inner: Elements of one chunk of 16 bytes, contiguous along the major coordinate.
        mn: Digits of the row coordinate of a K-major operand, or of the row chunks of an MN-major one.
        k: Digits of the K coordinate (MN-major), or of its chunks (K-major).
    """

    inner: int
    mn: tuple[Digit, ...]
    k: tuple[Digit, ...]


def operand_kind(dtype: str, kind: str | None = None) -> Kind:
    """Return the kind that multiplies elements of a type: the given one, or the first that has the type.

    Example:
        >>> operand_kind("e4m3").name, operand_kind("e2m1", "mxf4").container_bits
        ('f8f6f4', 4)
    """
    CHECK.choice(dtype, "dtype", BITS)
    found = next(entry for entry in KINDS.values() if dtype in entry.types) if kind is None else checked_kind(kind)
    if dtype not in found.types:
        raise CHECK.malformed("dtype", f"must be one of {', '.join(found.types)} for {found.name}", dtype)
    return found


def read_pattern(major: str, swizzle: str, container_bits: int = 16, k_bytes: int = 32) -> ReadPattern:
    """Return the digits of an operand for one major and one swizzle mode, before the XOR.

    Args:
        major: ``"K"`` (transpose bit 0) or ``"MN"`` (transpose bit 1).
        swizzle: A name of ``SWIZZLES``.
        container_bits: Bits per element in shared memory: 4, 8, 16 or 32.
        k_bytes: Bytes along K of one instruction: 32; 64 for B if A is sparse; 48 for 96 4-bit elements.

    Raises: MalformedError: LA840, LA844. TargetRuleError: LA845: rules TCGEN05_NOT_DOCUMENTED,
        TCGEN05_TRANSPOSE_SWIZZLE, TCGEN05_TRANSPOSE_TYPE.

    Example:
        >>> read_pattern("K", "128B")
        ReadPattern(inner=8, mn=((8, 128), (0, 'stride_bytes')), k=((0, 16),))
        >>> read_pattern("MN", "64B", 8)
        ReadPattern(inner=16, mn=((4, 16), (0, 'leading_bytes')), k=((8, 64), (0, 'stride_bytes')))
        >>> read_pattern("MN", "128B_ATOM_32B", 32)
        ReadPattern(inner=4, mn=((8, 16), (0, 'leading_bytes')), k=((4, 128), (0, 'stride_bytes')))
    """
    found, missing = continued_pattern(major, swizzle, container_bits, k_bytes)
    if missing:
        raise undocumented(missing)
    return found


def continued_pattern(major: str, swizzle: str, container_bits: int, k_bytes: int) -> tuple[ReadPattern, str]:
    """Return the pattern, even if it extrapolates documented ones, and what is undocumented about it; "" if nothing.

    Raises: MalformedError: LA840, LA844. TargetRuleError: LA845: forbidden by documents.

    Example:
        >>> continued_pattern("K", "32B", 16, 64)[1]
        'where 64 bytes along K continue past a span of 32'
    """
    CHECK.choice(major, "major", MAJORS)
    bits = CHECK.integer(container_bits, "container_bits")
    if bits not in (4, 8, 16, 32):
        raise CHECK.malformed("container_bits", "must be 4, 8, 16 or 32", bits)
    along = CHECK.integer(k_bytes, "k_bytes")
    if along not in (32, 48, 64):
        raise CHECK.malformed("k_bytes", "must be 32, 48 or 64", along)
    for violation in descriptor_violations(MatrixDescriptor(0, 0, 0, 0, swizzle), "sm_100a", major, bits):
        raise broken(violation.rule, violation.message, "LA845", SOURCE)
    span, inner = SWIZZLE_TABLE[swizzle].span_bytes, 128 // bits
    if major == "K":
        if swizzle == "NONE":
            return ReadPattern(inner, ((8, 16), (0, "stride_bytes")), ((0, "leading_bytes"),)), ""
        missing = ""
        ks: tuple[Digit, ...] = ((0, 16),)
        if swizzle == "128B_ATOM_32B":
            missing = "the canonical layout of K-major operands under 32-byte atoms"
        elif along > span:
            missing = f"where {along} bytes along K continue past a span of {span}"
            ks = ((span // UNIT_BYTES, 16), (0, "leading_bytes"))
        return ReadPattern(inner, ((8, span), (0, "stride_bytes")), ks), missing
    if swizzle == "NONE":
        return ReadPattern(inner, ((0, "stride_bytes"),), ((8, 16), (0, "leading_bytes"))), ""
    group = 4 if swizzle == "128B_ATOM_32B" else 8
    chunks: tuple[Digit, ...] = ((span // UNIT_BYTES, 16), (0, "leading_bytes"))
    return ReadPattern(inner, chunks, ((group, span), (0, "stride_bytes"))), ""


def swizzled(addresses: npt.NDArray[np.int64], swizzle: str, base_offset: int = 0) -> npt.NDArray[np.int64]:
    """Return byte addresses after the XOR of a swizzle whose pattern starts at ``base_offset`` times 128 bytes.

    Example:
        >>> swizzled(np.array([0, 128, 256]), "128B_ATOM_32B").tolist()
        [0, 160, 320]
    """
    if not isinstance(addresses, np.ndarray) or addresses.dtype.kind not in "iu":
        raise CHECK.malformed("addresses", "must be an array of integers", addresses)
    name = MatrixDescriptor(0, 0, 0, base_offset, swizzle).swizzle
    given = addresses.astype(np.int64, copy=False)
    moved, answer = given - ROW_BYTES * base_offset, given.copy()
    for target, source in SWIZZLE_TABLE[name].xor:
        answer ^= (moved >> source & 1) << target
    return answer


def operand_bits(
    descriptor: MatrixDescriptor,
    dtype: str,
    rows: int,
    k: int | None = None,
    *,
    major: str = "K",
    kind: str | None = None,
) -> npt.NDArray[np.int64]:
    """Return the bit address that one instruction reads for each element of its operand.

    Args:
        descriptor: The descriptor; its start address is taken as absolute.
        dtype: Element type of the operand.
        rows: Rows in this block's shared memory: a multiple of 8, at most 256.
        k: Elements along K: those of a dense instruction (the default); twice as many for B if A is sparse; 96.
        major: ``"K"`` or ``"MN"``.
        kind: A name of ``KINDS``; None for the first that has the type.

    Returns:
        int64[rows, k].

    Example:
        >>> d = MatrixDescriptor(0, 16, 1024, 0, "128B")
        >>> (operand_bits(d, "bf16", 64)[:3, [0, 8]] // 8).tolist()
        [[0, 16], [144, 128], [288, 304]]
        >>> operand_bits(d, "e2m1", 64)[0, [0, 1, 15, 16]].tolist()  # sixteen to a chunk, then padding
        [0, 4, 60, 128]
    """
    read, missing = continued_bits(descriptor, dtype, rows, k, major=major, kind=kind)
    if missing:
        raise undocumented(missing)
    return read


def continued_bits(
    descriptor: MatrixDescriptor,
    dtype: str,
    rows: int,
    k: int | None = None,
    *,
    major: str = "K",
    kind: str | None = None,
) -> tuple[npt.NDArray[np.int64], str]:
    """Return ``operand_bits``, even if that extrapolates documented reads, and what is undocumented about it.

    Raises: MalformedError: LA842, LA844. TargetRuleError: LA845: forbidden by documents.

    Example:
        >>> continued_bits(MatrixDescriptor(112, 16, 1024, 0, "128B"), "bf16", 64)[1]
        'where a row of 32 bytes continues that starts 112 bytes into a span of 128'
    """
    _, count, along, pattern, missing = _checked(descriptor, dtype, rows, k, major, kind)
    mn, ks = np.arange(count, dtype=np.int64), np.arange(along, dtype=np.int64)
    inside, step = pattern.inner, BITS[dtype]
    near = ks % inside if major == "K" else mn % inside
    rows_of, columns_of = (mn, ks // inside) if major == "K" else (mn // inside, ks)
    chunk = offsets(descriptor, pattern.mn, count)[rows_of][:, None]
    chunk = chunk + offsets(descriptor, pattern.k, along)[columns_of][None, :]
    linear = descriptor.start_address_bytes + chunk
    if int(linear.max()) + UNIT_BYTES > ADDRESS_LIMIT_BYTES:
        raise broken("TCGEN05_ADDRESS", f"it reaches byte {int(linear.max()) + 15}; the limit is 2^18", "LA845", SOURCE)
    # the swizzle permutes whole chunks, so the position in the chunk is added after it
    answer = 8 * swizzled(linear, descriptor.swizzle, descriptor.base_offset)
    return answer + step * (near[None, :] if major == "K" else near[:, None]), missing


def layout(
    descriptor: MatrixDescriptor,
    dtype: str,
    rows: int = 128,
    k: int | None = None,
    *,
    major: str = "K",
    kind: str | None = None,
    unit: str = "element",
) -> Meaning:
    """Return the function that a descriptor denotes: (mn, k) to the place in shared memory that is read.

    Mathematically: ``operand_bits`` as a layout value: c -> p + Sw(s + C(c)), with C the digits of both coordinates
    times their steps, s the start less 128 bytes per unit of base offset, and p those bytes again.

    Args:
        descriptor: The descriptor; its start address is taken as absolute.
        dtype: Element type of the operand.
        rows: As for ``operand_bits``.
        k: As for ``operand_bits``.
        major: ``"K"`` or ``"MN"``.
        kind: As for ``operand_bits``.
        unit: ``"element"``, ``"byte"`` (for whole-byte elements) or ``"bit"``.

    Returns:
        A two-mode ``CuteLayout``; a ``ComposedLayout`` if there is a swizzle or an offset; a ``PiecewiseLayout`` of
        ``mn`` and ``k`` if the rows of an MN-major operand end inside a span. An ``"element"`` is its container in
        shared memory: for 4- and 6-bit elements of the f8f6f4 kinds, a byte of their chunk of 16.

    Example:
        >>> print(layout(MatrixDescriptor(0, 16, 1024, 0, "128B"), "bf16"))
        Sw<3,3,3> o 0 o (128,16):(64,1)
        >>> print(layout(MatrixDescriptor(0, 256, 128), "tf32", 64, unit="byte"))
        (64,(4,2)):(16,(4,256))
        >>> print(layout(MatrixDescriptor(0, 4096, 512, 0, "128B_ATOM_32B"), "tf32", 64, major="MN"))
        Sw<2,3,2> o 0 o ((32,2),8):((1,1024),32)

    Laws: equals ``operand_bits`` divided by the unit, at every coordinate.
    Source: PTX ISA 9.1 section 9.7.16.3.3.
    """
    entry, count, along, pattern, missing = _checked(descriptor, dtype, rows, k, major, kind)
    if missing:
        raise undocumented(missing)
    if not isinstance(unit, str) or unit not in ("element", "byte", "bit") or (unit == "byte" and BITS[dtype] < 8):
        raise CHECK.malformed("unit", "must be element, bit or, for elements of whole bytes, byte", unit)
    in_bits = {"element": entry.container_bits, "byte": 8, "bit": 1}[unit]
    # inside a chunk elements are packed by their own bits; counted in elements, they have their nominal positions
    near = [(pattern.inner, 1 if unit == "element" else BITS[dtype] // in_bits)]

    def units(digits: tuple[Digit, ...]) -> list[tuple[int, int]]:
        return [(size, 8 * step_bytes(descriptor, step) // in_bits) for size, step in digits]

    digits = units(pattern.mn), units(pattern.k)
    whole = (digits[0], near + digits[1]) if major == "K" else (near + digits[0], digits[1])
    return denoted(descriptor, whole, (count, along), in_bits, join=True)


def _checked(
    descriptor: object, dtype: str, rows: int, k: int | None, major: str, kind: str | None
) -> tuple[Kind, int, int, ReadPattern, str]:
    """Return the kind, the extents, the pattern and what is undocumented about it."""
    given = CHECK.kind(descriptor, MatrixDescriptor, "descriptor")
    entry = operand_kind(dtype, kind)
    count = CHECK.integer(rows, "rows", 8, 257)
    if count % 8:
        raise CHECK.malformed("rows", "must be a multiple of 8", count)
    along = entry.k if k is None else CHECK.integer(k, "k")
    if along not in (entry.k, 2 * entry.k) and (along, entry.container_bits) != (96, 4):
        raise CHECK.malformed("k", f"must be {entry.k} or, for B with sparse A, {2 * entry.k}", along)
    CHECK.choice(major, "major", MAJORS)
    if major == "MN" and (not entry.transposes or BITS[dtype] < 8):
        raise broken("TCGEN05_TRANSPOSE_TYPE", f"{dtype} of {entry.name} is K-major only", "LA845", SOURCE)
    k_bytes = along * entry.container_bits // 8
    pattern, missing = continued_pattern(major, given.swizzle, entry.container_bits, k_bytes)
    if major == "MN" and count % pattern.inner:
        raise CHECK.malformed("rows", f"must be a multiple of {pattern.inner} for MN-major {dtype}", count)
    return entry, count, along, pattern, missing or _missing(given, pattern, count, k_bytes, major)


def _missing(given: MatrixDescriptor, pattern: ReadPattern, rows: int, k_bytes: int, major: str) -> str:
    """What is undocumented about these reads; "" if nothing."""
    if given.leading_mode == "absolute":
        return "where the absolute leading mode splits K"
    if given.base_offset and given.swizzle == "128B_ATOM_32B":
        return "base offsets of patterns with 32-byte atoms"
    along = k_bytes * pattern.inner // UNIT_BYTES
    for digits, extent in ((pattern.mn, rows), (pattern.k, along)):
        rest = extent // pattern.inner if (digits is pattern.mn) == (major == "MN") else extent
        for size, step in digits:
            if isinstance(step, str) and rest > 1 and getattr(given, step) == 0:
                return f"{step} = 0 that is read"
            rest = -(-rest // size) if size else 1
    if given.swizzle != "NONE":
        span = SWIZZLE_TABLE[given.swizzle].span_bytes
        row = rows * UNIT_BYTES // pattern.inner
        run, into = k_bytes if major == "K" else min(span, row), given.start_address_bytes % span
        if into + run > span:
            return f"where a row of {run} bytes continues that starts {into} bytes into a span of {span}"
    return ""


def undocumented(what: str) -> TargetRuleError:
    """Return the error for undocumented reads."""
    return broken("TCGEN05_NOT_DOCUMENTED", f"no available document states {what}", "LA845", SOURCE)
