"""The 64-bit shared-memory matrix descriptor of ``tcgen05``: fields, encoding, decoding.

References: PTX ISA 9.1 section 9.7.16.4.1 (shared memory descriptor); not run on a device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, TargetRuleError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.codec import Codec, run, words_of
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, SWIZZLE_TABLE
from layoutalg.targets.registry import having, lookup

ARCHS = having("tcgen05")
"""Targets of the registry that have ``tcgen05``."""
UNIT_BYTES = CHUNK_BYTES
ADDRESS_LIMIT_BYTES = 1 << 18
"""Addresses and strides are below this: 14 bits of 16-byte units."""
_CODES = {name: code for name, entry in SWIZZLE_TABLE.items() if (code := entry.tcgen05_code) is not None}
SWIZZLE_CODES = dict(sorted(_CODES.items(), key=lambda item: item[1]))
SWIZZLES = tuple(SWIZZLE_CODES)
LEADING_MODES = ("relative", "absolute")
SOURCE = "PTX ISA 9.1 section 9.7.16.4.1"
CHECK = Checker("LA840", "invalid tcgen05 matrix descriptor")

_NAMES = {code: name for name, code in SWIZZLE_CODES.items()}
_VERSION = 0b001
_NUMBERS = ("start_address_bytes", "leading_bytes", "stride_bytes", "base_offset")
CODEC = Codec(
    (
        run("start_address_bytes[17:4]", 13, 0, "address / 16"),
        run("reserved", 15, 14, "0"),
        run("leading_bytes[17:4]", 29, 16, "bytes / 16"),
        run("reserved", 31, 30, "0"),
        run("stride_bytes[17:4]", 45, 32, "bytes / 16"),
        run("version", 48, 46, "0b001"),
        run("base_offset", 51, 49, "0..7"),
        run("leading_mode", 52, 52, "0 relative, 1 absolute"),
        run("reserved", 60, 53, "0"),
        run("swizzle", 63, 61, "0 NONE, 1 128B_ATOM_32B, 2 128B, 4 64B, 6 32B"),
    )
)
"""Every bit of the descriptor."""


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """Where one operand of one ``tcgen05.mma`` (or the source of a ``tcgen05.cp``) is in shared memory.

    Args:
        start_address_bytes: Shared byte address of the first element; a multiple of 16 below 2^18.
        leading_bytes: Leading dimension byte offset, or in the absolute mode the byte address of the second chunk; a
            multiple of 16 below 2^18.
        stride_bytes: Stride dimension byte offset; a multiple of 16 below 2^18.
        base_offset: 0..7: bits [9:7] of the address where the swizzle pattern starts.
        swizzle: ``"NONE"``, ``"32B"``, ``"64B"``, ``"128B"`` or ``"128B_ATOM_32B"``.
        leading_mode: ``"relative"``, or ``"absolute"`` for K of 48 bytes (sm_103a).

    Raises: MalformedError: LA840. TargetRuleError: LA841 (rule TCGEN05_LBO_MODE).

    Example:
        >>> d = MatrixDescriptor(start_address_bytes=32, leading_bytes=16, stride_bytes=1024, swizzle="128B")
        >>> hex(d.encode())
        '0x4000404000010002'
        >>> decode(d.encode()) == d
        True
    """

    start_address_bytes: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int = 0
    swizzle: str = "NONE"
    leading_mode: str = "relative"

    def __post_init__(self) -> None:
        checked_kinds(self, "LA840")
        for name in ("start_address_bytes", "leading_bytes", "stride_bytes"):
            value = CHECK.integer(getattr(self, name), name, 0, ADDRESS_LIMIT_BYTES)
            if value % UNIT_BYTES:
                raise CHECK.malformed(name, f"must be a multiple of {UNIT_BYTES}", value)
        CHECK.integer(self.base_offset, "base_offset", 0, 8)
        CHECK.choice(self.swizzle, "swizzle", SWIZZLES)
        if self.leading_mode not in LEADING_MODES:
            raise CHECK.malformed("leading_mode", "must be relative or absolute", self.leading_mode)
        if self.leading_mode == "absolute":
            if self.swizzle != "128B":
                raise broken("TCGEN05_LBO_MODE", f"the absolute mode requires the 128B swizzle, not {self.swizzle}")
            if self.base_offset:
                raise broken("TCGEN05_LBO_MODE", f"the absolute mode requires base offset 0, not {self.base_offset}")

    def encode(self) -> int:
        """Return the 64 bits as an unsigned integer.

        Example:
            >>> hex(MatrixDescriptor(0, 128, 256, 5, "32B").encode())
            '0xc00a401000080000'
        """
        modes = {"leading_mode": LEADING_MODES.index(self.leading_mode), "swizzle": SWIZZLE_CODES[self.swizzle]}
        return CODEC.integer({name: getattr(self, name) for name in _NUMBERS} | modes | {"version": _VERSION})

    def moved(self, by_bytes: int) -> MatrixDescriptor:
        """Return the descriptor with its start address moved.

        Args:
            by_bytes: A multiple of 16; the new start address stays in 18 bits.

        Example:
            >>> MatrixDescriptor(0, 16, 1024, 0, "128B").moved(32).start_address_bytes
            32
        """
        return replace(self, start_address_bytes=self.start_address_bytes + CHECK.integer(by_bytes, "by_bytes"))


def broken(rule: str, because: str, code: str = "LA841", source: str = SOURCE) -> TargetRuleError:
    """Return the error for a broken rule of ``tcgen05``."""
    return TargetRuleError(Diagnostic(code, "tcgen05 does not allow this", (rule,), because, source=source), rule)


def decode(raw: int) -> MatrixDescriptor:
    """Decode 64 bits; the inverse of ``MatrixDescriptor.encode``.

    Args:
        raw: Unsigned 64-bit integer.

    Raises: MalformedError: LA840. TargetRuleError: LA841: rules TCGEN05_VERSION (bits of a ``wgmma`` descriptor among
        them), TCGEN05_RESERVED, TCGEN05_SWIZZLE, TCGEN05_LBO_MODE.

    Example:
        >>> decode(0x4000404000010002)
        MatrixDescriptor(start_address_bytes=32, leading_bytes=16, stride_bytes=1024, base_offset=0, swizzle='128B', \
leading_mode='relative')
        >>> decode(0x4000004000010002)  # what wgmma calls the 128B swizzle
        Traceback (most recent call last):
        layoutalg.ground.errors.TargetRuleError: LA841 tcgen05 does not allow this
          in     TCGEN05_VERSION
          since  bits [48:46] are 0b000 in 0x4000004000010002, must be 0b001; 0b000 is a wgmma descriptor of sm_90a
          see    PTX ISA 9.1 section 9.7.16.4.1
    """
    word = CHECK.integer(raw, "raw", 0, 1 << 64)
    words = words_of(word, CODEC.words)
    read = CODEC.decode(words)
    version, swizzle = read["version"], read["swizzle"]
    if version != _VERSION:
        hint = "; 0b000 is a wgmma descriptor of sm_90a" if version == 0 else ""
        raise broken("TCGEN05_VERSION", f"bits [48:46] are {version:#05b} in {word:#018x}, must be 0b001{hint}")
    for field, bits in CODEC.held(words, ("reserved",)):
        if bits:
            place = f"reserved bits [{field.last}:{field.first}]"
            raise broken("TCGEN05_RESERVED", f"{place} hold {bits:#x} in {word:#018x}; must be 0")
    if swizzle not in _NAMES:
        raise broken("TCGEN05_SWIZZLE", f"bits [63:61] hold the swizzle code {swizzle}; 0, 1, 2, 4 and 6 are valid")
    numbers = {name: read[name] for name in _NUMBERS}
    return MatrixDescriptor(**numbers, swizzle=_NAMES[swizzle], leading_mode=LEADING_MODES[read["leading_mode"]])


def has_tcgen05(target: str) -> bool:
    """Return whether a target has ``tcgen05``: sm_100a and sm_103a do, sm_120a does not.

    Example:
        >>> has_tcgen05("sm_103a"), has_tcgen05("sm_120a")
        (True, False)
    """
    return lookup(target).arch in ARCHS


def descriptor_violations(
    descriptor: MatrixDescriptor, target: str = "sm_100a", major: str = "K", element_bits: int = 16
) -> tuple[Violation, ...]:
    """Return the rules that a descriptor breaks for an operand; () if none.

    Args:
        descriptor: The descriptor.
        target: Architecture.
        major: ``"K"`` (transpose bit 0) or ``"MN"`` (transpose bit 1).
        element_bits: Bits of an element: 4, 6, 8, 16 or 32.

    Example:
        >>> d = MatrixDescriptor(0, 128, 1024, 0, "128B_ATOM_32B")
        >>> descriptor_violations(d, major="MN", element_bits=32)
        ()
        >>> [broken.rule for broken in descriptor_violations(d, major="MN", element_bits=16)]
        ['TCGEN05_TRANSPOSE_SWIZZLE']

    Source: PTX ISA 9.1 sections 9.7.16.3.1 and 9.7.16.10.3, tables 51 and 54.
    """
    given = CHECK.kind(descriptor, MatrixDescriptor, "descriptor")
    if not isinstance(major, str) or major not in ("K", "MN"):
        raise CHECK.malformed("major", "must be K or MN", major)
    bits = CHECK.integer(element_bits, "element_bits")
    if bits not in (4, 6, 8, 16, 32):
        raise CHECK.malformed("element_bits", "must be 4, 6, 8, 16 or 32", bits)
    found = []
    if not has_tcgen05(target):
        found.append(Violation("TCGEN05_ARCH", f"{target} has no tcgen05; {' and '.join(ARCHS)} do", "target", None))
    if given.leading_mode == "absolute":
        if target != "sm_103a":
            because = f"the absolute leading mode exists on sm_103a, not on {target}"
            found.append(Violation("TCGEN05_LBO_MODE", because, "leading_mode", 1))
        if major != "K":
            because = "the absolute leading mode allows only K-major operands"
            found.append(Violation("TCGEN05_LBO_MODE", because, "leading_mode", 1))
    if major == "MN" and bits < 8:
        because = f"{bits}-bit elements must be K-major"
        found.append(Violation("TCGEN05_TRANSPOSE_TYPE", because, "major", bits))
    elif major == "MN" and (given.swizzle == "128B_ATOM_32B") != (bits == 32):
        needs = "the 128B swizzle with 32-byte atoms" if bits == 32 else "a swizzle without 32-byte atoms"
        because = f"MN-major operands of {bits} bits need {needs}, not {given.swizzle}"
        found.append(Violation("TCGEN05_TRANSPOSE_SWIZZLE", because, "swizzle", SWIZZLE_CODES[given.swizzle]))
    return tuple(found)
