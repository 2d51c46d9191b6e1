"""``wgmma`` operand problems and plans: a shared-memory operand, and the descriptors claimed to read it.

Element (mn, k) of the tile is at ``tile base + XOR(smem_base_bytes + size * sum(digit * stride))``, where the XOR of
the swizzle acts on absolute shared byte addresses, digits are mixed-radix, fastest first, ``size`` is the element size
(``b1``: an eighth of a byte; strides count bits, and element (mn, k) is bit ``offset mod 8`` of its byte), and the tile
base is any multiple of ``align_bytes``. A plan's descriptors are for the tile base 0; for another base, add base/16 to
the low word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.document import Reader, malformed
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import element_type, read_choice, stated_type
from layoutalg.proofs.fields import (
    Claim,
    Digits,
    Statement,
    integer,
    plain,
    read_digits,
    set_fields,
    text,
)
from layoutalg.proofs.fields import malformed as malformed_field
from layoutalg.proofs.wgmma.text import operand_text
from layoutalg.targets.nvidia import wgmma as hardware

PROBLEM_SCHEMA = "layoutalg/wgmma-problem/1"
PLAN_SCHEMA = "layoutalg/wgmma-plan/1"
MAX_INT = 2**63 - 1
STRIDE_FIELDS = ("leading_bytes", "stride_bytes")
EVIDENCE = ("measured", "modelled")
DEFAULT_ALIGN_BYTES = 1024
"""The largest swizzle period: a base aligned to it suits every swizzle."""


@dataclass(frozen=True, slots=True)
class OperandProblem(Statement):
    """A shared-memory tile to be read as ``wgmma`` operand A or B.

    Args:
        operand: ``"A"`` (rows are M) or ``"B"`` (rows are N).
        shape: ``(mn, k)`` in elements.
        smem_modes: For MN, then for K: ``(extent, element stride)`` digits, fastest first.
        swizzle: ``"NONE"``, ``"32B"``, ``"64B"`` or ``"128B"``; acts on absolute shared byte-address bits.
        dtype: A name of ``targets.nvidia.wgmma.DTYPES``: f16, bf16, tf32, e4m3, e5m2, s8, u8 or b1.
        smem_base_bytes: Bytes from the tile base to the element (0, 0), before the XOR.
        align_bytes: The tile base is known to be a multiple of this power of two, at least 16.
        arch: ``"sm_90a"``.
        sparse: Whether A is sparse: a tile of A has its stored elements, and B has twice the K per instruction.

    Example:
        >>> problem = OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B")
        >>> print(problem)
        A f16 128B XOR o 0 o ((128),(64)):((64),(1))

    Source: PTX ISA 9.1 section 9.7.15.5.
    """

    operand: str
    shape: tuple[int, int]
    smem_modes: tuple[Digits, Digits]
    swizzle: str = "NONE"
    dtype: str = "f16"
    smem_base_bytes: int = 0
    align_bytes: int = DEFAULT_ALIGN_BYTES
    arch: str = hardware.ARCH
    sparse: bool = False

    def __post_init__(self) -> None:
        set_fields(self, self.to_json(), _read_problem, "invalid wgmma operand problem", _PLACES)

    @classmethod
    def of(
        cls,
        operand: str,
        tensor: object,
        smem: object = None,
        *,
        tile: Sequence[int] | None = None,
        swizzle: object = None,
        axes: Sequence[str] | None = None,
        align_bytes: int = DEFAULT_ALIGN_BYTES,
        arch: str = hardware.ARCH,
        sparse: bool = False,
    ) -> OperandProblem:
        """Return the problem of reading a shared-memory tile as an operand.

        Element (mn, k) is at ``element_bytes`` times the layout at (mn, k).

        Args:
            operand: ``"A"`` or ``"B"``.
            tensor: The tiled tensor, or just its element type; None for the type in ``smem``.
            smem: A layout of any family or its text: (mn, k) to element offsets, read as in ``TensorMapProblem.of``.
            tile: ``(mn, k)`` in elements; None for the extents of ``smem``.
            swizzle: The swizzle after ``smem``; None if ``smem`` includes it.
            axes: Names of the axes of ``smem``, MN first.
            align_bytes: The field.
            arch: The field.
            sparse: The field.

        Example:
            >>> print(OperandProblem.of("A", "bf16", "Sw<3,3,3> o 0 o (128,64):(64,1)"))
            A bf16 128B XOR o 0 o ((128),(64)):((64),(1))
        """
        from layoutalg.proofs.smem import shared_tile  # loads every family; documents need none
        from layoutalg.proofs.tensor import tensor_of

        named = isinstance(tensor, (str, type, np.dtype)) or not (
            hasattr(tensor, "shape") or isinstance(tensor, (tuple, list))
        )
        kind = stated_type(tensor if named else tensor_of(tensor, smem).element, smem).name
        dtype = operand_dtype(kind)
        if dtype is None:
            raise malformed_field("dtype", f"must be one of {', '.join(hardware.DTYPES)}", kind)
        names, bits = tuple(hardware.SWIZZLES), hardware.OPERAND_BITS[dtype]
        if bits < 8:
            digits, after, start = _bit_tile(smem, tile, swizzle, axes)
            mn, k = (math.prod(extent for extent, _ in modes) for modes in digits)
            return cls(operand, (mn, k), digits, after, dtype, start, align_bytes, arch, sparse)
        shared = shared_tile(smem, tile, bits // 8, swizzle, names=names, axes=axes)
        if len(shared.modes) != 2:
            raise malformed_field("smem", "must have two dimensions", len(shared.modes))
        base = bits // 8 * shared.base
        shape, modes = (shared.tile[0], shared.tile[1]), (shared.modes[0], shared.modes[1])
        return cls(operand, shape, modes, shared.swizzle, dtype, base, align_bytes, arch, sparse)

    @property
    def element_bits(self) -> int:
        """Bits of an element."""
        return hardware.OPERAND_BITS[self.dtype]

    @property
    def instruction_k(self) -> int:
        """Elements of this operand along K per instruction."""
        return hardware.instruction_k(self.element_bits, self.sparse and self.operand == "B")

    def __str__(self) -> str:
        shapes = ",".join("(" + ",".join(str(n) for n, _ in modes) + ")" for modes in self.smem_modes)
        strides = ",".join("(" + ",".join(str(s) for _, s in modes) + ")" for modes in self.smem_modes)
        return f"{self.operand} {self.dtype} {self.swizzle} XOR o {self.smem_base_bytes} o ({shapes}):({strides})"

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        given = {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}
        if given["sparse"] is False:  # keeps documents of dense operands unchanged
            del given["sparse"]
        head = {key: given.pop(key) for key in ("arch", "operand", "shape", "dtype")}
        smem = {"modes": given.pop("smem_modes"), "swizzle": given.pop("swizzle")}
        return {"schema": PROBLEM_SCHEMA, **head, "smem": smem, **given}

    @classmethod
    def from_json(cls, document: object) -> OperandProblem:
        """Read a problem document; ``smem`` as in a TensorMap problem, dimensions MN then K."""
        return cls(*_read_problem(document if isinstance(document, Reader) else Reader(document)))


_PLACES = {"/smem/modes": "smem_modes", "/smem/": "", "/": ""}
"""Document pointer prefixes and the field-name prefixes they stand for."""


def _read_problem(reader: Reader) -> tuple[Any, ...]:
    """Read the fields of a problem in order."""
    reader.keys(("schema", "operand", "shape", "smem"), ("arch", "dtype", "smem_base_bytes", "align_bytes", "sparse"))
    reader.schema(PROBLEM_SCHEMA)
    operand = reader.get("operand").text(("A", "B"))
    shape = reader.get("shape").integers(2, 1, limits.OPERAND_ELEMENTS)
    if shape[0] * shape[1] > limits.OPERAND_ELEMENTS:
        reader.get("shape").fail(f"must have at most {limits.OPERAND_ELEMENTS} elements")
    smem = reader.get("smem")
    smem.keys(("modes", "swizzle"))
    modes = tuple(_read_modes(*entry) for entry in zip(smem.get("modes").items(2), shape, strict=True))
    swizzle = read_choice(smem.get("swizzle"), "swizzle", hardware.SWIZZLES)
    dtype = _read_dtype(reader.get("dtype")) if reader.has("dtype") else "f16"
    base = reader.get("smem_base_bytes").integer(0, limits.SMEM_REACH) if reader.has("smem_base_bytes") else 0
    align = reader.get("align_bytes").integer(16, 1 << 18) if reader.has("align_bytes") else DEFAULT_ALIGN_BYTES
    if align & (align - 1):
        reader.get("align_bytes").fail("must be a power of two")
    arch = reader.get("arch").text((hardware.ARCH,)) if reader.has("arch") else hardware.ARCH
    sparse = reader.get("sparse").value if reader.has("sparse") else False
    if not isinstance(sparse, bool):
        reader.get("sparse").fail("must be true or false")
    if sparse and not hardware.multiply(dtype).sparse:
        reader.get("sparse").fail(f"must be false: {dtype} has no sparse A")
    return operand, shape, modes, swizzle, dtype, base, align, arch, sparse


def operand_dtype(value: object) -> str | None:
    """Return the operand type of a name or type object, or None.

    Example:
        >>> operand_dtype("torch.float8_e5m2"), operand_dtype("b1"), operand_dtype("f64")
        ('e5m2', 'b1', None)
    """
    found = "b1" if (name := element_type(value).name) == "i1" else name
    return found if found in hardware.DTYPES else None


def _bit_tile(
    smem: object, tile: Sequence[int] | None, swizzle: object, axes: Sequence[str] | None
) -> tuple[tuple[Digits, Digits], str, int]:
    """Return the digits of a one-bit tile, in bits, its swizzle, and its base in bytes.

    The tile is read as bytes, so eight neighbours along K must be the bits of one byte, low bit first.
    """
    from layoutalg.proofs.smem import shared_tile
    from layoutalg.proofs.tile_map import CHECK, extents_of, layout_of, offsets

    stated = None if tile is None else CHECK.vector(tile, "tile")
    given = layout_of(smem, stated, 1)
    extents = extents_of(given, axes) if stated is None else stated
    for place, extent in enumerate(extents):
        CHECK.integer(extent, f"tile[{place}]", 1)
    if len(extents) != 2:
        raise malformed_field("smem", "must have two dimensions", len(extents))
    if extents[1] % 8:
        raise malformed_field("tile", "must have a multiple of 8 bits along K", extents)
    table = offsets(given, extents, axes)
    bits = table.reshape(extents[0], -1, 8)
    wrong = np.argwhere(bits != bits[..., :1] // 8 * 8 + np.arange(8))
    if len(wrong):
        mn, byte, bit = (int(i) for i in wrong[0])
        raise RepresentabilityError(
            Diagnostic(
                "LA377",
                "eight neighbours along K are not the bits of one byte",
                (str(given),),
                f"element ({mn}, {8 * byte + bit}) has the offset {int(bits[mn, byte, bit])} bits",
                witness={"mn": mn, "k": 8 * byte + bit, "offset": int(bits[mn, byte, bit])},
            )
        )
    shared = shared_tile(bits[..., 0] // 8, None, 1, swizzle, names=tuple(hardware.SWIZZLES))
    mn_digits, k_digits = (tuple((extent, 8 * step) for extent, step in modes) for modes in shared.modes)
    return (mn_digits, ((8, 1), *k_digits)), shared.swizzle, shared.base


def _read_dtype(node: Reader) -> str:
    name = node.text()
    try:
        found = operand_dtype(name)
    except LayoutError:
        found = None
    return found or node.text(hardware.DTYPES)


def _read_modes(node: Reader, extent: int) -> Digits:
    digits = read_digits(node)
    if math.prod(n for n, _ in digits) != extent:
        node.fail(f"the extents must multiply to the tile extent {extent}")
    if any(stride > limits.SMEM_REACH for _, stride in digits):
        node.fail(f"a shared-memory stride must be at most {limits.SMEM_REACH}")
    return digits


@dataclass(frozen=True, slots=True)
class InstructionTile(Checked, code="LA372"):
    """The tile that one instruction reads: its first element and its descriptor.

    Args:
        mn: First row in elements.
        k: First K coordinate in elements.
        descriptor: The descriptor for the tile base 0.
        encoded: Its 64 bits.
    """

    mn: int
    k: int
    descriptor: hardware.MatrixDescriptor
    encoded: int

    def _validate(self) -> None:
        for name, maximum in (("mn", MAX_INT), ("k", MAX_INT), ("encoded", 2**64 - 1)):
            integer(name, getattr(self, name), 0, maximum)

    def to_json(self) -> dict[str, object]:
        """Return the tile as JSON-ready data."""
        held = self.descriptor
        return {
            "mn": self.mn, "k": self.k, "start_address_bytes": held.start_address_bytes,
            "leading_bytes": held.leading_bytes, "stride_bytes": held.stride_bytes, "base_offset": held.base_offset,
            "swizzle": held.swizzle, "encoded": f"{self.encoded:#018x}",
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperandPlan(Claim):
    """The descriptors with which ``wgmma`` reads a shared-memory tile.

    Args:
        problem: The problem.
        major: ``"K"`` or ``"MN"``; the instruction's transpose immediate is 0 or 1.
        rows: Rows per instruction: 64 for A, N for B.
        tiles: One entry per instruction tile, rows slowest: (0, 0), (0, 16), ..., (rows, 0), ...
        align_bytes: The plan holds for every tile base that is a multiple of this.
        end_bytes: One past the last byte read, relative to the tile base; base + end_bytes must stay within 2^18.
        mn_steps: ``(count, increment)`` digits, fastest first: what the instruction row index adds to the 64-bit base
            descriptor ``tiles[0].encoded``, in 16-byte units. None if the descriptors do not follow digits.
        k_steps: The same for the K index; None iff ``mn_steps`` is.
        unread: Stride fields that affect no address; they are 16 bytes.
        evidence: ``"measured"`` or ``"modelled"``: basis of the read rule for this operand.
        certificate: What the checker recomputed, or None.
    """

    problem: OperandProblem
    major: str
    rows: int
    tiles: tuple[InstructionTile, ...]
    align_bytes: int
    end_bytes: int
    mn_steps: Digits | None
    k_steps: Digits | None
    unread: tuple[str, ...]
    evidence: str
    certificate: Mapping[str, object] | None = field(default=None, hash=False)

    def _validate(self) -> None:
        Claim._validate(self)
        if not self.tiles:
            raise malformed_field("tiles", "must have at least one entry", self.tiles)
        for name, minimum in (("rows", 1), ("align_bytes", 1), ("end_bytes", 0)):
            integer(name, getattr(self, name), minimum)
        for name in ("mn_steps", "k_steps"):
            for index, (count, step) in enumerate(getattr(self, name) or ()):
                integer(f"{name}[{index}]", count, 2)
                integer(f"{name}[{index}]", step)
        for index, name in enumerate(self.unread):
            text(f"unread[{index}]", name, STRIDE_FIELDS)
        text("major", self.major, hardware.MAJORS)
        text("evidence", self.evidence, EVIDENCE)

    def __str__(self) -> str:
        return operand_text(self)

    @property
    def transpose(self) -> int:
        """The instruction's transpose immediate for this operand: 0 for K-major, 1 for MN-major."""
        return 0 if self.major == "K" else 1

    @property
    def base(self) -> hardware.MatrixDescriptor:
        """The descriptor of the first instruction tile."""
        return self.tiles[0].descriptor

    @property
    def k_step(self) -> int | None:
        """The increment per K instruction, in 16-byte units; None unless constant."""
        return _uniform(self.k_steps)

    @property
    def mn_step(self) -> int | None:
        """The increment per row of instructions, in 16-byte units; None unless constant."""
        return _uniform(self.mn_steps)

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        return {
            "schema": PLAN_SCHEMA,
            "problem": self.problem.to_json(),
            "major": self.major,
            "transpose": self.transpose,
            "rows": self.rows,
            "align_bytes": self.align_bytes,
            "end_bytes": self.end_bytes,
            "steps_16_bytes": {
                "mn": None if self.mn_steps is None else [list(digit) for digit in self.mn_steps],
                "k": None if self.k_steps is None else [list(digit) for digit in self.k_steps],
            },
            "unread": list(self.unread),
            "evidence": self.evidence,
            "tiles": [tile.to_json() for tile in self.tiles],
            "certificate": None if self.certificate is None else dict(self.certificate),
        }

    @classmethod
    def from_json(cls, document: object) -> OperandPlan:
        """Read a plan document. Only its form is validated here; the checker decides whether it is right."""
        reader = Reader(document)
        keys = ("schema", "problem", "major", "transpose", "rows", "align_bytes", "end_bytes", "steps_16_bytes")
        reader.keys((*keys, "unread", "evidence", "tiles", "certificate"))
        reader.schema(PLAN_SCHEMA)
        major = reader.get("major").text(hardware.MAJORS)
        transpose = reader.get("transpose")
        if transpose.integer(0, 1) != hardware.MAJORS.index(major):
            transpose.fail(f"must be {hardware.MAJORS.index(major)} for a {major}-major operand")
        steps = reader.get("steps_16_bytes")
        steps.keys(("mn", "k"))
        tiles = tuple(_read_tile(node) for node in reader.get("tiles").items())
        if not tiles:
            reader.get("tiles").fail("must have at least one entry")
        stated = reader.get("certificate")
        if stated.value is not None and not isinstance(stated.value, dict):
            stated.fail("must be an object or null")
        return cls(
            OperandProblem.from_json(reader.get("problem")),
            major,
            reader.get("rows").integer(1),
            tiles,
            reader.get("align_bytes").integer(1),
            reader.get("end_bytes").integer(0),
            _read_steps(steps.get("mn")),
            _read_steps(steps.get("k")),
            tuple(node.text(STRIDE_FIELDS) for node in reader.get("unread").items()),
            reader.get("evidence").text(EVIDENCE),
            stated.value,
        )


