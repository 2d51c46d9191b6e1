"""Symbolic plans: a TensorMap with polynomial extents and strides, and the guard under which it holds.

At sizes that meet the guard, ``specialise(sizes)`` is the plan of the problem and ``encode(sizes)`` its 128 bytes.
Copies, origin terms, boxes and shared memory do not depend on the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.check import Checker
from layoutalg.ground.document import Reader
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, Repair
from layoutalg.ground.polynomial import Polynomial, number, require_names, sizes_of, whole_at
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.fields import Claim, integers, items, plain, text
from layoutalg.proofs.symbolic.guard import Guard
from layoutalg.proofs.symbolic.problem import SymbolicProblem
from layoutalg.proofs.tensor import Size, size_text
from layoutalg.proofs.tensormap import Issue, TensorMapPlan
from layoutalg.proofs.tensormap.checker import proved
from layoutalg.proofs.tensormap.plan import OriginTerm, check_copies, copies_to_json, read_copies
from layoutalg.proofs.tensormap.text import symbolic_text
from layoutalg.targets.nvidia import tensormap as hardware

SCHEMA = "layoutalg/symbolic-plan/1"
CHECK = Checker("LA862", "invalid symbolic plan")
_WORD = 2**32 - 1
_TENSORMAP_REPLACE = {
    "dims": "tensormap.replace.tile.global_dim",
    "strides_bytes": "tensormap.replace.tile.global_stride",
}


@dataclass(frozen=True, slots=True)
class SymbolicMap:
    """The fields of a TensorMap, innermost first; extents and strides may be symbolic.

    Example:
        >>> names = SymbolicMap("bf16", ("K", "M"), ("2*K",), (64, 64), (1, 1), "128B")
        >>> names.at({"M": 100, "K": 64}).strides_bytes
        (128,)
    """

    dtype: str
    dims: tuple[Size, ...]
    strides_bytes: tuple[Size, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: str = "NONE"
    l2_promotion: str = "128B"
    oob_fill: str = "ZERO"
    base_address: int = 0

    def __post_init__(self) -> None:
        for name in ("dims", "strides_bytes"):
            given = getattr(self, name)
            if not isinstance(given, (tuple, list)):
                raise CHECK.malformed(name, "must be a sequence of integers and polynomials", given)
            object.__setattr__(self, name, tuple(size_text(polynomial(entry)) for entry in given))
        for name in ("box", "element_strides"):
            object.__setattr__(self, name, CHECK.vector(getattr(self, name), name, len(self.dims)))
        if len(self.strides_bytes) != len(self.dims) - 1:
            raise CHECK.malformed("strides_bytes", f"must have {len(self.dims) - 1} entries", self.strides_bytes)
        some: dict[str, Any] = {"dims": (16,) * len(self.dims), "strides_bytes": (16,) * len(self.strides_bytes)}
        hardware.TensorMap(**self._constants(), **some)  # validates the other fields

    def _constants(self) -> dict[str, Any]:
        names = ("dtype", "box", "element_strides", "swizzle", "l2_promotion", "oob_fill", "base_address")
        return {name: getattr(self, name) for name in names}

    def at(self, sizes: Mapping[str, int]) -> hardware.TensorMap:
        """Return the map at sizes, which must be integers, one per name."""
        dims, strides = (
            tuple(whole_at(polynomial(entry), sizes, "the map") for entry in entries)
            for entries in (self.dims, self.strides_bytes)
        )
        return hardware.TensorMap(**self._constants(), dims=dims, strides_bytes=strides)

    def to_json(self) -> dict[str, object]:
        """Return the fields as JSON-ready data; symbolic ones as text."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}


@dataclass(frozen=True, slots=True)
class Patch:
    """A field of the 128 bytes that depends on the sizes.

    Args:
        field: The TensorMap field, such as ``"dims"``.
        index: Position in the field.
        value: Its value, as a polynomial.
        words: Its 32-bit words as (word, lowest bit, number of bits), lowest bits first.
        instruction: The device instruction that writes it.
    """

    field: str
    index: int
    value: Size
    words: tuple[tuple[int, int, int], ...]
    instruction: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", text("field", self.field, tuple(_TENSORMAP_REPLACE)))
        object.__setattr__(self, "index", CHECK.integer(self.index, "index", 0, 5))
        object.__setattr__(self, "value", size_text(polynomial(self.value)))
        words = tuple(integers("words", word, 3, 0, 32) for word in items("words", self.words))
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "instruction", text("instruction", self.instruction))

    @property
    def encoded(self) -> Size:
        """The encoded value: the extent minus 1, or the stride in units of 16 bytes."""
        value = polynomial(self.value)
        return size_text(value - 1 if self.field == "dims" else value / 16)

    def __str__(self) -> str:
        places = ", ".join(f"word {word} bits {low + width - 1}:{low}" for word, low, width in self.words)
        return f"{self.field}[{self.index}] = {self.value}: {places} = {self.encoded}; {self.instruction}"


