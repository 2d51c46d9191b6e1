"""Conversions inside warps: rename registers, select words by lane, read words from other lanes.

Mathematically: a place of the destination fetches its element from a place of the source, by an affine map P over F2 of
(register, lane, warp). Let D be the words of the destination, L the lanes, and K the differences in D + L that P maps
to words alone. A round is a coset of a space H that complements D in D + L: along H, every lane receives one word, and
no lane sends two if H meets K only in the kernel of P. Such an H exists if dim D >= dim K / ker P: a common complement
of D + ker P and of K, joined with the kernel. If D is smaller, it is extended by words that are read and dropped. If
the differences at which P keeps the lane reach all lanes, H may be chosen among them, and the words that stay need no
shuffle. Along H the word sent is affine in the sending lane and the word received in the receiving one, so a plan is:
select among the words by lane, read, select by lane.

References: arXiv 2505.23819, section on conversions, for bases of unit vectors; common complements cover all maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layoutalg.f2 import matrix
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.proofs.conversion_steps import WORD_BITS, Read, Step, taken_by
from layoutalg.synth.exchange import choices

FEW = 4
"""Up to this many word-number bits, a second form of the plan is tried as well."""


@dataclass(frozen=True, slots=True)
class Places:
    """A linear register layout as columns, one for each bit of register, lane and warp."""

    registers: tuple[int, ...]  # images of the register bits
    lanes: tuple[int, ...]  # images of the lane bits
    warps: tuple[int, ...]  # images of the warp bits
    constant: int  # the element of place 0

    def mapped(self, order: Callable[[int], int]) -> Places:
        """Return the layout after a linear map of elements."""
        parts = (tuple(order(column) for column in part) for part in (self.registers, self.lanes, self.warps))
        registers, lanes, warps = parts
        return Places(registers, lanes, warps, order(self.constant))

    @property
    def columns(self) -> tuple[int, ...]:
        """All images, registers first."""
        return self.registers + self.lanes + self.warps


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where each place of the destination finds its element in the source."""

    columns: tuple[int, ...]  # per bit of the destination's place, the difference in the source's place
    constant: int  # the source's place for place 0
    kept: tuple[int, ...]  # register bits of the destination whose columns span all register columns
    registers: int  # register bits of the source
    lanes: int  # lane bits
    warps: int  # warp bits
    local: bool  # whether every element stays in its warp
    forced: bool  # whether the source holds every element once, so the map is unique

    def word(self, place: int) -> int:
        """Return the register part of a place of the source."""
        return place & (1 << self.registers) - 1

    def lane(self, place: int) -> int:
        """Return its lane part."""
        return place >> self.registers & (1 << self.lanes) - 1


def nobody(element: int) -> InfeasibleError:
    """Return the error for an element that the source does not contain."""
    because = f"element {element} of the destination is not in the source"
    return InfeasibleError(
        Diagnostic("LA934", "the source does not contain every requested element", (), because, {"element": element})
    )


def fetched(source: Places, wanted: Places) -> Fetched:
    """Return where the destination's elements are found, as near as possible.

    Raises: InfeasibleError: LA934, if the source lacks an element.
    """
    r, n = len(source.registers), len(source.lanes)
    near = matrix.eliminate(source.registers)
    warp = matrix.eliminate((*source.registers, *source.lanes))
    whole = matrix.eliminate(source.columns)

    def found(element: int, own: int, place: int) -> int:
        """The place of an element: in the place's own thread, else in its warp, else anywhere."""
        for held, start in ((near, own), (warp, own if own >> r + n else 0), (whole, 0)):
            rest, used = held.reduce(element ^ matrix.apply(source.columns, start))
            if not rest:
                return used ^ start
        raise nobody(wanted.constant ^ place)

    base = found(wanted.constant ^ source.constant, 0, 0)
    columns = []
    for bit, column in enumerate(wanted.columns):
        place = bit - len(wanted.registers)
        columns.append(found(column, 1 << r + place if place >= 0 else 0, column))
    basis = matrix.eliminate(wanted.registers)
    dropped = {null.bit_length() - 1 for null in basis.null}
    kept = tuple(bit for bit in range(len(wanted.registers)) if bit not in dropped)
    outside = [column >> r + n for column in (*(columns[bit] for bit in kept), base)]
    outside += [column >> r + n for column in columns[len(wanted.registers) : len(wanted.registers) + n]]
    own_warps = all(column >> r + n == 1 << bit for bit, column in enumerate(columns[len(wanted.registers) + n :]))
    return Fetched(tuple(columns), base, kept, r, n, len(source.warps), own_warps and not any(outside), not whole.null)


