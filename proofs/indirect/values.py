"""Runtime indices as values: labels, permutations and their affine runs. Each is checked once, when it is made.

Notation: an index list v has v(0) .. v(n - 1); *places* number its entries. Arrays are int64 and read-only.

Main statements: labels n -> G have one stable order, which sorts by label and keeps places in order within a label;
offsets are the prefix sums of its counts, so they are monotone. A permutation has distinct values; scattering by it
undoes gathering by it. ``proofs.laws.indirect`` proves what follows from monotone offsets and distinct values.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import memory
from layoutalg.ground.check import Checker, integers
from layoutalg.proofs.groups import group_offsets

Indices: TypeAlias = npt.NDArray[np.int64]
MOST = 1 << 26
"""Most entries of one list, and values below 2^62, so that products with strides can be checked."""
CHECK = Checker("LA938", "these indices do not fit")


def index_array(
    value: object, argument: str, low: int, high: int, check: Checker = CHECK, ranks: tuple[int, ...] = (1,)
) -> Indices:
    """Return integers in [low, high) as a read-only copy; the error names the first offending entry.

    Example:
        >>> index_array([[0, 1], [2, 9]], "topk_ids", 0, 4, ranks=(1, 2))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA938 these indices do not fit
          in     topk_ids[1, 1]
          since  must be in [0, 4), not 9
    """
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu().numpy()  # a tensor of PyTorch
    array = integers(value, argument)
    if array is not None and isinstance(value, (list, tuple)):  # numpy reads True as 1
        entries = np.asarray(value, dtype=object)
        for place, entry in np.ndenumerate(entries):
            check.integer(entry, f"{argument}[{', '.join(map(str, place))}]")
    if array is None or array.ndim not in ranks:
        shapes = " or ".join(f"{rank} dimension{'s' * (rank > 1)}" for rank in ranks)
        raise check.malformed(argument, f"must be integers in {shapes}", value)
    if array.size > MOST:
        raise check.malformed(argument, f"must have at most {MOST} entries", array.size)
    memory.reserve(argument, array.size, 8 * 8)
    wrong = np.asarray((array < low) | (array >= high), dtype=bool)
    if wrong.any():
        where = np.unravel_index(int(np.argmax(wrong)), array.shape)
        at = ", ".join(str(int(part)) for part in where)
        raise check.malformed(f"{argument}[{at}]", f"must be in [{low}, {high})", int(array[where]))
    return frozen(array.astype(np.int64))


def frozen(array: Indices) -> Indices:
    """Return the array, now read-only."""
    array.setflags(write=False)
    return array


class Compared:
    """Base of dataclasses with arrays: equal if all fields are."""

    __slots__ = ()

    def _parts(self) -> tuple[Any, ...]:
        values = [getattr(self, each.name) for each in dataclasses.fields(self)]  # type: ignore[arg-type]
        return tuple([(part.shape, part.tobytes()) if isinstance(part, np.ndarray) else part for part in values])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))


@dataclass(frozen=True, slots=True, eq=False)
class Labels(Compared):
    """Items with labels 0 .. groups - 1; the label of an item that is left out is -1.

    Args:
        ids: The label of each item.
        groups: G.

    Example:
        >>> found = Labels([2, 0, 2, -1, 0], 3)
        >>> found.counts.tolist(), found.offsets.tolist(), found.order.tolist(), found.inverse.tolist()
        ([2, 0, 2], [0, 2, 2, 4], [1, 4, 0, 2], [2, 0, 3, -1, 1])
    """

    ids: Indices
    groups: int

    def __post_init__(self) -> None:
        groups = CHECK.integer(self.groups, "groups", 1, MOST)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "ids", index_array(self.ids, "ids", -1, groups))

    @property
    def counts(self) -> Indices:
        """Items of each label."""
        return np.bincount(self.ids[self.ids >= 0], minlength=self.groups).astype(np.int64)

    @property
    def offsets(self) -> Indices:
        """First place of each label in the order, and the end: G + 1 numbers."""
        return group_offsets(self.counts, argument="counts")

    @property
    def order(self) -> Indices:
        """Items by label, items of one label in their own order; those left out are not in it."""
        found = np.argsort(self.ids, kind="stable")
        return found[np.count_nonzero(self.ids < 0) :]

    @property
    def inverse(self) -> Indices:
        """Place of each item in the order; -1 for those left out."""
        return Permutation(self.order, len(self.ids)).inverse


@dataclass(frozen=True, slots=True, eq=False)
class Permutation(Compared):
    """Distinct sources: place i takes what source(i) has. Some of ``size`` may have no place.

    Args:
        sources: The source of each place.
        size: Sources there are; by default as many as places.

    Raises: MalformedError: LA938, with the first place whose source an earlier place has.

    Example:
        >>> pi = Permutation([2, 0, 1])
        >>> pi.scatter(pi.gather(np.array([10, 20, 30]))).tolist(), pi.inverse.tolist()
        ([10, 20, 30], [1, 2, 0])
    """

    sources: Indices
    size: int = -1

    def __post_init__(self) -> None:
        many = CHECK.integer(self.size, "size", -1, MOST + 1)
        found = index_array(self.sources, "sources", 0, MOST if many < 0 else many)
        many = len(found) if many < 0 else many
        object.__setattr__(self, "size", many)
        object.__setattr__(self, "sources", index_array(found, "sources", 0, many))
        again = first_repeat(found)
        if again is not None:
            rule = f"must not repeat a source: place {again[0]} has it as well"
            raise CHECK.malformed(f"sources[{again[1]}]", rule, int(found[again[1]]))

    @property
    def inverse(self) -> Indices:
        """Place of each source; -1 where it has none."""
        places = np.full(self.size, -1, dtype=np.int64)
        places[self.sources] = np.arange(len(self.sources))
        return places

    @property
    def runs(self) -> Runs:
        """Its maximal affine pieces."""
        return Runs.of(self.sources)

    def gather(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values by place: y(i) = x(source(i))."""
        return np.asarray(values)[self.sources]

    def scatter(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values by source, 0 without a place: x(source(i)) = y(i)."""
        given = np.asarray(values)
        found = np.zeros((self.size, *given.shape[1:]), dtype=given.dtype)
        found[self.sources] = given
        return found


def first_repeat(values: Indices) -> tuple[int, int] | None:
    """Return the earliest place that repeats a value, behind the place it repeats; None if all differ.

    Example:
        >>> first_repeat(np.array([4, 7, 7, 4]))
        (1, 2)
    """
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(values[order[1:]] == values[order[:-1]])
    if not len(same):
        return None
    pair = same[np.argmin(order[same + 1])]
    return int(order[pair]), int(order[pair + 1])


@dataclass(frozen=True, slots=True, eq=False)
class Runs(Compared):
    """An index list in pieces: for each, its first place, its first value, the step and the length.

    Mathematically: v(place + j) = first + step j for 0 <= j < length; pieces cover the places in order.

    Args:
        pieces: (place, first, step, length) of each piece.

    Example:
        >>> Runs.of([5, 6, 7, 3, 1, 9]).pieces.tolist()
        [[0, 5, 1, 3], [3, 3, -2, 2], [5, 9, 1, 1]]
        >>> Runs.of([5, 6, 7, 3, 1, 9], step=1).values().tolist()
        [5, 6, 7, 3, 1, 9]
    """

    pieces: Indices

    def __post_init__(self) -> None:
        found = index_array(self.pieces, "pieces", -(1 << 62), 1 << 62, ranks=(2,))
        if found.shape[1] != 4 or (found.size and found[:, 3].min() < 1):
            raise CHECK.malformed("pieces", "must be (place, first, step, length) with lengths of at least 1", found)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(found[:, 3])])
        if (found[:, 0] != starts[:-1]).any() or starts[-1] > MOST:
            raise CHECK.malformed("pieces", "must cover the places in order", found[:, 0])
        object.__setattr__(self, "pieces", found)

    @classmethod
    def of(cls, values: object, step: int | None = None) -> Runs:
        """Return the fewest pieces of a list: with any step, or all with this one."""
        given = index_array(values, "values", -(1 << 61), 1 << 61)
        steps = np.diff(given)
        if not len(given):
            starts = [0][:0]
        elif step is None:
            starts = _greedy(steps)
        else:
            starts = [0, *(np.flatnonzero(steps != step) + 1).tolist()]
        places = np.array(starts, dtype=np.int64)
        lengths = np.diff(np.append(places, len(given)))
        inside = np.append(steps, 1)[places] if len(given) else places
        taken = np.where(lengths > 1, inside, 1 if step is None else step)
        return cls(np.stack([places, given[places], taken, lengths], axis=1))

    def values(self) -> Indices:
        """Return the list."""
        place, first, step, length = self.pieces.T
        inside = np.arange(int(length.sum()), dtype=np.int64) - np.repeat(place, length)
        found: Indices = np.repeat(first, length) + np.repeat(step, length) * inside
        return found


def _greedy(steps: Indices) -> list[int]:
    """First places of the longest pieces from the left: no cut of the list has fewer, as a part of a piece is one."""
    changes = np.append(np.flatnonzero(np.diff(steps)) + 1, len(steps)) if len(steps) else np.zeros(0, np.int64)
    starts, begin = [0], 0
    for change in changes.tolist():  # steps begin .. change - 1 are equal
        if change > begin:
            begin = change + 1  # the entry behind the piece begins the next
            if begin <= len(steps):
                starts.append(begin)
    return starts
