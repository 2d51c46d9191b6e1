"""TensorMap plans: the map, the issues that realise a problem, and the plan's claims.

For tile origin o, issue q starts at coordinates ``issues[q].coords[j] + sum(numerator * o[dim] // denominator)`` over
the terms of ``origin_map[j]``, innermost map dimension first, and at shared byte ``tile base +
issues[q].smem_offset_bytes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.byte_runs import merged_runs
from layoutalg.ground.document import Reader
from layoutalg.ground.document import malformed as malformed_node
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.record import Checked
from layoutalg.proofs.fields import Claim, integer, integers, items, malformed, plain, text
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.proofs.tensormap.text import plan_text
from layoutalg.targets.nvidia import tensormap as hardware

SCHEMA = "layoutalg/tensormap-plan/1"
OOB_CLASSES = ("exact", "weak", "lost")
VERDICT = "admissible"
MAP_BYTES = 128


@dataclass(frozen=True, slots=True)
class Issue(Checked, code="LA372"):
    """One bulk copy: start coordinates, innermost first, for the tile origin 0, and the shared byte offset."""

    coords: tuple[int, ...]
    smem_offset_bytes: int

    def _validate(self) -> None:
        integers("coords", self.coords)
        integer("smem_offset_bytes", self.smem_offset_bytes)


OriginTerm = tuple[int, int, int]
"""(tile dimension, numerator, denominator); the numerator is negative if the coordinate falls as the origin rises."""


@dataclass(frozen=True, slots=True)
class TensorMapPlan(Claim):
    """How the copy engine realises a problem.

    Args:
        problem: The problem.
        tensor_map: The descriptor's fields; ``base_address`` is relative to the tensor's allocation.
        raw: The 128 descriptor bytes.
        issues: The copies of one tile.
        origin_map: Per map dimension, how the tile origin moves the start coordinates.
        expect_tx_bytes: Bytes that the load barrier must expect for all issues.
        smem_align_bytes: Alignment the tile base needs.
        smem_bytes: Shared bytes from the tile base to the end of the last issue's footprint.
        oob: ``"exact"``: out-of-bounds elements are right for every tile origin; ``"weak"``: for every tile origin in
            bounds; ``"lost"``: some tile that starts in bounds receives foreign data over the edge. Tile origins are
            those that ``coordinates`` expresses: on the lattice of ``origin_multiple`` with 32-bit start coordinates,
            for a store nonnegative ones; origins in bounds always are.
        undocumented: Documented rules that this map breaks and the measured chip does not enforce.
        certificate: What the checker recomputed, or None.
        road: How the planner found it, in words; not part of the document, and ignored by comparisons.
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
    certificate: Mapping[str, object] | None = field(default=None, hash=False)
    road: str = field(default="", compare=False, repr=False)

    def _validate(self) -> None:
        Claim._validate(self)
        if len(self.raw) != MAP_BYTES:
            raise malformed("raw", f"must be {MAP_BYTES} bytes", self.raw)
        check_copies(self, len(self.tensor_map.dims), self.problem.rank)

    def __str__(self) -> str:
        return plan_text(self)

    @property
    def hex(self) -> str:
        """The 128 bytes in hexadecimal."""
        return self.raw.hex()

    @property
    def direction(self) -> str:
        """``"load"`` or ``"store"``."""
        return self.problem.direction

    def encode(self, base_address: int = 0) -> bytes:
        """Return the 128 bytes for a tensor at an address.

        Args:
            base_address: Byte address of the tensor's allocation.

        Raises: MalformedError: LA372. TargetRuleError: LA307, with the rule that the address breaks.

        Example:
            >>> import layoutalg as la
            >>> plan = la.tensormap(((1024, 512), None, "bf16"), (64, 64))
            >>> plan.encode(0x7F0000001000)[:8].hex(), plan.encode() == plan.raw
            ('00100000007f0000', True)
        """
        at = integer("base_address", base_address, 0) + self.tensor_map.base_address
        return hardware.encode(replace(self.tensor_map, base_address=at), target=self.problem.arch)

    def with_changes(self, **changes: object) -> TensorMapPlan:
        """Return a copy with some fields replaced and checked; an address is an argument of ``encode``."""
        if "base_address" in changes:
            rule = "is no field, as a plan holds for every allocation: plan.encode(base_address=...) writes its bytes"
            raise malformed("base_address", rule, changes["base_address"])
        return Claim.with_changes(self, **changes)

    def coordinates(self, origin: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the start coordinates of every issue for a tile origin.

        Args:
            origin: Elements, outermost dimension first, multiples of ``problem.origin_multiple``.

        Example:
            >>> import layoutalg as la
            >>> plan = la.tensormap(((1024, 512), None, "bf16"), (64, 64), direction="store")
            >>> plan.coordinates((128, 64))
            ((64, 128),)
            >>> plan.coordinates((-64, 64))
            Traceback (most recent call last):
            layoutalg.ground.errors.MalformedError: LA421 no start coordinates express this origin
              since  a store cannot start at (64, -64): the device faults on negative coordinates
        """
        place = integers("origin", origin)
        because = self._off_lattice(place)
        starts = () if because else self._starts(place)
        because = because or self._not_executable(place, starts)
        if because is not None:
            raise MalformedError(Diagnostic("LA421", "no start coordinates express this origin", because=because))
        return starts

    def written(self, origin: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the bytes that the store of a tile writes: (first byte, length), ascending and apart.

        Bytes count from the base of the tensor's allocation. Rows that the tensor's edge cuts inside a chunk of 16
        bytes are written to the end of that chunk.

        Args:
            origin: As for ``coordinates``.

        Raises: MalformedError: LA421, if the plan cannot start there or is a load.

        Example:
            >>> import layoutalg as la
            >>> plan = la.tensormap(((100, 64), None, "bf16"), (64, 64), direction="store")
            >>> plan.written((64, 0))
            ((8192, 4608),)
        """
        if self.direction != "store":
            because = "the plan is a load, which writes shared memory: plan it with direction='store'"
            raise MalformedError(Diagnostic("LA421", "this plan writes no bytes of the tensor", because=because))
        runs = [run for start in self.coordinates(origin) for run in hardware.stored_runs(self.tensor_map, start)]
        starts, lengths = np.array(runs, dtype=np.int64).reshape(-1, 2).T
        return merged_runs(starts, lengths)

    def expresses(self, origin: Sequence[int]) -> bool:
        """Return whether ``coordinates`` accepts a tile origin."""
        place = integers("origin", origin)
        return self._off_lattice(place) is None and self._not_executable(place, self._starts(place)) is None

    def _starts(self, origin: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the start coordinates of an origin on the lattice."""
        shift = [
            sum(numerator * origin[dim] // denominator for dim, numerator, denominator in terms)
            for terms in self.origin_map
        ]
        return tuple(tuple(c + s for c, s in zip(issue.coords, shift, strict=True)) for issue in self.issues)

    def _off_lattice(self, origin: tuple[int, ...]) -> str | None:
        """Return why the plan does not cover an origin, or None; rounding or a missing term would hit another tile."""
        problem = self.problem
        if len(origin) != problem.rank:
            return f"the tile has rank {problem.rank}, but the origin has {len(origin)} entries"
        for dim, value in enumerate(origin):
            step = problem.origin_multiple[dim]
            if value and step == 0:
                return f"the origin of dimension {dim} must be 0 in this plan, got {value}"
            if step and value % step:
                return f"the origin of dimension {dim} must be a multiple of {step} in this plan, got {value}"
        for dim, numerator, denominator in (term for terms in self.origin_map for term in terms):
            if numerator * origin[dim] % denominator:
                return f"the origin {origin[dim]} of dimension {dim} falls between two coordinates of the map"
        return None

    def _not_executable(self, origin: tuple[int, ...], starts: tuple[tuple[int, ...], ...]) -> str | None:
        """Return why the engine cannot start there or would break the out-of-bounds class, or None."""
        for coords in starts:
            if not all(-(2**31) <= c < 2**31 for c in coords):
                return f"the start coordinates {coords} exceed 32 bits"
            if self.direction == "store" and min(coords) < 0:
                return f"a store cannot start at {coords}: the device faults on negative coordinates"
        if self.direction == "store" and self.oob != "exact":
            for dim, (low, high) in enumerate(self.problem.bounds):
                if self.problem.origin_multiple[dim] and not low <= origin[dim] < high:
                    return f"a store of class {self.oob} must start in bounds: not {low} <= {origin[dim]} < {high}"
        return None

    def requested_addresses(self) -> npt.NDArray[np.int64]:
        """Return the shared byte address of every tile element, relative to the tile base; int64[tile...]."""
        return self.problem.addresses()

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        return {
            "schema": SCHEMA,
            "verdict": VERDICT,
            "problem": self.problem.to_json(),
            "tensormap": tensor_map_to_json(self.tensor_map),
            "hex": self.hex,
            **copies_to_json(self),
            "undocumented": list(self.undocumented),
            "certificate": None if self.certificate is None else dict(self.certificate),
        }

    @classmethod
    def from_json(cls, document: object) -> TensorMapPlan:
        """Read a plan document."""
        reader = Reader(document)
        keys = ("schema", "verdict", "problem", "tensormap", "hex", "issues", "origin_map", "expect_tx_bytes")
        reader.keys((*keys, "smem_align_bytes", "smem_bytes", "oob", "undocumented", "certificate"))
        reader.schema(SCHEMA)
        reader.get("verdict").text((VERDICT,))
        problem = problem_from(reader.get("problem"))
        tensor_map = tensor_map_from_json(reader.get("tensormap"))
        copies = read_copies(reader, problem.rank, len(tensor_map.dims))
        stated = reader.get("certificate").value
        if stated is not None and not isinstance(stated, dict):
            reader.get("certificate").fail("must be an object or null")
        try:
            return cls(
                problem,
                tensor_map,
                _read_hex(reader.get("hex")),
                *copies,
                tuple(rule.text() for rule in reader.get("undocumented").items()),
                stated,
            )
        except MalformedError as error:
            if error.diagnostic.code != "LA372":
                raise
            raise malformed_node(reader.pointer, error.diagnostic.because) from None


Copies: TypeAlias = tuple[tuple[Issue, ...], tuple[tuple[OriginTerm, ...], ...], int, int, int, str]
_NUMBERS = ("expect_tx_bytes", "smem_align_bytes", "smem_bytes")
_TERM = ("dim", "numerator", "denominator")


def check_copies(plan: Any, rank: int, dims: int) -> None:
    """Check the copies of a plan: its issues, origin map, byte counts and class.

    Args:
        plan: A plan, of one size or symbolic.
        rank: Dimensions of the map.
        dims: Dimensions of the tile.
    """
    for index, issue in enumerate(plan.issues):
        if len(issue.coords) != rank:
            raise malformed(f"issues[{index}].coords", f"must have {rank} entries like the map", issue.coords)
    for row, terms in enumerate(items("origin_map", plan.origin_map, rank)):
        for dim, numerator, denominator in terms:
            integer(f"origin_map[{row}]", dim, 0, dims - 1)
            integer(f"origin_map[{row}]", numerator)
            integer(f"origin_map[{row}]", denominator, 1)
    for name in _NUMBERS:
        integer(name, getattr(plan, name))
    text("oob", plan.oob, OOB_CLASSES)


def copies_to_json(plan: Any) -> dict[str, object]:
    """Return the copies of a plan as JSON-ready data."""
    return {
        "issues": [
            {"coords": list(issue.coords), "smem_offset_bytes": issue.smem_offset_bytes} for issue in plan.issues
        ],
        "origin_map": [[dict(zip(_TERM, term, strict=True)) for term in terms] for terms in plan.origin_map],
        **{name: getattr(plan, name) for name in (*_NUMBERS, "oob")},
    }


def read_copies(reader: Reader, dims: int, rank: int | None = None) -> Copies:
    """Read the copies of a plan, as its constructor takes them; ``dims`` are the tile's, ``rank`` is the map's."""
    issues = []
    for entry in reader.get("issues").items():
        entry.keys(("coords", "smem_offset_bytes"))
        issues.append(Issue(entry.get("coords").integers(rank), entry.get("smem_offset_bytes").integer()))
    rows = reader.get("origin_map").items(rank)
    terms = tuple(tuple(_read_term(term, dims) for term in row.items()) for row in rows)
    expected, align, size = (reader.get(name).integer() for name in _NUMBERS)
    return tuple(issues), terms, expected, align, size, reader.get("oob").text(OOB_CLASSES)


def _read_term(node: Reader, dims: int) -> OriginTerm:
    node.keys(_TERM)
    return (node.get("dim").integer(0, dims - 1), node.get("numerator").integer(), node.get("denominator").integer(1))


def _read_hex(node: Reader) -> bytes:
    digits = node.text()
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raw = b""
    if len(raw) != 128 or len(digits) != 256:
        raise malformed_node(node.pointer, "must be 256 hexadecimal digits", digits)
    return raw


def tensor_map_to_json(tensor_map: hardware.TensorMap) -> dict[str, object]:
    """Return a TensorMap's fields as JSON-ready data."""
    return {field.name: plain(getattr(tensor_map, field.name)) for field in fields(tensor_map)}


def tensor_map_from_json(node: Reader) -> hardware.TensorMap:
    """Read a TensorMap's fields without applying hardware rules."""
    lists = ("dims", "strides_bytes", "box", "element_strides")
    names = ("dtype", "interleave", "swizzle", "l2_promotion", "oob_fill")
    node.keys((*lists, *names, "base_address"))
    values: dict[str, object] = {key: node.get(key).integers() for key in lists}
    values |= {key: node.get(key).text() for key in names}
    try:
        return hardware.TensorMap(**values, base_address=node.get("base_address").integer())  # type: ignore[arg-type]
    except ValueError as error:
        diagnostic = getattr(error, "diagnostic", None)
        raise malformed_node(node.pointer, getattr(diagnostic, "because", str(error))) from None
