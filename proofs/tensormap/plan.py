"""A plan: the TensorMap, the issues that realise a problem, and what the plan claims.

Main definitions: ``TensorMapPlan``, ``Issue``.

Notation: for a tile origin o, issue q starts at coordinates ``issues[q].coords[j] + sum(numerator * o[dim] //
denominator)`` over the terms of ``origin_map[j]``, innermost map dimension first, and writes (or reads) shared memory
from ``tile base + issues[q].smem_offset_bytes`` on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from layoutalg.document import Reader, malformed
from layoutalg.errors import Diagnostic, MalformedError
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.targets.nvidia import tensormap as hardware

SCHEMA = "layoutalg/tensormap-plan/1"
OOB_CLASSES = ("exact", "weak", "lost")
VERDICT = "admissible"


@dataclass(frozen=True, slots=True)
class Issue:
    """One bulk copy: start coordinates (innermost first, for the tile origin 0) and the shared byte offset."""

    coords: tuple[int, ...]
    smem_offset_bytes: int


OriginTerm = tuple[int, int, int]
"""(tile dimension, numerator, denominator)."""


@dataclass(frozen=True, slots=True)
class TensorMapPlan:
    """How the copy engine realises a problem.

    Args:
        problem: The statement.
        tensor_map: The descriptor's fields; ``base_address`` is relative to the tensor's allocation.
        raw: The 128 descriptor bytes.
        issues: The copies of one tile.
        origin_map: Per map dimension, how the tile origin moves the start coordinates.
        expect_tx_bytes: Bytes that the barrier of a load must expect, all issues together.
        smem_align_bytes: Alignment the tile base needs.
        smem_bytes: Shared bytes from the tile base to the end of the last issue's footprint.
        oob: ``"exact"``: right for every tile origin; ``"weak"``: right for every tile whose origin is in bounds;
            ``"lost"``: some tile that starts in bounds receives foreign data where it hangs over.
        undocumented: Rules of the documented text that the measured chip does not enforce and this map uses.
    """

    problem: TensorMapProblem
    tensor_map: hardware.TensorMap
    raw: bytes
    issues: tuple[Issue, ...]
    origin_map: tuple[tuple[OriginTerm, ...], ...]
    expect_tx_bytes: int
    smem_align_bytes: int
    smem_bytes: int
    oob: str
    undocumented: tuple[str, ...] = ()
    certificate: Mapping[str, object] | None = None

    @property
    def hex(self) -> str:
        """The 128 bytes in hexadecimal."""
        return self.raw.hex()

    @property
    def direction(self) -> str:
        """``"load"`` or ``"store"``."""
        return self.problem.direction

    def coordinates(self, origin: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the start coordinates of every issue for a tile origin.

        Args:
            origin: Elements, outermost dimension first. The certificate speaks of the multiples of ``origin_multiple``.

        Raises:
            MalformedError: LA421, the origin has another rank, moves a dimension whose only origin is 0, or stands
                between the steps of a view: no start coordinate expresses it.
        """
        self._require_expressible(origin)
        shift = [
            sum(numerator * origin[dim] // denominator for dim, numerator, denominator in terms)
            for terms in self.origin_map
        ]
        return tuple(tuple(c + s for c, s in zip(issue.coords, shift, strict=True)) for issue in self.issues)

    def _require_expressible(self, origin: Sequence[int]) -> None:
        """Refuse an origin for which rounding, or a missing term, would name another tile."""
        problem = self.problem
        because = None
        if len(origin) != problem.rank:
            because = f"the tile has rank {problem.rank}, the origin {len(origin)} entries"
        else:
            for dim, value in enumerate(origin):
                if value and problem.origin_multiple[dim] == 0:
                    because = f"dimension {dim} stays at the origin 0 in this plan, not {value}"
            for dim, numerator, denominator in (term for terms in self.origin_map for term in terms):
                if numerator * origin[dim] % denominator:
                    step = problem.origin_multiple[dim]
                    because = f"origins of dimension {dim} are multiples of {step} in this plan, not {origin[dim]}"
        if because is not None:
            raise MalformedError(Diagnostic("LA421", "no start coordinates express this origin", because=because))

    def requested_addresses(self) -> npt.NDArray[np.int64]:
        """Return the shared byte address of every tile element, relative to the tile base; int64[tile...]."""
        return self.problem.addresses()

    def digest(self) -> str:
        """Return the SHA-256 of everything but the certificate, in canonical JSON."""
        document = self.to_json()
        document.pop("certificate")
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()

    def with_changes(self, **changes: object) -> TensorMapPlan:
        """Return a copy with some fields replaced; nothing is re-checked."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, object]:
        """Return the document that ``from_json`` reads back to an equal value."""
        return {
            "schema": SCHEMA,
            "verdict": VERDICT,
            "problem": self.problem.to_json(),
            "tensormap": tensor_map_to_json(self.tensor_map),
            "hex": self.hex,
            "issues": [
                {"coords": list(issue.coords), "smem_offset_bytes": issue.smem_offset_bytes} for issue in self.issues
            ],
            "origin_map": [
                [{"dim": dim, "numerator": top, "denominator": bottom} for dim, top, bottom in terms]
                for terms in self.origin_map
            ],
            "expect_tx_bytes": self.expect_tx_bytes,
            "smem_align_bytes": self.smem_align_bytes,
            "smem_bytes": self.smem_bytes,
            "oob": self.oob,
            "undocumented": list(self.undocumented),
            "certificate": None if self.certificate is None else dict(self.certificate),
        }

    @classmethod
    def from_json(cls, document: object) -> TensorMapPlan:
        """Read a plan document.

        Raises:
            MalformedError: LA010, with the JSON pointer of the place.
        """
        reader = Reader(document)
        fields = ("schema", "verdict", "problem", "tensormap", "hex", "issues", "origin_map", "expect_tx_bytes")
        reader.keys((*fields, "smem_align_bytes", "smem_bytes", "oob", "undocumented", "certificate"))
        reader.schema(SCHEMA)
        reader.get("verdict").text((VERDICT,))
        problem = TensorMapProblem.from_json(reader.get("problem"))
        tensor_map = tensor_map_from_json(reader.get("tensormap"))
        rank = len(tensor_map.dims)
        issues = []
        for entry in reader.get("issues").items():
            entry.keys(("coords", "smem_offset_bytes"))
            issues.append(Issue(entry.get("coords").integers(rank), entry.get("smem_offset_bytes").integer()))
        terms = tuple(
            tuple(_read_term(term, problem.rank) for term in entry.items())
            for entry in reader.get("origin_map").items(rank)
        )
        certificate = reader.get("certificate").value
        if certificate is not None and not isinstance(certificate, dict):
            reader.get("certificate").fail("must be an object or null")
        return cls(
            problem,
            tensor_map,
            _read_hex(reader.get("hex")),
            tuple(issues),
            terms,
            reader.get("expect_tx_bytes").integer(),
            reader.get("smem_align_bytes").integer(),
            reader.get("smem_bytes").integer(),
            reader.get("oob").text(OOB_CLASSES),
            tuple(rule.text() for rule in reader.get("undocumented").items()),
            certificate,
        )


def _read_term(node: Reader, rank: int) -> OriginTerm:
    node.keys(("dim", "numerator", "denominator"))
    return (
        node.get("dim").integer(0, rank - 1),
        node.get("numerator").integer(),
        node.get("denominator").integer(1),
    )


def _read_hex(node: Reader) -> bytes:
    text = node.text()
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != 128 or len(text) != 256:
        raise malformed(node.pointer, "must be 256 hexadecimal digits", text)
    return raw


def tensor_map_to_json(tensor_map: hardware.TensorMap) -> dict[str, object]:
    """Return a TensorMap's fields as JSON-ready data."""
    return {
        "dtype": tensor_map.dtype,
        "dims": list(tensor_map.dims),
        "strides_bytes": list(tensor_map.strides_bytes),
        "box": list(tensor_map.box),
        "element_strides": list(tensor_map.element_strides),
        "interleave": tensor_map.interleave,
        "swizzle": tensor_map.swizzle,
        "l2_promotion": tensor_map.l2_promotion,
        "oob_fill": tensor_map.oob_fill,
        "base_address": tensor_map.base_address,
    }


def tensor_map_from_json(node: Reader) -> hardware.TensorMap:
    """Read a TensorMap's fields; hardware rules are not applied here.

    Raises:
        MalformedError: LA010, with the JSON pointer of the place.
    """
    lists = ("dims", "strides_bytes", "box", "element_strides")
    names = ("dtype", "interleave", "swizzle", "l2_promotion", "oob_fill")
    node.keys((*lists, *names, "base_address"))
    values: dict[str, object] = {key: node.get(key).integers() for key in lists}
    values |= {key: node.get(key).text() for key in names}
    try:
        return hardware.TensorMap(**values, base_address=node.get("base_address").integer())  # type: ignore[arg-type]
    except ValueError as error:
        diagnostic = getattr(error, "diagnostic", None)
        raise malformed(node.pointer, getattr(diagnostic, "because", str(error))) from None
