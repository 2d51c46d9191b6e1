"""Find the cheapest known steps (shuffles and selects) that permute the elements of a warp.

Mathematically: the residual is an affine bijection s of F2^n + F2^5 + F2^k (word, lane, warp) that keeps the warp:
place x takes its word from s(x). With W the words and T the threads:

* *Three layers.* Write the lane part of s as C w + A' l + B p. Because s is onto, some E makes A = A' + C E invertible;
  the least rank of E is the dimension of the kernel of A'. Then (w, l) -> (w + E l, l) -> (w, A l + C w + B p) is
  followed by a map that fixes the lane, w -> G w + D t: Choose, Rename, Move, Choose. If the columns of A' + 1 are in
  the image of C, E can make A = 1, and words in the kernel of C need no shuffle.
* *One exchange after another.* If s(W) is the direct sum of its words and its lanes, K + U, there are commuting
  exchanges T with T(W) = s(W), built from U, a complement V of K in W and dual bases of both. T s keeps W, and is
  Move, Choose, Rename.
* *Packing.* Elements narrower than a word move together if some register bits S stay register bits and s^-1(T) + T
  meets S in 0: with S in the low bits before and after, s is the identity on them and a map of words on the rest.

For m exchanged bits of n words the first form costs 2 m n selects and at most n shuffles, the second 1.5 m n selects
and m n / 2 shuffles. Both are built and the cheaper one is returned.

Source: the classical in-register matrix transpose across the lanes of a warp; arXiv 2505.23819, section on conversions,
for packing and for exchanges of single bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground.recognize import Departure, linear
from layoutalg.proofs.conversion_steps import WORD_BITS
from layoutalg.proofs.exchange import Choose, Cost, Exchange, ExchangePlan, Move, Rename, Repack, Step

IntArray: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Affine:
    """A map of word, lane and warp bits, in this order."""

    words: int
    lanes: int
    columns: tuple[int, ...]
    constant: int

    def word(self, value: int) -> int:
        return value & (1 << self.words) - 1

    def lane(self, value: int) -> int:
        return value >> self.words & (1 << self.lanes) - 1

    @property
    def word_columns(self) -> tuple[int, ...]:
        return self.columns[: self.words]

    @property
    def lane_columns(self) -> tuple[int, ...]:
        return self.columns[self.words : self.words + self.lanes]

    @property
    def warp_columns(self) -> tuple[int, ...]:
        return self.columns[self.words + self.lanes :]


def exchanges(source: IntArray, element_bits: int = WORD_BITS) -> ExchangePlan | None:
    """Return the cheapest plan found for a residual; None if it is not an affine map of bits.

    Args:
        source: For each [warp, lane, register], the place (warp * lanes + lane) * registers + register that its element
            comes from; a bijection that stays within the warp.
        element_bits: Bits of an element: 8, 16 or 32; wider ones count as one word.

    Example:
        >>> plan = exchanges(np.arange(8).reshape(1, 2, 4)[:, [1, 0]])
        >>> str(plan.cost), plan.steps
        ('4 shuffles (4 cycles per warp)', (Move(threads=(1,), words=(0, 0), constant=1),))
    """
    warps, lanes, registers = source.shape
    if any(extent & (extent - 1) for extent in source.shape):
        return None
    found = linear(source.reshape(-1))
    if isinstance(found, Departure):
        return None
    columns, constant = found
    register_bits, lane_bits = registers.bit_length() - 1, lanes.bit_length() - 1
    plans: list[ExchangePlan] = []
    pack = max(1, WORD_BITS // element_bits).bit_length() - 1
    for low in range(min(pack, register_bits), -1, -1):
        packing = _packed(_Affine(register_bits, lane_bits, columns, constant), low)
        if packing is None:
            continue
        before, words, after = packing
        for steps in _forms(words):
            kept = tuple(step for step in steps if not _idle(step, words))
            plans.append(ExchangePlan(registers, lanes, warps, before, kept, after))
        break
    return min(plans, key=lambda plan: plan.cost.cycles)


def _idle(step: Step, of: _Affine) -> bool:
    if isinstance(step, Rename):
        return step == Rename(_units(of.words), 0)
    return isinstance(step, Move) and step.cost(1 << of.words) == Cost()


def _units(count: int, first: int = 0) -> tuple[int, ...]:
    return tuple(1 << bit for bit in range(first, first + count))


def _packed(given: _Affine, low: int) -> tuple[Repack, _Affine, Repack] | None:
    """Return the map of words between two repackings with 2^low elements per word; None if there is none."""
    count = given.words
    if not low:
        same = Repack(_units(count), 0, 1)
        return same, given, same
    size = len(given.columns)
    threads = _units(size - count, count)
    back = matrix.inverse(given.columns)
    registers = _units(count)
    forced = [given.word(matrix.apply(back, unit)) for unit in threads]
    staying = matrix.intersection(registers, [matrix.apply(back, unit) for unit in registers])
    slots = _units(low)
    there = [matrix.apply(back, unit) for unit in slots]
    best: tuple[int, tuple[Repack, _Affine, Repack]] | None = None
    for wanted in (slots, there, staying):
        if matrix.rank([*staying, *wanted]) > len(staying):
            continue
        kept = list(matrix.extension(forced, wanted))[:low]
        if len(kept) < low:
            continue
        made = _repacked(given, kept, forced)
        permutes = made[0].cost.permutes + made[2].cost.permutes
        if best is None or permutes < best[0]:
            best = permutes, made
    return None if best is None else best[1]


def _repacked(given: _Affine, kept: list[int], forced: list[int]) -> tuple[Repack, _Affine, Repack]:
    """The repackings with ``kept`` as the parts of a word; the span of the word bits contains ``forced``."""
    count, low, size = given.words, len(kept), len(given.columns)
    units = _units(count)
    high, threads = units[low:], _units(size - count, count)
    rest = _in_order(_complement(kept, list(matrix.image_basis(forced)), (*high, *units[:low])), high)
    last = [*kept, *rest]
    there = [matrix.apply(given.columns, vector) for vector in kept]
    images = [given.word(matrix.apply(given.columns, vector)) for vector in (*rest, *threads)]
    basis = list(matrix.image_basis([vector for vector in images if vector]))
    plain = [unit for unit in (*high, *units[:low]) if matrix.rank([*basis, unit]) == len(basis)]
    first = [*there, *_in_order(list(matrix.extension((), (*plain, *basis))), high)]
    before = Repack(tuple(first), given.word(given.constant), 1 << low)
    after = Repack(matrix.inverse(last), 0, 1 << low)
    outside = _units(size - count, count)
    enter, leave = matrix.inverse([*first, *outside]), [*last, *outside]
    whole = matrix.multiply(enter, matrix.multiply(given.columns, leave))
    constant = given.constant ^ given.word(given.constant)
    columns = tuple(column >> low for column in whole[low:])
    return before, _Affine(count - low, given.lanes, columns, constant >> low), after


def _complement(kept: list[int], inside: list[int], candidates: Sequence[int]) -> list[int]:
    """Return a basis of a complement of ``kept`` that contains ``inside``, made of single candidates if possible."""
    plain = [unit for unit in candidates if matrix.rank([*inside, unit]) == len(inside)]
    basis = matrix.extension((), (*plain, *inside))
    return [*basis, *matrix.extension([*kept, *basis], candidates)]


def _in_order(basis: list[int], places: Sequence[int]) -> list[int]:
    """Return the vectors reordered: those that are one of ``places`` stand at that place's position."""
    left = [vector for vector in basis if vector not in places]
    return [place if place in basis else left.pop(0) for place in places]


