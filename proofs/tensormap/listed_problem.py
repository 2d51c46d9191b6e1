"""TensorMap problems whose shared-memory layout is a table instead of digits.

``address(t)`` is ``element_bytes`` times the entry of ``smem_offsets`` at t; ``smem_modes`` is empty and ``swizzle`` is
``"NONE"``. Everything else is as in ``TensorMapProblem``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground.document import Reader
from layoutalg.ground.limits import SMEM_REACH
from layoutalg.proofs.fields import malformed, put_fields, set_fields
from layoutalg.proofs.tensormap.problem import PLACES, TensorMapProblem, document_of, read_fields
from layoutalg.targets.nvidia import tensormap as hardware

if TYPE_CHECKING:
    from layoutalg.proofs.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ListedProblem(TensorMapProblem):
    """A global tensor, a tile and the table of its shared offsets.

    Args:
        smem_offsets: The element offset of every tile element, the last dimension fastest.

    Example:
        >>> from layoutalg.proofs.tensor import Tensor
        >>> found = ListedProblem.listed(Tensor((2, 8), None, "u64"), (2, 8), [*range(8, 16), *range(8)])
        >>> found.addresses()[:, 0].tolist(), found == ListedProblem.from_json(found.to_json())
        ([64, 0], True)
    """

    smem_offsets: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, only in (("smem_modes", ()), ("swizzle", "NONE")):
            held = getattr(self, name)
            if type(held) is not type(only) or held != only:
                raise malformed(name, f"must be {only!r}: the table defines the layout", held)
        set_fields(self, self.to_json(), _read, "invalid TensorMap problem with a table", PLACES)

    @classmethod
    def listed(
        cls,
        tensor: Tensor,
        tile: Sequence[int],
        offsets: object,
        *,
        arch: str = "sm_90a",
        direction: str = "load",
        **options: object,
    ) -> ListedProblem:
        """Return the problem of copying tiles of a tensor to or from a table of shared offsets."""
        table = np.asarray(offsets).reshape(-1).tolist()
        return cls.from_json(document_of(tensor, tile, {"offsets": table}, arch=arch, direction=direction, **options))

    @classmethod
    def from_json(cls, document: object) -> ListedProblem:
        """Read a problem document whose ``smem`` is ``{"offsets": [...]}``."""
        return put_fields(object.__new__(cls), _read(document if isinstance(document, Reader) else Reader(document)))

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        document = super(ListedProblem, self).to_json()
        document["smem"] = {"offsets": document.pop("smem_offsets")}
        return document

    def linear_offsets(self) -> npt.NDArray[np.int64]:
        """Return the shared element offset of every tile element; shape ``tile``."""
        return np.array(self.smem_offsets, dtype=np.int64).reshape(self.tile)

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the requested shared byte address of every tile element, relative to the aligned tile base."""
        return self.linear_offsets() * hardware.element_bytes(self.dtype)


def problem_from(source: TensorMapProblem | Mapping[str, object] | Reader) -> TensorMapProblem:
    """Return a problem, read from its document if needed."""
    if isinstance(source, TensorMapProblem):
        return source
    if not isinstance(source, (Mapping, Reader)):
        Reader(source).fail("must be a TensorMapProblem or its document; for a layout use layoutalg.tensormap")
    reader = source if isinstance(source, Reader) else Reader(source)
    smem = reader.value.get("smem") if isinstance(reader.value, Mapping) else None
    listed = isinstance(smem, Mapping) and "offsets" in smem
    return ListedProblem.from_json(reader) if listed else TensorMapProblem.from_json(reader)


def _read(reader: Reader) -> tuple[Any, ...]:
    """Read the fields of a problem in their order, the table last."""
    found = read_fields(reader, listed=True)
    smem, size = reader.get("smem"), math.prod(found[3])
    smem.keys(("offsets",))
    node = smem.get("offsets")
    table = node.value
    if not isinstance(table, (list, tuple)) or len(table) != size or {type(value) for value in table} != {int}:
        table = node.integers(size)  # raises the precise error
    for end in (min(table), max(table)):
        if not 0 <= end < SMEM_REACH:
            node.fail(f"shared-memory offsets must be below {SMEM_REACH} elements")
    return (*found, tuple(table))
