"""Symbolic TensorMap problems: one ``TensorMapProblem`` for every assignment of sizes, ``at(sizes)``.

Extents, strides and upper bounds of the tensor may be polynomials; the tile, its shared-memory layout, the lattice of
origins and everything else are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.check import Checker
from layoutalg.ground.decide import find_sizes
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.polynomial import names_of, require_names, sizes_of, whole_at
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs.fields import Statement, instance, plain
from layoutalg.proofs.tensor import Size, Tensor, size_text, tensor_of
from layoutalg.proofs.tensormap.problem import SCHEMA, TensorMapProblem

CHECK = Checker("LA860", "invalid symbolic TensorMap problem")
_CONSTANTS = ("tile", "smem_modes", "swizzle", "arch", "direction", "base_elem_offset", "element_strides", "oob_fill",
              "oob_required")  # fmt: skip


@dataclass(frozen=True, slots=True)
class SymbolicProblem(Statement):
    """A tensor with symbolic sizes, a tile and its shared-memory layout.

    Args:
        tensor: The tensor with its assumptions.
        bounds: Per dimension ``(low, high)``; ``high`` may be symbolic.
        origin_multiple: Per dimension, tile origins are multiples of this; 0 means only the origin 0. Default in
            ``of``: the tile's extent, or 0 if one tile covers a dimension with a numeric bound.
        pattern: The problem at some sizes, which supplies everything that is not symbolic.

    Example:
        >>> problem = SymbolicProblem.of(Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
        >>> problem.names, problem.origin_multiple, problem.at({"M": 100, "K": 64}).bounds
        (('K', 'M'), (64, 64), ((0, 100), (0, 64)))
    """

    tensor: Tensor
    bounds: tuple[tuple[int, Size], ...]
    origin_multiple: tuple[int, ...]
    pattern: TensorMapProblem

    def __post_init__(self) -> None:
        tensor, pattern = instance("tensor", self.tensor, Tensor), instance("pattern", self.pattern, TensorMapProblem)
        rank = len(tensor.shape)
        if pattern.rank != rank:
            raise CHECK.malformed("pattern", f"must have the {rank} dimensions of the tensor", pattern.rank)
        if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != rank:
            raise CHECK.malformed("bounds", f"must be {rank} pairs", self.bounds)
        bounds = tuple(_bound(entry, place) for place, entry in enumerate(self.bounds))
        sizes = _pattern_sizes(tensor, bounds)
        same = {name: getattr(pattern, name) for name in _CONSTANTS}
        multiple = CHECK.vector(self.origin_multiple, "origin_multiple", rank)
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "origin_multiple", multiple)
        object.__setattr__(self, "pattern", self._at(sizes, same))

    @classmethod
    def of(
        cls,
        tensor: object,
        tile: Sequence[int],
        smem: object = None,
        *,
        bounds: Sequence[object] | None = None,
        origin_multiple: Sequence[int] | None = None,
        **options: Any,
    ) -> SymbolicProblem:
        """Return the problem of copying tiles of a symbolic tensor; arguments as for ``TensorMapProblem.of``.

        Raises: As ``TensorMapProblem.of``; MalformedError: LA860.
        """
        source = tensor_of(tensor, smem, named=True)
        limits = _bounds(source, bounds)
        sizes = _pattern_sizes(source, limits)
        at = [(low, whole_at(polynomial(high), sizes, "bounds")) for low, high in limits]
        pattern = TensorMapProblem.of(source.at(sizes), tile, smem, bounds=at, **options)
        return cls(source, limits, _multiples(pattern, limits, origin_multiple), pattern)

    @classmethod
    def from_json(cls, document: object) -> SymbolicProblem:
        """Read a problem document: extents, strides and bounds as numbers or texts, conditions in ``assume``."""
        if not isinstance(document, Mapping) or not isinstance(document.get("global"), Mapping):
            raise CHECK.malformed("document", "must be an object with an entry 'global'", document)
        given = dict(document["global"])
        plain_document = {**document, "global": given}
        for key in ("shape", "stride", "dtype"):
            if key not in given:
                raise CHECK.malformed(f"/global/{key}", "must be given", None)
        align = given.get("base_align_bytes", 16)
        source = Tensor(given["shape"], given["stride"], given["dtype"], align, plain_document.pop("assume", ()))
        limits = _bounds(source, plain_document.pop("bounds", None))
        multiple = plain_document.pop("origin_multiple", None)
        sizes = _pattern_sizes(source, limits)
        concrete = source.at(sizes)
        given |= {"shape": list(concrete.shape), "stride": list(concrete.strides), "dtype": source.dtype}
        plain_document["bounds"] = [[low, whole_at(polynomial(high), sizes, "bounds")] for low, high in limits]
        pattern = TensorMapProblem.from_json(plain_document)
        return cls(source, limits, _multiples(pattern, limits, multiple), pattern)

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        document = self.pattern.to_json()
        given = dict(document["global"])  # type: ignore[call-overload]
        given |= {"shape": list(self.tensor.shape), "stride": list(self.tensor.strides)}
        document |= {"schema": SCHEMA, "global": given, "assume": list(self.tensor.assume)}
        document |= {"bounds": [list(pair) for pair in self.bounds], "origin_multiple": plain(self.origin_multiple)}
        return document

    @property
    def names(self) -> tuple[str, ...]:
        """The names that need a size, sorted."""
        highs = names_of(polynomial(high) for _, high in self.bounds)
        return tuple(sorted(highs | set(self.tensor.names)))

    @property
    def assumptions(self) -> Assumptions:
        """The conditions on the names."""
        return self.tensor.assumptions

    def at(self, sizes: Mapping[str, int]) -> TensorMapProblem:
        """Return the problem at these sizes; the assumptions are not checked."""
        values = sizes_of(sizes)
        require_names(self.names, values, str(self.tensor))
        return self._at(values, {name: getattr(self.pattern, name) for name in _CONSTANTS})

    def _at(self, sizes: Mapping[str, int], same: Mapping[str, Any]) -> TensorMapProblem:
        concrete = self.tensor.at(sizes)
        return TensorMapProblem(
            global_shape=concrete.shape,
            global_strides=concrete.strides,
            dtype=concrete.dtype,
            base_align_bytes=concrete.base_align_bytes,
            bounds=tuple((low, whole_at(polynomial(high), sizes, "bounds")) for low, high in self.bounds),
            origin_multiple=self.origin_multiple,
            **same,
        )

    def __str__(self) -> str:
        return f"tile {list(self.pattern.tile)} of {self.tensor}"


def is_symbolic(document: object) -> bool:
    """Return whether a problem document has names or assumptions.

    Example:
        >>> is_symbolic({"global": {"shape": ["M", 64], "stride": [64, 1]}}), is_symbolic({"global": {"shape": [8, 8]}})
        (True, False)
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("global"), Mapping):
        return False
    given = document["global"]
    return "assume" in document or has_names([given.get("shape"), given.get("stride"), document.get("bounds")])