def _forms(of: _Affine) -> Iterator[tuple[Step, ...]]:
    """Yield the steps of every form."""
    for added in _corrections(of):
        yield _three_layers(of, added)
    found = _one_by_one(of)
    if found is not None:
        yield found


def _corrections(of: _Affine) -> Iterator[tuple[int, ...]]:
    """Yield maps E of lanes to words such that the lane part of s, with E added to the words, is invertible."""
    from_words = [of.lane(column) for column in of.word_columns]
    from_lanes = [of.lane(column) for column in of.lane_columns]
    reduced = matrix.eliminate(from_words)
    exact = [reduced.reduce(column ^ 1 << bit) for bit, column in enumerate(from_lanes)]
    if not any(rest for rest, _ in exact):
        yield tuple(used for _, used in exact)
    lost = list(matrix.kernel(from_lanes))
    image = list(matrix.image_basis(from_lanes))
    free = matrix.extension(image, (*lost, *from_words))
    usable = [vector for vector in free if not reduced.reduce(vector)[0]]
    if len(usable) < len(lost):
        usable = list(matrix.extension(image, from_words))
    whole = [*lost, *matrix.extension(lost, _units(of.lanes))]
    dual = matrix.inverse(whole)
    taken = [reduced.reduce(vector)[1] for vector in usable[: len(lost)]]
    yield tuple(matrix.apply((*taken, *[0] * (of.lanes - len(taken))), column) for column in dual)


