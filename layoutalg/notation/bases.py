"""Build linear layouts onto dim0, dim1, ... from lists of basis vectors, as Triton writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError, shown

CODE, WHAT = "LA710", "not a valid Triton layout"
THREAD_AXES: tuple[str, ...] = ("register", "lane", "warp", "block")
SHARED_AXES: tuple[str, ...] = ("offset", "block")


def tensor_layout(bases: Mapping[str, Any], axes: tuple[str, ...], shape: Sequence[int] | None) -> LinearLayout:
    """Return the layout from ``axes`` onto dim0, dim1, ...; axes without bases have size 1.

    Args:
        bases: Axis name -> its images.
        axes: The axes, in the order of the layout.
        shape: Output sizes; None for the smallest powers of two above the components.

    Raises: MalformedError: LA710, LA200.

    Example:
        >>> str(tensor_layout({"offset": [[0, 1], [1, 1]]}, SHARED_AXES, None))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    if not set(bases) <= set(axes):
        fail("text", f"must name axes among {axes}", list(bases))
    ordered = [(axis, bases.get(axis, [])) for axis in axes]
    for axis, images in ordered:
        if not isinstance(images, (tuple, list)) or any(not isinstance(image, (tuple, list)) for image in images):
            fail(axis, "must be a list of basis vectors", images)
    lengths = [len(image) for _, images in ordered for image in images]
    rank = max(lengths, default=0) if shape is None else len(sizes_of(shape))
    if rank == 0:
        fail("text", "must have a basis vector or a shape, otherwise the number of dimensions is unknown", shape)
    sizes = smallest(ordered, rank) if shape is None else tuple(shape)
    return LinearLayout.from_bases(ordered, [(f"dim{index}", size) for index, size in enumerate(sizes)])


def smallest(entries: Sequence[tuple[str, Any]], rank: int) -> tuple[int, ...]:
    """Return the smallest power of two above all components of each output; non-integers are refused later."""
    sizes = [1] * rank
    for _, images in entries:
        for image in images if isinstance(images, (tuple, list)) else ():
            for index, part in enumerate(image[:rank] if isinstance(image, (tuple, list)) else ()):
                if type(part) is int and part > 0:
                    sizes[index] = max(sizes[index], 1 << part.bit_length())
    return tuple(sizes)


def sizes_of(shape: object) -> Sequence[int]:
    """Return the shape, or refuse it if it is not a sequence.

    Raises: MalformedError: LA710.
    """
    if not isinstance(shape, (tuple, list)):
        fail("shape", "must be a sequence of sizes", shape)
    return shape


def fail(argument: str, rule: str, actual: object) -> NoReturn:
    """Raise the error of Triton's notations."""
    because = f"{argument} {rule}, not {shown(actual)}"
    raise MalformedError(Diagnostic(CODE, WHAT, (argument,), because))