def basis_of(columns: Sequence[int]) -> tuple[tuple[int, ...], Callable[[int], int]]:
    """Return a basis of the span of columns, and the function that writes a vector of the span in it."""
    basis = tuple(vector for vector, _ in matrix.eliminate(columns).pivots)
    tops = [vector.bit_length() - 1 for vector in basis]
    return basis, lambda vector: sum((vector >> top & 1) << at for at, top in enumerate(tops))


def _in_kept(moved: Fetched, wanted: Places) -> list[int]:
    """Return every register bit of the destination as a set of kept ones, which span them all."""
    reduced = matrix.eliminate([wanted.registers[bit] for bit in moved.kept])
    kept = [1 << bit for bit in moved.kept]
    return [matrix.apply(kept, reduced.reduce(column)[1]) for column in wanted.registers]


def renamed(moved: Fetched, wanted: Places) -> tuple[int, ...] | None:
    """Return the source register of each destination register, the same in all threads; None if threads differ."""
    registers, mask = len(wanted.registers), (1 << moved.registers) - 1
    threads = moved.columns[registers:]
    if any(column != 1 << moved.registers + bit for bit, column in enumerate(threads)):
        return None
    columns = [matrix.apply(moved.columns, bits) for bits in _in_kept(moved, wanted)]
    if any(column & ~mask for column in (*columns, moved.constant)):
        return None
    return tuple(matrix.table(columns, moved.constant).tolist())


