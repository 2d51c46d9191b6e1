"""Test points for checking an answer: all of a small box, else a corner of it and random points.

Implementation notes: the box comes from interval arithmetic on the texts, not from ISL. The choice is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import numpy as np

from layoutalg.ground import clock
from layoutalg.piecewise.meaning import Array, Meaning
from layoutalg.piecewise.spans import Span, hull
from layoutalg.piecewise.truth import SAFE, positions

POINTS = 2**13
WORK = 2**24
SAMPLES = 512
VECTORS = 6
TRIED = 14
Part: TypeAlias = "tuple[Meaning, int | None]"


_modest: ContextVar[bool] = ContextVar("layoutalg_modest_points", default=False)


@contextmanager
def modest() -> Iterator[None]:
    """Choose only small numbers inside the block, because quantified integers may be decided by trying all values."""
    token = _modest.set(True)
    try:
        yield
    finally:
        _modest.reset(token)


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points at one choice of the parameters.

    Args:
        params: Values of the parameters, one for all points or one per point.
        places: One array per place, all of the same shape.
        count: Number of points.
        exact: Whether these are all points that matter.
    """

    params: Mapping[str, Any]
    places: tuple[Array, ...]
    count: int
    exact: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the points."""
        return np.shape(self.places[0]) if self.places else self.wide

    @property
    def wide(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return max((np.shape(value) for value in self.params.values()), default=(), key=len)

    def at(self, values: Mapping[str, int]) -> Cloud:
        """Return the same points with numbers for further parameters."""
        return Cloud({**self.params, **values}, self.places, self.count, self.exact)

    def given(self, meaning: Meaning) -> dict[str, Array]:
        """Return the parameters of a text as arrays."""
        found = {name: self.params[name] for name in meaning.params}
        return {
            name: value if isinstance(value, np.ndarray) else np.asarray(value, dtype=_kind(value))
            for name, value in found.items()
        }


def together(*parts: Part, width: int, also: Sequence[Meaning] = (), params: Mapping[str, int] | None = None) -> Cloud:
    """Return the points of ``clouds`` as one cloud, each point with its own parameters."""
    found = list(clouds(*parts, width=width, params=params, also=also))
    if len(found) == 1:
        return found[0]
    sizes = [cloud.count for cloud in found]
    names = found[0].params

    def line(values: list[int]) -> Array:
        return np.repeat(np.array(values, dtype=_kind(*values)), sizes)

    given = {name: line([cloud.params[name] for cloud in found]) for name in names}
    places = tuple(np.concatenate([cloud.places[k] for cloud in found]) for k in range(width))
    return Cloud(given, places, sum(sizes), False)


def clouds(
    *parts: Part, width: int, params: Mapping[str, int] | None = None, also: Sequence[Meaning] = ()
) -> Iterator[Cloud]:
    """Yield points of the boxes of some texts.

    Args:
        parts: Pairs (parsed text, number of leading places that form a point; None for all).
        width: Number of places of a point.
        params: Values of the parameters; None to choose them.
        also: Other texts whose parameters need values.

    Example:
        >>> from layoutalg.piecewise.meaning import read
        >>> [cloud] = clouds((read("{ [i, j] : 0 <= i <= j < 2 }"), None), width=2)
        >>> [place.tolist() for place in cloud.places], cloud.exact
        ([[0, 0, 1, 1], [0, 1, 0, 1]], True)
    """
    names = sorted({name for meaning in [*(m for m, _ in parts), *also] for name in meaning.params})
    weight = sum(meaning.weight for meaning in [*(m for m, _ in parts), *also]) + 1
    limit = max(16, min(POINTS, WORK // weight))
    if params is not None or not names:
        yield _cloud(parts, dict(params or {}), width, limit, SAMPLES, Random(width))
        return
    found = 0
    source = Random(len(names))
    for tried in range(TRIED):
        clock.check("points to judge an answer at")
        values = {name: _parameter(tried, source) for name in names}
        cloud = _cloud(parts, values, width, max(16, limit // VECTORS), SAMPLES // 2, source)
        yield cloud
        found += bool(cloud.count)
        if found >= VECTORS:
            return


def _parameter(tried: int, source: Random) -> int:
    """Return a value for a parameter: small positive ones first, then also negative and large ones."""
    if tried < TRIED // 2 or _modest.get():
        return source.randint(1, 12)
    power: int = 2 ** source.randint(0, 20)
    return source.choice([source.randint(-6, 40), source.randint(0, 6), source.randint(0, 2000), power])


def _cloud(
    parts: Sequence[Part], params: Mapping[str, int], width: int, limit: int, samples: int, source: Random
) -> Cloud:
    whole: list[Span] | None = None
    for meaning, places in parts:
        found = meaning.box({name: params[name] for name in meaning.params}, places)
        if found is not None:
            whole = found if whole is None else [hull(a, b) for a, b in zip(whole, found, strict=True)]
    if whole is None:
        return Cloud(params, tuple(np.zeros(0, dtype=np.int64) for _ in range(width)), 0, True)
    size = 1
    for low, high in whole:
        size = 0 if low is None or high is None else size * max(0, high - low + 1)
        if not 0 < size <= limit:
            break
    else:
        return Cloud(params, _grid([(low or 0, (high or 0) - (low or 0) + 1) for low, high in whole]), size, True)
    side = max(1, int((samples // 2) ** (1 / max(1, width))))
    corner = _grid([(_start(span), _length(span, side)) for span in whole])
    random = [[_drawn(span, source) for _ in range(samples // 2)] for span in whole]
    joined = tuple(
        np.concatenate([line, np.array(row, dtype=_kind(*row))]) for line, row in zip(corner, random, strict=True)
    )
    return Cloud(params, joined, len(joined[0]) if joined else 1, False)


def _grid(lines: Sequence[tuple[int, int]]) -> tuple[Array, ...]:
    """Return all points of a box of (start, length) per axis, last axis fastest."""
    if not lines:
        return ()
    axes = positions([length for _, length in lines])
    return tuple(
        axis.astype(_kind(start, start + length)) + start for axis, (start, length) in zip(axes, lines, strict=True)
    )


def _start(span: Span) -> int:
    low, high = span
    return low if low is not None else min(high - 4, -2) if high is not None else -2


def _length(span: Span, side: int) -> int:
    low, high = span
    return side if high is None else max(1, min(side, high - _start((low, high)) + 1))


def _drawn(span: Span, source: Random) -> int:
    low, high = span
    if low is not None and high is not None and low <= high:
        near = min(8, high - low)
        return source.choice((source.randint(low, high), low + source.randint(0, near), high - source.randint(0, near)))
    step = source.choice((source.randint(0, 16), source.randint(0, 300), 2 ** source.randint(0, 24)))
    if _modest.get():
        step %= 64
    if low is not None:
        return low + step
    if high is not None:
        return high - step
    return source.choice((step, -step))


def _kind(*values: int) -> type:
    return object if max(map(abs, values), default=0) >= SAFE else np.int64
