"""The arrays that a kernel takes: their requirements, and the check of those passed in.

Implementation notes: a kernel moves elements as bits, so an array may have any type of the element's size; source and
destination must have the same type. Of a bare address only the alignment can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.launch import DeviceTensor, from_dlpack
from layoutalg.ground.errors import Diagnostic, MalformedError, Repair, shown
from layoutalg.ground.record import Checked

Place: TypeAlias = "int | npt.NDArray[Any] | DeviceTensor"
"""A device address, or an array: numpy's, or another library's tensor via ``launch.from_dlpack``."""


@dataclass(frozen=True, slots=True)
class ArrayArgument(Checked):
    """A dense row-major array that a kernel takes.

    Args:
        name: Argument of ``ArrayKernel.arguments``.
        shape: Its extents, outermost first.
        element_bytes: Bytes of an element.
        align_bytes: Required alignment of its address.
        written: Whether the kernel writes it.
        indices: Whether its elements are indices: integers.
    """

    name: str
    shape: tuple[int, ...]
    element_bytes: int
    align_bytes: int
    written: bool = False
    indices: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * self.element_bytes

    def rule(self, place: Place) -> str:
        """Return the rule that an array or address breaks, with the offending value; empty if it breaks none."""
        if isinstance(place, np.ndarray):
            rule = self._kind(place)
        elif isinstance(place, DeviceTensor):
            fits = place.itemsize == self.element_bytes
            rule = "" if fits else f"must have elements of {self.element_bytes} bytes, not {place.itemsize}"
        elif isinstance(place, bool) or not isinstance(place, int) or not 0 < place < 1 << 64:
            rule = f"must be an array or a nonzero 64-bit address, not {shown(place)}"
        else:
            rule = ""
        if not rule and not isinstance(place, int):
            rule = self._extents(place)
        over = 0 if rule else address_of(place) % self.align_bytes
        return rule or (f"must be {self.align_bytes}-byte aligned, but is off by {over} bytes" if over else "")

    def _kind(self, place: npt.NDArray[Any]) -> str:
        """The rule for its elements."""
        if place.dtype.hasobject or place.itemsize != self.element_bytes:
            return f"must have elements of {self.element_bytes} bytes, not {place.dtype}"
        if self.indices and (place.dtype.kind not in "iu" or not place.dtype.isnative):
            return f"must have {8 * self.element_bytes}-bit integers in native byte order, not {place.dtype}"
        return "must be writeable: the kernel writes it" if self.written and not place.flags.writeable else ""

    def _extents(self, place: npt.NDArray[Any] | DeviceTensor) -> str:
        """The rule for its extents and strides."""
        many = prod(self.shape)
        if place.shape != (many,) and _without_ones(place.shape) != _without_ones(self.shape):
            return f"must have shape {self.shape} or ({many},), not {place.shape}"
        return "" if _dense(place) else "must be row-major and contiguous"


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [extent for extent in shape if extent != 1]


def ends(
    source: tuple[int, ...], destination: tuple[int, ...], element_bytes: int, align_bytes: int
) -> tuple[ArrayArgument, ...]:
    """Return the arguments of a kernel that takes a source and a destination."""
    return (
        ArrayArgument("source", source, element_bytes, align_bytes),
        ArrayArgument("destination", destination, element_bytes, align_bytes, written=True),
    )


def address_of(place: Place) -> int:
    """Return the address of the first element."""
    if isinstance(place, np.ndarray):
        return int(place.ctypes.data)
    return place.pointer if isinstance(place, DeviceTensor) else place


def _dense(place: npt.NDArray[Any] | DeviceTensor) -> bool:
    if isinstance(place, np.ndarray):
        return place.flags.c_contiguous
    steps = [prod(place.shape[dim + 1 :]) for dim in range(len(place.shape))]
    return all(
        extent == 1 or step == stride for extent, step, stride in zip(place.shape, steps, place.strides, strict=True)
    )


def checked_places(arguments: Sequence[ArrayArgument], places: Mapping[str, Place]) -> list[int]:
    """Return the addresses of the arrays of a launch, one for each argument.

    Raises: MalformedError: LA947, naming the argument, its rule and, for numpy arrays, a repair if there is one.
    """
    spans: list[tuple[int, int, ArrayArgument]] = []
    source = places.get("source")
    for argument in arguments:
        place = places[argument.name]
        rule = argument.rule(place)
        if not rule and argument.written and isinstance(place, np.ndarray) and isinstance(source, np.ndarray):
            rule = (
                ""
                if place.dtype == source.dtype
                else f"must be of the source's type, {source.dtype}, not {place.dtype}"
            )
        if rule:
            raise _unfit(argument.name, rule, _repairs(argument, place, source))
        first = address_of(place)
        for start, end, other in spans:
            if (argument.written or other.written) and first < end and start < first + argument.nbytes:
                rule = f"must not overlap {other.name}: blocks run in any order"
                raise _unfit(argument.name, rule, _repairs(argument, place, source))
        spans.append((first, first + argument.nbytes, argument))
    return [start for start, _, _ in spans]


def _unfit(name: str, rule: str, repairs: tuple[Repair, ...]) -> MalformedError:
    what = "the array does not fit the kernel"
    return MalformedError(Diagnostic("LA947", what, (name,), f"{name} {rule}", repairs=repairs))


def _repairs(argument: ArrayArgument, place: Place, source: Place | None) -> tuple[Repair, ...]:
    """Changes that make a numpy array fit; each is tried on an empty array and checked."""
    if not isinstance(place, np.ndarray):
        if not hasattr(place, "__dlpack__") or argument.rule(from_dlpack(place)):
            return ()
        return (Repair("pass its memory", f"{argument.name} = launch.from_dlpack({argument.name})"),)
    name, found = argument.name, list[Repair]()
    if argument.written:
        dtype = source.dtype if isinstance(source, np.ndarray) else np.dtype(f"u{argument.element_bytes}")
        if argument.rule(np.empty(argument.shape, dtype)) == "":
            found.append(Repair("use a new array", f"{name} = np.empty({argument.shape}, np.{dtype})"))
    elif not place.flags.c_contiguous and argument.rule(np.empty(place.shape, place.dtype)) == "":
        found.append(Repair("copy it", f"{name} = np.ascontiguousarray({name})"))
    elif argument.indices and place.dtype.kind in "iu":
        wanted = np.dtype(f"i{argument.element_bytes}")
        if argument.rule(np.empty(place.shape, wanted)) == "" and np.array_equal(place.astype(wanted), place):
            found.append(Repair("change its type", f"{name} = {name}.astype(np.{wanted}), which keeps every value"))
        if place.dtype.isnative and place.itemsize in (4, 8):
            kind = f"s{8 * place.itemsize}"
            found.append(Repair("generate the kernel for this type", f'gather_kernel(..., index_dtype="{kind}")'))
    return tuple(found)