def inside(moved: Fetched, wanted: Places, element_bits: int) -> list[tuple[tuple[Step, ...], bool]]:
    """Return plans inside warps, each with whether its number of shuffles is minimal."""
    natural = max(1, WORD_BITS // element_bits)
    packed = natural.bit_length() - 1
    found = []
    split = _split(moved, packed)
    for staying in (True, False):
        made = _rounds(moved, wanted, split, staying, natural)
        if made is not None and made not in found:
            found.append(made)
        if found and len(split.words) > FEW:
            break
    return found


@dataclass(frozen=True, slots=True)
class _Split:
    """Register bits split into element-in-word and word, in the destination (kept registers) and in the source.

    ``images`` are the columns of P on ``parts`` in the source's registers; ``words`` is a complement that keeps the
    part, and ``places`` one in the source that contains everything threads add.
    """

    parts: tuple[int, ...]
    words: tuple[int, ...]
    images: tuple[int, ...]
    places: tuple[int, ...]


def _split(moved: Fetched, most: int) -> _Split:
    """Return the split with as many elements per word as can travel together."""
    r = moved.registers
    kept = [1 << bit for bit in moved.kept]
    back = {unit: moved.columns[bit] for unit, bit in zip(kept, moved.kept, strict=True)}

    def image(vector: int) -> int:
        return matrix.apply(moved.columns, vector)

    threads = [moved.word(column) for column in moved.columns[_count(moved) :]]
    stuck = matrix.kernel([back[unit] >> r for unit in kept])
    able = tuple(matrix.apply(kept, chosen) for chosen in stuck)
    single = sorted((unit for unit in kept if not back[unit] >> r), key=lambda unit: (image(unit), unit))
    able = (*single, *able)
    images = matrix.extension(threads, [image(vector) for vector in able])[:most]
    first = {image(vector): vector for vector in reversed(able)}
    parts = [first[vector] for vector in images]
    rest = matrix.extension(images, (*matrix.image_basis(threads), *(1 << bit for bit in range(r))))
    order = matrix.inverse([*images, *rest])
    words = []
    for unit in matrix.extension(parts, kept):
        inner = matrix.apply(order, moved.word(image(unit))) & (1 << len(parts)) - 1
        words.append(unit ^ matrix.apply(parts, inner))
    return _Split(tuple(parts), tuple(words), images, rest)


def _count(moved: Fetched) -> int:
    """Register bits of the destination, kept or not."""
    return len(moved.columns) - moved.lanes - moved.warps


def _rounds(
    moved: Fetched, wanted: Places, split: _Split, staying: bool, natural: int
) -> tuple[tuple[Step, ...], bool] | None:
    """The steps of a plan; None if ``staying`` is requested and impossible."""
    r, lanes, warps, low = moved.registers, moved.lanes, moved.warps, len(split.parts)
    order = matrix.inverse([*split.images, *split.places])
    first = _count(moved)

    def word(place: int) -> int:
        return matrix.apply(order, moved.word(place)) >> low

    bits = len(split.words)
    # word places: destination word bits, then lanes; images: source word bits (low), then lanes
    given = [matrix.apply(moved.columns, vector) for vector in split.words]
    given += moved.columns[first : first + lanes]
    size = len(split.places)
    joined = [word(place) | moved.lane(place) << size for place in given]
    null = list(matrix.kernel(joined))
    still = list(matrix.kernel([column >> size for column in joined]))  # K, with the kernel
    reach = matrix.rank(still) - len(null)
    units = [1 << bit for bit in range(bits)]
    if reach > bits:  # extend D by words that are read and dropped
        inner = list(matrix.intersection(still, units)) if units else []
        more = matrix.extension([*null, *inner], still)[: reach - bits]
        taken = [matrix.apply(joined, vector) for vector in more]
        joined = [*joined[:bits], *taken, *joined[bits:]]
        bits = reach
        null = list(matrix.kernel(joined))
        still = list(matrix.kernel([column >> size for column in joined]))
        units = [1 << bit for bit in range(bits)]
    whole = bits + lanes
    threads = moved.columns[first + lanes :]
    stay = matrix.kernel([column >> size ^ (1 << at - bits if at >= bits else 0) for at, column in enumerate(joined)])
    tops = matrix.eliminate([vector >> bits for vector in stay])
    at_home = tops.rank == lanes
    if staying:
        if not at_home:
            return None
        chosen = list(stay)
    else:
        common = matrix.common_complement([*units, *null], still, whole)
        chosen = [*common, *null]
    graph = matrix.eliminate([vector >> bits for vector in chosen])
    along = []
    for bit in range(lanes):
        rest, used = graph.reduce(1 << bit)
        if rest:
            return None
        along.append(matrix.apply(chosen, used) & (1 << bits) - 1)
    homes = matrix.eliminate([column >> size for column in joined[:bits]])
    for column in threads:
        rest, used = homes.reduce(moved.lane(column))
        along.append(0 if rest else used)
    received = [joined[bits + bit] ^ matrix.apply(joined[:bits], along[bit]) for bit in range(lanes)]
    received += [
        (word(column) | moved.lane(column) << size) ^ matrix.apply(joined[:bits], along[lanes + at])
        for at, column in enumerate(threads)
    ]
    lane_of, word_of = [column >> size for column in received], [column & (1 << size) - 1 for column in received]
    senders = matrix.eliminate(lane_of[:lanes])
    if any(matrix.apply(word_of[:lanes], used) for used in senders.null):
        return None
    sent = _extended(lane_of[:lanes], word_of[:lanes], lanes)
    sent += [word_of[lanes + at] ^ matrix.apply(sent, lane_of[lanes + at]) for at in range(warps)]
    base = word(moved.constant) | moved.lane(moved.constant) << size
    rounds = [int(value) for value in matrix.table(joined[:bits], base)]
    read = Read(
        tuple(lane_of),
        tuple(value >> size for value in rounds),
        tuple(value & (1 << size) - 1 ^ matrix.apply(sent, value >> size) for value in rounds),
    )
    part = matrix.apply(order, moved.word(moved.constant)) & (1 << low) - 1
    before = matrix.table([*split.images, *split.places], matrix.apply(split.images, part))
    basis = matrix.eliminate([*split.parts, *split.words])
    after = matrix.table([basis.reduce(vector)[1] for vector in _in_kept(moved, wanted)])
    steps = (
        *taken_by(before.tolist(), 1 << r, natural, 1 << low),
        *choices(sent),
        read,
        *choices(along),
        *taken_by(after.tolist(), 1 << bits + low, 1 << low, natural),
    )
    count = read.shuffles(1 << lanes)
    kept = len(matrix.intersection(stay, units)) if units else 0
    elements = (1 << bits) - (1 << kept if at_home and _home(moved, joined[:bits], size) else 0)
    least = moved.forced and reach <= len(split.words) and count == -(-(elements << low) // natural)
    return steps, least


def _home(moved: Fetched, words: Sequence[int], size: int) -> bool:
    """Whether some word compensates the constant's lane."""
    return not matrix.eliminate([column >> size for column in words]).reduce(moved.lane(moved.constant))[0]


def _extended(lanes: Sequence[int], words: Sequence[int], count: int) -> list[int]:
    """Return columns of a linear map of lanes that maps lanes[i] to words[i] for every i."""
    units = [1 << bit for bit in range(count)]
    values = dict.fromkeys(units, 0) | dict(zip(lanes, words, strict=True))
    basis = matrix.extension((), (*lanes, *units))
    return [matrix.apply([values[lane] for lane in basis], column) for column in matrix.inverse(basis)]
