"""The statement and the claim: a shared-memory operand wanted for ``wgmma``, and the descriptors said to read it.

Main definitions: ``OperandProblem``, ``OperandPlan``, ``InstructionTile``.

Notation: element (mn, k) of the tile is wanted at ``tile base + XOR(smem_base_bytes + 2 * sum(digit * stride))``, where
the XOR of the named swizzle acts on absolute shared byte addresses, digits are mixed-radix, fastest first, and the tile
base is any multiple of ``align_bytes``. Descriptors of a plan are for the tile base 0; for another base, add base/16 to
the low word.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutalg.ground import limits
from layoutalg.ground.document import Reader, malformed
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, shown
from layoutalg.proofs.fields import certificate, changed, instance, integer, integers, items, plain, text
from layoutalg.proofs.fields import malformed as malformed_field
from layoutalg.targets.nvidia import wgmma as hardware

PROBLEM_SCHEMA = "layoutalg/wgmma-problem/1"
PLAN_SCHEMA = "layoutalg/wgmma-plan/1"
MAX_INT = 2**63 - 1
STRIDE_FIELDS = ("leading_bytes", "stride_bytes")
EVIDENCE = ("measured", "modelled")
DEFAULT_ALIGN_BYTES = 1024
"""The largest period of a swizzle: a base aligned to it is aligned to every pattern."""

Modes = tuple[tuple[int, int], ...]


def _refuse(field_name: str, rule: str, actual: object) -> MalformedError:
    return MalformedError(
        Diagnostic(
            "LA361", f"{field_name} is malformed", ("OperandProblem",), f"{field_name} {rule}, not {shown(actual)}"
        )
    )


def _integer(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):  # numpy's integers were made plain before
        raise _refuse(name, "must be an integer", value)
    number = int(value)
    if not low <= number <= high:
        raise _refuse(name, f"must lie in {low}..{high}", number)
    return number


def _pair(name: str, value: object) -> Sequence[object]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise _refuse(name, "must have two entries", value)
    return value


def _modes(name: str, value: object, extent: int) -> Modes:
    if not isinstance(value, (list, tuple)):
        raise _refuse(name, "must be a list of [extent, element stride] pairs", value)
    if len(value) > limits.MODE_DIGITS:
        raise _refuse(name, f"must have at most {limits.MODE_DIGITS} digits", value)
    digits = tuple(
        (_integer(f"{name} extent", n, 1, limits.OPERAND_ELEMENTS), _integer(f"{name} stride", s, 0, limits.SMEM_REACH))
        for n, s in (_pair(f"{name} entry", entry) for entry in value)
    )
    size = math.prod(n for n, _ in digits)
    if size != extent:
        raise _refuse(name, f"must have extents that multiply to the tile extent {extent}", size)
    return digits


@dataclass(frozen=True, slots=True)
class OperandProblem:
    """A tile in shared memory that ``wgmma`` shall read as its operand A or B.

    Args:
        operand: ``"A"`` (rows are M) or ``"B"`` (rows are N).
        shape: ``(mn, k)`` in elements.
        smem_modes: For MN, then for K: ``(extent, element stride)`` digits, fastest first.
        swizzle: ``"NONE"``, ``"32B"``, ``"64B"`` or ``"128B"``; acts on absolute shared byte-address bits.
        dtype: ``"f16"`` or ``"bf16"``.
        smem_base_bytes: Bytes from the tile base to the element (0, 0), before the XOR.
        align_bytes: The tile base is known to be a multiple of this power of two, at least 16.
        arch: ``"sm_90a"``.

    Raises: MalformedError: LA361.

    Example:
        >>> problem = OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B")
        >>> print(problem)
        A f16 128B XOR o 0 o ((128),(64)):((64),(1))

    Source: PTX ISA 9.1 section 9.7.15.5 for what an operand is.
    """

    operand: str
    shape: tuple[int, int]
    smem_modes: tuple[Modes, Modes]
    swizzle: str = "NONE"
    dtype: str = "f16"
    smem_base_bytes: int = 0
    align_bytes: int = DEFAULT_ALIGN_BYTES
    arch: str = hardware.ARCH

    def __post_init__(self) -> None:
        choices = (
            ("operand", self.operand, ("A", "B")),
            ("swizzle", self.swizzle, hardware.SWIZZLES),
            ("dtype", self.dtype, hardware.DTYPES),
            ("arch", self.arch, (hardware.ARCH,)),
        )
        for name, value, allowed in choices:
            if not isinstance(value, str) or value not in allowed:
                raise _refuse(name, f"must be one of {', '.join(allowed)}", value)
        extents = [
            _integer("shape", extent, 1, limits.OPERAND_ELEMENTS) for extent in _pair("shape", plain(self.shape))
        ]
        if extents[0] * extents[1] > limits.OPERAND_ELEMENTS:
            raise _refuse("shape", f"must have at most {limits.OPERAND_ELEMENTS} elements", tuple(extents))
        dims = _pair("smem_modes", plain(self.smem_modes))
        modes = [_modes(f"smem_modes[{i}]", dim, extents[i]) for i, dim in enumerate(dims)]
        align = _integer("align_bytes", plain(self.align_bytes), 16, 1 << 18)
        if align & (align - 1):
            raise _refuse("align_bytes", "must be a power of two", align)
        object.__setattr__(self, "shape", (extents[0], extents[1]))
        object.__setattr__(self, "smem_modes", (modes[0], modes[1]))
        object.__setattr__(self, "align_bytes", align)
        object.__setattr__(
            self, "smem_base_bytes", _integer("smem_base_bytes", plain(self.smem_base_bytes), 0, limits.SMEM_REACH)
        )

    def __str__(self) -> str:
        shapes = ",".join("(" + ",".join(str(n) for n, _ in modes) + ")" for modes in self.smem_modes)
        strides = ",".join("(" + ",".join(str(s) for _, s in modes) + ")" for modes in self.smem_modes)
        return f"{self.operand} {self.dtype} {self.swizzle} XOR o {self.smem_base_bytes} o ({shapes}):({strides})"

    def with_changes(self, **changes: object) -> OperandProblem:
        """Return a copy with some fields replaced.

        Raises: MalformedError: LA361, LA372.
        """
        return changed(self, changes)

    def to_json(self) -> dict[str, object]:
        """Return the document that ``from_json`` reads back to an equal value."""
        return {
            "schema": PROBLEM_SCHEMA,
            "arch": self.arch,
            "operand": self.operand,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "smem": {"modes": [[list(digit) for digit in modes] for modes in self.smem_modes], "swizzle": self.swizzle},
            "smem_base_bytes": self.smem_base_bytes,
            "align_bytes": self.align_bytes,
        }

    @classmethod
    def from_json(cls, document: object) -> OperandProblem:
        """Read a problem document; ``smem`` is spelt as in a TensorMap problem, dimensions MN then K.

        Raises: MalformedError: LA010.
        """
        reader = document if isinstance(document, Reader) else Reader(document)
        reader.keys(("schema", "operand", "shape", "smem"), ("arch", "dtype", "smem_base_bytes", "align_bytes"))
        reader.schema(PROBLEM_SCHEMA)
        smem = reader.get("smem")
        smem.keys(("modes", "swizzle"))
        modes = tuple(
            tuple((pair[0], pair[1]) for pair in (entry.integers(2) for entry in dim.items(None, limits.MODE_DIGITS)))
            for dim in smem.get("modes").items(2)
        )
        values: dict[str, Any] = {
            "operand": reader.get("operand").text(("A", "B")),
            "shape": reader.get("shape").integers(2, minimum=1),
            "smem_modes": modes,
            "swizzle": smem.get("swizzle").text(),
        }
        values |= {key: reader.get(key).text() for key in ("arch", "dtype") if reader.has(key)}
        values |= {key: reader.get(key).integer(0) for key in ("smem_base_bytes", "align_bytes") if reader.has(key)}
        try:
            return cls(**values)
        except LayoutError as error:
            raise malformed(reader.pointer, error.diagnostic.because) from None


@dataclass(frozen=True, slots=True)
class InstructionTile:
    """What one instruction reads: its first element and its descriptor.

    Args:
        mn: First row in elements.
        k: First K coordinate in elements.
        descriptor: For the tile base 0.
        encoded: The 64 bits.

    Raises: MalformedError: LA372.
    """

    mn: int
    k: int
    descriptor: hardware.MatrixDescriptor
    encoded: int

    def __post_init__(self) -> None:
        instance("descriptor", self.descriptor, hardware.MatrixDescriptor)
        for name, maximum in (("mn", MAX_INT), ("k", MAX_INT), ("encoded", 2**64 - 1)):
            object.__setattr__(self, name, integer(name, getattr(self, name), 0, maximum))


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """The descriptors by which ``wgmma`` reads a shared-memory tile.

    Args:
        problem: The statement.
        major: ``"K"`` or ``"MN"``; the instruction's transpose immediate is 0 or 1.
        rows: Rows that one instruction reads: 64 for A, N for B.
        tiles: One entry per instruction tile, rows slowest: (0, 0), (0, 16), ..., (rows, 0), ...
        align_bytes: The plan holds for every tile base that is a multiple of this.
        end_bytes: One past the last byte read, relative to the tile base; base + end_bytes must stay within 2^18.
        mn_steps: ``(count, increment)`` digits, fastest first: what instruction row index i adds to the 64-bit base
            descriptor ``tiles[0].encoded``, in 16-byte units. None where only the table describes the plan.
        k_steps: The same for the K index; None together with ``mn_steps``.
        unread: Stride fields that influence no address; they hold 16 bytes.
        evidence: ``"measured"`` or ``"modelled"``: how the read rule of this operand is known.
        certificate: What the checker recomputed, or None.

    Raises: MalformedError: LA372.
    """

    problem: OperandProblem
    major: str
    rows: int
    tiles: tuple[InstructionTile, ...]
    align_bytes: int
    end_bytes: int
    mn_steps: Modes | None
    k_steps: Modes | None
    unread: tuple[str, ...]
    evidence: str
    certificate: Mapping[str, object] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        instance("problem", self.problem, OperandProblem)
        put(self, "major", text("major", self.major, hardware.MAJORS))
        tiles = tuple(
            instance(f"tiles[{i}]", tile, InstructionTile) for i, tile in enumerate(items("tiles", self.tiles))
        )
        if not tiles:
            raise malformed_field("tiles", "must have at least one entry", self.tiles)
        put(self, "tiles", tiles)
        for name, minimum in (("rows", 1), ("align_bytes", 1), ("end_bytes", 0)):
            put(self, name, integer(name, getattr(self, name), minimum))
        for name in ("mn_steps", "k_steps"):
            put(self, name, _checked_steps(name, getattr(self, name)))
        names = enumerate(items("unread", self.unread))
        put(self, "unread", tuple(text(f"unread[{index}]", name, STRIDE_FIELDS) for index, name in names))
        put(self, "evidence", text("evidence", self.evidence, EVIDENCE))
        put(self, "certificate", certificate("certificate", self.certificate))

    @property
    def transpose(self) -> int:
        """The instruction's transpose immediate of this operand: 0 for K-major, 1 for MN-major."""
        return 0 if self.major == "K" else 1

    @property
    def base(self) -> hardware.MatrixDescriptor:
        """The descriptor of the first instruction tile."""
        return self.tiles[0].descriptor

    @property
    def k_step(self) -> int | None:
        """What each further K instruction adds, in 16-byte units; None unless one number does."""
        return _uniform(self.k_steps)

    @property
    def mn_step(self) -> int | None:
        """What each further row of instructions adds, in 16-byte units; None unless one number does."""
        return _uniform(self.mn_steps)

    def digest(self) -> str:
        """Return the SHA-256 of everything but the certificate, in canonical JSON."""
        document = self.to_json()
        document.pop("certificate")
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()

    def with_changes(self, **changes: object) -> OperandPlan:
        """Return a copy with some fields replaced; what it claims is not proved again.

        Raises: MalformedError: LA372.
        """
        return changed(self, changes)

    def to_json(self) -> dict[str, object]:
        """Return the document that ``from_json`` reads back to an equal value."""
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
            "tiles": [_tile_to_json(tile) for tile in self.tiles],
            "certificate": None if self.certificate is None else dict(self.certificate),
        }

    @classmethod
    def from_json(cls, document: object) -> OperandPlan:
        """Read a plan document. Only its form is judged here; whether it is right is the checker's business.

        Raises: MalformedError: LA010.
        """
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


def _checked_steps(name: str, value: object) -> Modes | None:
    if value is None:
        return None
    digits = [integers(f"{name}[{index}]", entry, 2) for index, entry in enumerate(items(name, value))]
    return tuple((integer(f"{name}[{index}]", count, 2), step) for index, (count, step) in enumerate(digits))


def _uniform(steps: Modes | None) -> int | None:
    if steps is None or len(steps) > 1:
        return None
    return steps[0][1] if steps else 0


def _tile_to_json(tile: InstructionTile) -> dict[str, object]:
    return {
        "mn": tile.mn,
        "k": tile.k,
        "start_address_bytes": tile.descriptor.start_address_bytes,
        "leading_bytes": tile.descriptor.leading_bytes,
        "stride_bytes": tile.descriptor.stride_bytes,
        "base_offset": tile.descriptor.base_offset,
        "swizzle": tile.descriptor.swizzle,
        "encoded": f"{tile.encoded:#018x}",
    }


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


def _read_steps(node: Reader) -> Modes | None:
    if node.value is None:
        return None
    steps = []
    for entry in node.items():
        pair = entry.integers(2)
        if pair[0] < 2:
            entry.fail("a digit counts at least 2")
        steps.append((pair[0], pair[1]))
    return tuple(steps)