@dataclass(frozen=True, slots=True)
class SymbolicPlan(Claim):
    """How the copy engine realises a problem at all sizes that meet the guard.

    For all sizes at which ``guard`` holds, the copies ``issues`` of ``tensor_map`` realise the problem, with
    out-of-bounds class ``oob`` or better.

    Args:
        problem: The problem.
        tensor_map: The descriptor's fields.
        issues: The copies of one tile.
        origin_map: Per map dimension, how the tile origin moves the start coordinates.
        expect_tx_bytes: Bytes that the load barrier must expect for all issues.
        smem_align_bytes: Alignment the tile base needs.
        smem_bytes: Shared bytes from the tile base to the end of the last issue's footprint.
        oob: The out-of-bounds class at all sizes of the guard.
        guard: The sizes covered.
        better: Plans with fewer copies or a better class for some of these sizes, best first.
        certificate: What the checker derived, or None.
    """

    problem: SymbolicProblem
    tensor_map: SymbolicMap
    issues: tuple[Issue, ...]
    origin_map: tuple[tuple[OriginTerm, ...], ...]
    expect_tx_bytes: int
    smem_align_bytes: int
    smem_bytes: int
    oob: str
    guard: Guard
    better: tuple[SymbolicPlan, ...] = ()
    certificate: Mapping[str, object] | None = field(default=None, hash=False)

    def _validate(self) -> None:
        Claim._validate(self)
        check_copies(self, len(self.tensor_map.dims), self.problem.pattern.rank)
        if not self.issues:
            raise CHECK.malformed("issues", "must have at least one entry", self.issues)
        missing = set(self.problem.names) - set(self.guard.names)
        if missing:
            object.__setattr__(self, "guard", Guard(self.guard.clauses, (*self.guard.names, *missing)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that need a size, sorted."""
        return self.guard.names

    @property
    def assumptions(self) -> Assumptions:
        """The conditions on the names."""
        return self.problem.assumptions

    @property
    def cases(self) -> tuple[SymbolicPlan, ...]:
        """The plans in order of preference; use the first whose guard holds. This one is the last."""
        return (*self.better, self)

    @property
    def patch(self) -> tuple[Patch, ...]:
        """The words of the 128 bytes that depend on the sizes, to be written by ``tensormap.replace`` or the host."""
        found = []
        for index, extent in enumerate(self.tensor_map.dims):
            if not isinstance(extent, int):
                found.append(Patch("dims", index, extent, ((8 + index, 0, 32),), _TENSORMAP_REPLACE["dims"]))
        for index, stride in enumerate(self.tensor_map.strides_bytes):
            if not isinstance(stride, int):
                words = ((3 + index, 0, 32), (7, 4 * index, 4))
                found.append(Patch("strides_bytes", index, stride, words, _TENSORMAP_REPLACE["strides_bytes"]))
        return tuple(found)

    def key(self, sizes: Mapping[str, int] | None = None, **more: int) -> tuple[int, str]:
        """Return the specialisation key, case number and guard; sizes with equal keys can share code."""
        values = self._values(sizes, more)
        for place, case in enumerate(self.cases):
            if case.guard.admits(values):
                return place, str(case.guard)
        raise self._refusal(values)

    def case_of(self, sizes: Mapping[str, int] | None = None, **more: int) -> SymbolicPlan:
        """Return the best case whose guard holds."""
        values = self._values(sizes, more)
        for case in self.cases:
            if case.guard.admits(values):
                return case
        raise self._refusal(values)

    def specialise(self, sizes: Mapping[str, int] | None = None, **more: int) -> TensorMapPlan:
        """Return the plan at these sizes, proved.

        Example:
            >>> import layoutalg as la
            >>> plan = la.tensormap(la.Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
            >>> plan.specialise(M=100, K=72).tensor_map.dims
            (72, 100)
            >>> plan.specialise(M=100, K=70)
            Traceback (most recent call last):
            layoutalg.ground.errors.AdmissibilityError: LA861 the plan does not hold at these sizes
              in     bf16 (M,K):(K,1) where K % 8 == 0
              since  K % 8 == 0 fails
              at     K=70, M=100
              try    change the size: K = 72
        """
        values = self._values(sizes, more)
        case = self.case_of(values)
        plan, verdict = proved(case.unproved(values))  # the class may be better at these sizes
        if not isinstance(verdict, Proved):
            what = "internal error: the guard allows a plan that is refuted"
            raise AdmissibilityError(Diagnostic("LA863", what, (str(case.guard),), str(verdict), dict(values)))
        return plan

    def encode(self, sizes: Mapping[str, int] | None = None, **more: int) -> bytes:
        """Return the 128 bytes at these sizes: the template with its patches, relative to the tensor's base address.

        Example:
            >>> import layoutalg as la
            >>> plan = la.tensormap(la.Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
            >>> plan.encode(M=100, K=72) == plan.specialise(M=100, K=72).raw
            True
        """
        values = self._values(sizes, more)
        case = self.case_of(values)
        raw = bytearray(case.template)
        for patch in case.patch:
            encoded = whole_at(polynomial(patch.encoded), values, "a patch")
            for word, low, width in patch.words:
                old = int.from_bytes(raw[4 * word : 4 * word + 4], "little")
                old |= (encoded & ((1 << width) - 1)) << low
                raw[4 * word : 4 * word + 4] = old.to_bytes(4, "little")
                encoded >>= width
        return bytes(raw)

    @property
    def template(self) -> bytes:
        """The 128 bytes with 0 in every field that a patch writes."""
        dims, strides = (
            tuple(least if not isinstance(entry, int) else entry for entry in entries)
            for entries, least in ((self.tensor_map.dims, 1), (self.tensor_map.strides_bytes, 0))
        )
        plain_map = hardware.TensorMap(**self.tensor_map._constants(), dims=dims, strides_bytes=strides)
        return hardware.encode(plain_map, target=self.problem.pattern.arch)

    def unproved(self, sizes: Mapping[str, int]) -> TensorMapPlan:
        """Return the plan of this case at sizes, which must be integers, one per name, without a proof."""
        problem, tensor_map = self.problem.at(sizes), self.tensor_map.at(sizes)
        documented = hardware.violations(tensor_map, target=problem.arch, evidence="documented")
        return TensorMapPlan(
            problem=problem,
            tensor_map=tensor_map,
            raw=hardware.encode(tensor_map, target=problem.arch),
            issues=self.issues,
            origin_map=self.origin_map,
            expect_tx_bytes=self.expect_tx_bytes,
            smem_align_bytes=self.smem_align_bytes,
            smem_bytes=self.smem_bytes,
            oob=self.oob,
            undocumented=tuple(sorted({violation.rule for violation in documented})),
        )

    def _values(self, sizes: Mapping[str, int] | None, more: Mapping[str, int]) -> dict[str, int]:
        values = {**({} if sizes is None else sizes_of(sizes)), **sizes_of(more)}
        require_names(self.names, values, str(self.problem.tensor))
        return {name: values[name] for name in self.names}

    def _refusal(self, values: dict[str, int]) -> AdmissibilityError:
        broken = self.guard.broken_at(values)
        return AdmissibilityError(
            Diagnostic(
                "LA861",
                "the plan does not hold at these sizes",
                (str(self.problem.tensor),),
                f"{broken} fails",
                dict(values),
                tuple(self._repairs(values)),
            )
        )

    def _repairs(self, values: dict[str, int]) -> list[Repair]:
        """Return, per name, the next larger (otherwise next smaller) size at which the guard holds."""
        found = []
        for name in self.names:
            for step in (*range(1, 257), *range(-1, -257, -1)):
                if self.guard.admits(values | {name: values[name] + step}):
                    found.append(Repair("change the size", f"{name} = {values[name] + step}"))
                    break
        return found

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        return {
            "schema": SCHEMA,
            "verdict": "admissible",
            "problem": self.problem.to_json(),
            "tensormap": self.tensor_map.to_json(),
            **copies_to_json(self),
            "guard": self.guard.to_json(),
            "names": list(self.names),
            "patch": [
                {"field": p.field, "index": p.index, "value": p.value, "words": plain(p.words), "by": p.instruction}
                for p in self.patch
            ],
            "template": self.template.hex(),
            "better": [case.to_json() for case in self.better],
            "certificate": None if self.certificate is None else dict(self.certificate),
        }

    @classmethod
    def from_json(cls, document: object) -> SymbolicPlan:
        """Read a plan document; ``patch`` and ``template`` are redundant and must agree with the rest."""
        reader = Reader(document)
        keys = ("schema", "verdict", "problem", "tensormap", "issues", "origin_map", "expect_tx_bytes")
        more = ("smem_align_bytes", "smem_bytes", "oob", "guard", "names", "patch", "template", "better", "certificate")
        reader.keys((*keys, *more))
        reader.schema(SCHEMA)
        reader.get("verdict").text(("admissible",))
        node = reader.get("tensormap")
        node.keys(tuple(entry.name for entry in fields(SymbolicMap)))
        clauses: list[Any] = [entry.value for entry in reader.get("guard").items()]
        tensor_map: Any = node.value
        stated: Any = reader.get("certificate").value
        problem = SymbolicProblem.from_json(reader.get("problem").value)
        plan = cls(
            problem,
            SymbolicMap(**tensor_map),
            *read_copies(reader, problem.pattern.rank),
            Guard(tuple(clauses), tuple(entry.text() for entry in reader.get("names").items())),
            tuple(cls.from_json(entry.value) for entry in reader.get("better").items()),
            stated,
        )
        again = plan.to_json()
        for key in ("patch", "template"):
            if again[key] != reader.get(key).value:
                reader.get(key).fail("must agree with the map")
        return plan

    def __str__(self) -> str:
        return symbolic_text(self)


def evaluated(values: Sequence[Size]) -> tuple[Polynomial, ...]:
    """Return sizes as polynomials."""
    return tuple(number(entry) if isinstance(entry, int) else polynomial(entry) for entry in values)
