"""The 64-bit shared-memory matrix descriptor of ``wgmma``: fields, encoding, decoding.

References: PTX ISA 9.1 section 9.7.15.5 (matrix descriptor format).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.targets.codec import Codec, run, words_of
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, PLAIN, SWIZZLE_TABLE

UNIT_BYTES = CHUNK_BYTES
ADDRESS_LIMIT_BYTES = 1 << 18
"""Addresses and strides are below this: 14 bits of 16-byte units."""
BASE_OFFSET_LIMIT = 8
SWIZZLES = PLAIN
SOURCE = "PTX ISA 9.1 section 9.7.15.5"

_CODES = {name: code for name, entry in SWIZZLE_TABLE.items() if (code := entry.wgmma_code) is not None}
_NAMES = {code: name for name, code in _CODES.items()}
CODEC = Codec(
    (
        run("start_address_bytes[17:4]", 13, 0, "address / 16"),
        run("reserved", 15, 14, "0"),
        run("leading_bytes[17:4]", 29, 16, "bytes / 16"),
        run("reserved", 31, 30, "0"),
        run("stride_bytes[17:4]", 45, 32, "bytes / 16"),
        run("reserved", 48, 46, "0"),
        run("base_offset", 51, 49, "0..7"),
        run("reserved", 61, 52, "0"),
        run("swizzle", 63, 62, "0 NONE, 1 128B, 2 64B, 3 32B"),
    )
)
"""Every bit of the descriptor."""
_STRIDE_FIELDS = ("start_address_bytes", "leading_bytes", "stride_bytes")


def malformed(code: str, what: str, because: str, where: str = "MatrixDescriptor") -> MalformedError:
    """Return the error for an invalid descriptor value."""
    return MalformedError(Diagnostic(code, what, (where,), because, source=SOURCE))


def checked_integer(name: str, value: object, where: str = "MatrixDescriptor") -> int:
    """Return ``value`` as an int; numpy integers count, booleans and floats do not."""
    if type(value) is int:
        return value
    if not isinstance(value, bool) and hasattr(type(value), "__index__"):
        try:
            return value.__index__()  # type: ignore[attr-defined, no-any-return]
        except TypeError:  # a one-element array has __index__ but raises
            pass
    raise malformed("LA350", f"{name} is not an integer", f"{name} must be an integer, not {shown(value)}", where)


def checked_swizzle(name: object, where: str = "MatrixDescriptor") -> str:
    """Return a swizzle name of ``SWIZZLES``."""
    if not isinstance(name, str) or name not in SWIZZLES:
        because = f"swizzle must be one of {', '.join(SWIZZLES)}, not {shown(name)}"
        raise malformed("LA354", "the wgmma descriptor has no such swizzle", because, where)
    return str(name)


def swizzle_rows(swizzle: str) -> int:
    """Return W: the number of 16-byte chunks in the swizzle span, which is also the number of XOR phases.

    Example:
        >>> [swizzle_rows(name) for name in SWIZZLES]
        [1, 2, 4, 8]
    """
    return SWIZZLE_TABLE[checked_swizzle(swizzle, "swizzle_rows")].phases


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """Where one operand of one ``wgmma`` instruction is in shared memory.

    Args:
        start_address_bytes: Shared byte address of the first element's chunk; a multiple of 16 below 2^18.
        leading_bytes: Leading dimension byte offset; a multiple of 16 below 2^18.
        stride_bytes: Stride dimension byte offset; a multiple of 16 below 2^18.
        base_offset: 0..7; subtracts from the row phase of the swizzle.
        swizzle: ``"NONE"``, ``"32B"``, ``"64B"`` or ``"128B"``.

    Example:
        >>> d = MatrixDescriptor(start_address_bytes=32, leading_bytes=16, stride_bytes=1024, swizzle="128B")
        >>> hex(d.encode())
        '0x4000004000010002'
        >>> decode(d.encode()) == d
        True
    """

    start_address_bytes: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int = 0
    swizzle: str = "NONE"

    def __post_init__(self) -> None:
        for name in _STRIDE_FIELDS:
            value = checked_integer(name, getattr(self, name))
            if value % UNIT_BYTES:
                because = f"{name} = {shown(value)} is {value % UNIT_BYTES} modulo 16"
                raise malformed("LA351", f"{name} is not a multiple of 16", because)
            if not 0 <= value < ADDRESS_LIMIT_BYTES:
                because = f"{name} = {shown(value)} is outside 0..{ADDRESS_LIMIT_BYTES - UNIT_BYTES}"
                raise malformed("LA352", f"{name} does not fit its 18 bits", because)
            object.__setattr__(self, name, value)
        offset = checked_integer("base_offset", self.base_offset)
        if not 0 <= offset < BASE_OFFSET_LIMIT:
            raise malformed(
                "LA353", "base_offset does not fit its 3 bits", f"base_offset = {shown(offset)} is outside 0..7"
            )
        object.__setattr__(self, "base_offset", offset)
        object.__setattr__(self, "swizzle", checked_swizzle(self.swizzle))

    def encode(self) -> int:
        """Return the 64 bits as an unsigned integer.

        Example:
            >>> hex(MatrixDescriptor(0, 128, 256, 5, "32B").encode())
            '0xc00a001000080000'
        """
        return CODEC.integer(
            {
                "start_address_bytes": self.start_address_bytes,
                "leading_bytes": self.leading_bytes,
                "stride_bytes": self.stride_bytes,
                "base_offset": self.base_offset,
                "swizzle": _CODES[self.swizzle],
            }
        )

    def moved(self, by_bytes: int) -> MatrixDescriptor:
        """Return the descriptor with its start address moved.

        Args:
            by_bytes: A multiple of 16; the new start address stays in 18 bits.

        Example:
            >>> MatrixDescriptor(0, 16, 1024, 0, "128B").moved(32).start_address_bytes
            32
        """
        return replace(self, start_address_bytes=self.start_address_bytes + checked_integer("by_bytes", by_bytes))


def decode(raw: int) -> MatrixDescriptor:
    """Decode 64 bits; the inverse of ``MatrixDescriptor.encode``.

    Args:
        raw: Unsigned 64-bit integer.

    Example:
        >>> decode(0x4000004000010002)
        MatrixDescriptor(start_address_bytes=32, leading_bytes=16, stride_bytes=1024, base_offset=0, swizzle='128B')
    """
    word = checked_integer("raw", raw, "decode")
    if not 0 <= word < 1 << 64:
        raise malformed("LA355", "raw is not an unsigned 64-bit integer", f"raw = {shown(word)}", "decode")
    words = words_of(word, CODEC.words)
    for field, bits in CODEC.held(words, ("reserved",)):
        if bits:
            place = f"reserved bits [{field.last}:{field.first}]"
            raise malformed("LA356", f"{place} are set", f"{place} hold {bits:#x} in {word:#018x}; must be 0", "decode")
    read = CODEC.decode(words)
    numbers = {name: read[name] for name in (*_STRIDE_FIELDS, "base_offset")}
    return MatrixDescriptor(**numbers, swizzle=_NAMES[read["swizzle"]])