def _three_layers(of: _Affine, added: tuple[int, ...]) -> tuple[Step, ...]:
    """The steps with a correction E."""
    to_lane = tuple(of.lane(column) for column in of.word_columns)
    moved = tuple(
        of.lane(column) ^ matrix.apply(to_lane, word) for column, word in zip(of.lane_columns, added, strict=True)
    )
    by_warp = tuple(of.lane(column) for column in of.warp_columns)
    back = matrix.inverse(moved)

    def words(word: int, lane: int, warp: int) -> int:
        """The word part of s as a function of the corrected word, the lane read and the warp."""
        here = matrix.apply(back, lane ^ matrix.apply(to_lane, word) ^ matrix.apply(by_warp, warp))
        first = word ^ matrix.apply(added, here)
        place = first | here << of.words | warp << of.words + of.lanes
        return of.word(matrix.apply(of.columns, place))

    warps = len(of.columns) - of.words - of.lanes
    chosen = [*(words(0, unit, 0) for unit in _units(of.lanes)), *(words(0, 0, unit) for unit in _units(warps))]
    at = of.lane(of.constant)
    constant = of.word(of.constant) ^ matrix.apply(chosen, at)
    renamed = tuple(words(unit, 0, 0) for unit in _units(of.words))
    return (
        *choices(chosen),
        Rename(renamed, constant),
        Move((*moved, *by_warp), to_lane, at),
        *choices([*added, *[0] * warps]),
    )


def choices(columns: Sequence[int]) -> list[Step]:
    """The selects that add a linear map of the thread to the word; their number is its rank."""
    basis = matrix.image_basis(columns)
    steps: list[Step] = []
    for vector in basis:
        top = vector.bit_length() - 1
        steps.append(Choose(vector, sum(1 << bit for bit, column in enumerate(columns) if column >> top & 1)))
    return steps


def _one_by_one(of: _Affine) -> tuple[Step, ...] | None:
    """The steps of single exchanges; None if the image of the words is not a sum of words and lanes."""
    words, lanes = _units(of.words), _units(of.lanes, of.words)
    kept = list(matrix.intersection(of.word_columns, words))
    gone = _single(list(matrix.intersection(of.word_columns, lanes)), lanes)
    if len(kept) + len(gone) < of.words:
        return None
    partners: list[int] = []
    for vector in gone:
        image = matrix.apply(of.columns, vector)
        fits = image >> of.words == 0 and matrix.rank([*kept, *partners, image]) > len(kept) + len(partners)
        partners.append(image if fits else 0)
    spare = list(matrix.extension([*kept, *partners], words))
    partners = [vector or spare.pop(0) for vector in partners]
    held = matrix.intersection(of.lane_columns, lanes)
    others = [*gone, *matrix.extension(gone, (*held, *lanes))]
    word_dual = matrix.transpose(matrix.inverse([*partners, *kept]), of.words)
    lane_dual = matrix.transpose(matrix.inverse([vector >> of.words for vector in others]), of.lanes)
    steps: list[Step] = [
        Exchange(vector, lane >> of.words, word_dual[place], lane_dual[place])
        for place, (vector, lane) in enumerate(zip(partners, gone, strict=True))
    ]

    def exchanged(value: int) -> int:
        for step in steps:
            if isinstance(step, Exchange):
                goes = (of.word(value) & step.word_asked).bit_count() + (of.lane(value) & step.lane_asked).bit_count()
                value ^= (step.vector | step.lanes << of.words) * (goes & 1)
        return value

    columns = [exchanged(column) for column in of.columns]
    constant = exchanged(of.constant)
    moved = tuple(of.lane(column) for column in columns[of.words :])
    steps.append(Move(moved, (0,) * of.words, of.lane(constant)))
    steps += choices([of.word(column) for column in columns[of.words :]])
    steps.append(Rename(tuple(of.word(column) for column in columns[: of.words]), of.word(constant)))
    return tuple(steps)


def _single(basis: list[int], units: Sequence[int]) -> list[int]:
    """Return a basis of the same span, units in the span first."""
    inside = [unit for unit in units if matrix.rank([*basis, unit]) == len(basis)]
    return list(matrix.extension((), (*inside, *basis)))