def _uniform(steps: Digits | None) -> int | None:
    if steps is None or len(steps) > 1:
        return None
    return steps[0][1] if steps else 0


def _read_tile(node: Reader) -> InstructionTile:
    numbers = ("start_address_bytes", "leading_bytes", "stride_bytes", "base_offset")
    node.keys(("mn", "k", *numbers, "swizzle", "encoded"))
    encoded = node.get("encoded")
    text = encoded.text()
    digits = text.removeprefix("0x")
    if len(text) != 18 or len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):
        encoded.fail("must be 0x and 16 lower-case hexadecimal digits")
    values: dict[str, Any] = {key: node.get(key).integer(0) for key in numbers}
    try:
        descriptor = hardware.MatrixDescriptor(**values, swizzle=node.get("swizzle").text())
    except LayoutError as error:
        raise malformed(node.pointer, error.diagnostic.because) from None
    return InstructionTile(node.get("mn").integer(0), node.get("k").integer(0), descriptor, int(digits, 16))


def _read_steps(node: Reader) -> Digits | None:
    if node.value is None:
        return None
    steps = []
    for entry in node.items():
        pair = entry.integers(2)
        if pair[0] < 2:
            entry.fail("a digit must count at least 2")
        steps.append((pair[0], pair[1]))
    return tuple(steps)
