"""Decide small bounded functions and sets without ISL, by listing all their points.

Implementation notes: a text is small if it has no parameters and interval arithmetic bounds its points by a box of some
thousands. Everything here returns None for a text that is not small or cannot be parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.confirm import Values, held, valued
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read
from layoutalg.piecewise.runs import runs_text

Points: TypeAlias = "list[tuple[int, ...]]"
LISTED = 512
TEXT = 100_000


def everywhere(near: Sequence[Meaning], width: int) -> Cloud | None:
    """Return all points of the boxes of some texts without parameters, if these are few; else None."""
    if any(meaning.params for meaning in near):
        return None
    cloud = next(iter(clouds(*((meaning, width) for meaning in near), width=width)))
    return cloud if cloud.exact else None


def found_at(near: Sequence[str], width: int | None, test: Callable[[Cloud, list[Meaning]], Array]) -> Points | None:
    """Return the points of the boxes of some texts that pass a test, in lexicographic order."""
    try:
        texts = [read(text) for text in near]
        own = texts[0].inputs if texts[0].is_map else texts[0].outputs
        cloud = everywhere(texts, own if width is None else width)
        return None if cloud is None else listed(cloud, test(cloud, texts))
    except UnreadError:
        return None


def listed(cloud: Cloud, chosen: Array) -> Points:
    """Return the chosen points of a cloud."""
    chosen = np.broadcast_to(chosen, cloud.shape)
    if not cloud.places:
        return [()] if bool(chosen.all()) else []
    return list(zip(*(place[chosen].tolist() for place in cloud.places), strict=True))


def set_points(text: str) -> Points | None:
    """Return all points of a set, in lexicographic order.

    Example:
        >>> set_points("{ [i, j] : 0 <= i < 3 and 0 <= j < 3 and (3i + j) mod 2 = 0 }")
        [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)]
    """
    return found_at([text], None, lambda cloud, texts: held(texts[0], cloud))


def function_points(text: str) -> tuple[Points, Points] | None:
    """Return all points of a function's domain, in lexicographic order, and the values there.

    Example:
        >>> function_points("{ [i] -> [i mod 2, i] : 0 <= i < 3 }")
        ([(0,), (1,), (2,)], [(0, 0), (1, 1), (0, 2)])
    """
    try:
        function = read(text)
        cloud = everywhere([function], function.inputs)
        if cloud is None:
            return None
        values: Values = valued(function, cloud)
    except UnreadError:
        return None
    inputs = listed(cloud, values[1])
    if not values[0]:
        return inputs, [()] * len(inputs)
    chosen = np.broadcast_to(values[1], cloud.shape)
    lines = (np.broadcast_to(value, cloud.shape)[chosen].reshape(-1).tolist() for value in values[0])
    return inputs, [tuple(map(int, row)) for row in zip(*lines, strict=True)]


def first_collision(points: Points, values: Points) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Return two points with the same value, and the value; or None.

    Example:
        >>> first_collision([(0,), (1,), (2,)], [(5,), (6,), (5,)])
        ((0,), (2,), (5,))
    """
    seen: dict[tuple[int, ...], tuple[int, ...]] = {}
    for point, value in zip(points, values, strict=True):
        if value in seen:
            return seen[value], point, value
        seen[value] = point
    return None


def inverse_text(text: str, names: Sequence[str]) -> str | None:
    """Return the least point of every value of a function of at most 512 points, as runs; None if the text is too long.

    Args:
        text: The function.
        names: Names of its outputs.

    Example:
        >>> inverse_text("{ [i] -> [floor(i/3)] : 0 <= i < 9 }", ("y",))
        '{ [y] -> [0 + 3*(y - 0)] : 0 <= y - 0 <= 2 }'
    """
    found = function_points(text)
    if found is None or not 0 < len(found[0]) <= LISTED or not names:
        return None
    least: dict[tuple[int, ...], tuple[int, ...]] = {}
    for point, value in zip(*found, strict=True):
        least.setdefault(value, point)
    answer = runs_text(least, names)
    return answer if len(answer) < TEXT else None