def has_names(value: object, depth: int = 3) -> bool:
    """Return whether sizes, or lists of them in lists of at most ``depth`` levels, have names.

    Example:
        >>> has_names([(64, 8), [["M", 3]]]), has_names([(64, 8), None])
        (True, False)
    """
    if isinstance(value, (tuple, list)):
        return depth > 0 and any(has_names(entry, depth - 1) for entry in value)
    return isinstance(value, str) or hasattr(value, "free_symbols")


def _bound(entry: object, place: int) -> tuple[int, Size]:
    low, high = entry if isinstance(entry, (tuple, list)) and len(entry) == 2 else (0, entry)
    found = polynomial(high)
    return CHECK.integer(low, f"bounds[{place}]", 0), size_text(found)


def _bounds(source: Tensor, bounds: object) -> tuple[tuple[int, Size], ...]:
    if bounds is None:
        return tuple((0, extent) for extent in source.shape)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != len(source.shape):
        raise CHECK.malformed("bounds", f"must have one entry per dimension of {source}", bounds)
    return tuple(_bound(entry, place) for place, entry in enumerate(bounds))


def _multiples(
    pattern: TensorMapProblem, bounds: tuple[tuple[int, Size], ...], given: Sequence[int] | None
) -> tuple[int, ...]:
    if given is not None:
        return CHECK.vector(given, "origin_multiple", pattern.rank)
    reach = [extent * step for extent, step in zip(pattern.tile, pattern.element_strides, strict=True)]
    covered = [isinstance(high, int) and high <= tile for (_, high), tile in zip(bounds, reach, strict=True)]
    return tuple(0 if whole else tile for whole, tile in zip(covered, reach, strict=True))


def _pattern_sizes(source: Tensor, bounds: tuple[tuple[int, Size], ...]) -> dict[str, int]:
    """Return sizes at which the assumptions hold and the problem is valid."""
    needed: list[object] = []
    for extent, (low, high) in zip(source.shape, bounds, strict=True):
        top = polynomial(high)
        needed += [f"{polynomial(extent)} >= {top}", f"{top} >= {low + 1}"]
    used = frozenset(source.names) | names_of(polynomial(high) for _, high in bounds)
    if not used:
        return {}
    known = source.assumptions
    try:
        known = known.extended(list(needed))
        found = find_sizes(known, None, True, names=used)
    except MalformedError as error:
        if error.diagnostic.code != "LA621":
            raise
        found = None
    if found is None:
        because = f"no sizes found that meet {', '.join(map(str, needed))} and {source.assumptions}"
        raise MalformedError(Diagnostic("LA860", "invalid symbolic TensorMap problem", (str(source),), because))
    return {name: value for name, value in found if name in used}
