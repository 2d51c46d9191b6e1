"""Factor for instructions that move registers to or from shared memory: fixed columns, fewest words moved.

Mathematically: such an instruction moves by an affine map D of places (register, lane, warp) to offsets. Some place
bits, those inside one row of shared memory, have a fixed column; all others have any columns that are multiples of the
row, because every row has its own address. With W the span of the register and lane columns of the layout L, F the
fixed columns and H the multiples of the row in W:

* D keeps the warps of L exactly if F is in W, W = F + H, and what a warp bit adds is in F + H too. Otherwise some
  offset bit inside the row is not reached by a warp's places, and it is named.
* Let lane(x) be the lane part of L^-1 x for x in W, and p(x) that of D^-1 x. A lane keeps words exactly where p(L x)
  is its own number. If every lane keeps some, then with Q the image under p of the register columns of L, p = lane
  modulo Q: Q contains lane(f) for a fixed register and lane(f) + u for a fixed lane u, and Q + lane(H) = Q + U, U the
  free lanes. With m its dimension, 2^r - 2^(r-m) of 2^r words are moved; if there is no such Q, all are. All spaces Q
  that satisfy these conditions are tried, smallest first.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutalg.f2 import matrix
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.synth.factor.bits import Bits
from layoutalg.synth.lds import TRANSPOSING, WIDTHS
from layoutalg.targets.layouts.shared import transposed_read
from layoutalg.targets.nvidia.accesses import access_form


@dataclass(frozen=True, slots=True)
class Template:
    """The columns that an instruction fixes."""

    registers: tuple[int, ...]  # offset bits of the low register bits, in order
    lanes: Mapping[int, int] = field(hash=False)  # offset bit of each lane bit inside a row
    row: int  # number of offset bits in a row
    least: int  # register bits of one instruction
    warp: int = 5  # lane bits of a warp


def template_of(consumer: str, bits: int) -> Template | Unknown:
    """Return the columns that an instruction fixes for elements of ``bits`` bits.

    Example:
        >>> template_of("ldmatrix.x4", 16).lanes, template_of("ldmatrix.x4.trans", 16).lanes
        ({0: 1, 1: 2}, {2: 0, 3: 1, 4: 2})
        >>> template_of("ld.shared.v4.b32", 16).registers
        (0, 1, 2)
    """
    if consumer in WIDTHS:
        many = WIDTHS[consumer] * 8 // bits
        if many < 1 or many & (many - 1):
            return Unknown(f"{consumer} does not move a power of two of {bits}-bit elements", ("factorise",))
        width = many.bit_length() - 1
        return Template(tuple(range(width)), {}, width, width, 6)
    if consumer in TRANSPOSING and TRANSPOSING[consumer] == bits:
        read = transposed_read(bits)
        slots = dict(zip(read.out_dims, read.out_dims.values(), strict=True))["slot"].bit_length() - 1
        registers = [name for name, count in read.in_axes if name == "register" for _ in range(count)]
        columns = read.columns[len(registers) :]
        inside = {bit: column.bit_length() - 1 for bit, column in enumerate(columns) if 0 < column < 1 << slots}
        return Template((), inside, slots, len(registers), 6)
    try:
        form = access_form(consumer)
    except LayoutError:
        return Unknown(f"no complete list of the maps that {consumer} carries", ("factorise",))
    if form.unit_bits % bits or form.element_bits not in (0, bits) or consumer.startswith("cp."):
        return Unknown(f"no list of the maps that {consumer} carries for {bits}-bit elements", ("factorise",))

    def place(bit: int) -> int:
        return (bit // bits).bit_length() - 1

    unit = tuple(range(place(form.unit_bits)))
    registers_inside = (*unit, *(place(bit) for bit, row in form.register if not row))
    lanes = {lane: place(bit) for lane, (bit, row) in enumerate(form.lane) if not row}
    return Template(registers_inside, lanes, place(form.row_bits), len(unit) + len(form.register))


def carrier_of(bits: Bits, template: Template) -> tuple[tuple[int, ...], int, int] | Broken:
    """Return (columns, constant, least rounds) of a map that fits the template, or the obstacle."""
    registers, lanes, warps = (bits.of_role(role) for role in range(3))
    if matrix.rank(bits.columns) < len(bits.columns):
        kernel = matrix.kernel(bits.columns)[0]
        because = f"places 0 and {kernel} share an offset: the layout is not injective"
        bit = matrix.apply(bits.columns, kernel & kernel - 1).bit_length()
        return Broken("FACTOR_INJECTIVE", because, {"output_bit": bit})
    if len(lanes) != template.warp or len(registers) < template.least:
        needs = f"one instruction moves {1 << template.least} elements in each of {1 << template.warp} lanes"
        bit = next(iter(template.registers[len(registers) :]), template.row)
        return Broken("FACTOR_SIZE", needs, {"output_bit": bit})
    low = (1 << template.row) - 1
    within = [bits.columns[place] for place in (*registers, *lanes)]
    fixed = {registers[place]: 1 << bit for place, bit in enumerate(template.registers)}
    fixed |= {lanes[place]: 1 << bit for place, bit in template.lanes.items()}
    spans = matrix.image_basis(list(fixed.values()))
    reduced = matrix.eliminate(within)
    for column in fixed.values():
        if reduced.reduce(column)[0]:
            return _apart(column)
    high = [matrix.apply(within, chosen) for chosen in matrix.kernel([column & low for column in within])]
    if len(high) + len(fixed) < len(within):
        return _apart(next(rest for column in within if (rest := matrix.remainder(spans, column & low))))
    for column in (*(bits.columns[place] for place in warps), bits.constant):
        if rest := matrix.remainder(spans, column & low):
            return _apart(rest)

    def lane_of(vector: int) -> int:
        """The lane part of L^-1, bit i for lane bit i."""
        return reduced.reduce(vector)[1] >> len(registers)

    free = [place for place in range(len(lanes)) if lanes[place] not in fixed]
    own, mine = list(fixed.values()), [1 << lanes.index(place) if place in lanes else 0 for place in fixed]
    asked = [lane_of(column) ^ lane for column, lane in zip(own, mine, strict=True)]
    reached = matrix.eliminate([*own, *high])
    shares = [reached.reduce(bits.columns[place])[1] for place in registers]
    units, size = [1 << place for place in free], (len(lanes), len(registers))
    labels, space, keeps, proved = _cheapest(mine, [lane_of(vector) for vector in high], shares, units, asked, size)
    columns = _columns(bits, fixed, high, labels, free)

    def start(column: int) -> int:
        """The column of a warp bit: that of L minus a vector of W, so that it is a multiple of the row."""
        if not column & low:
            return column
        used = matrix.eliminate(own).reduce(column & low)[1]
        chosen = matrix.eliminate([*labels, *space]).reduce(matrix.apply(mine, used))[1] & (1 << len(labels)) - 1
        return column ^ matrix.apply(own, used) ^ matrix.apply(high, chosen)

    made = list(columns)
    for place in warps:
        made[place] = start(bits.columns[place])
    count = 1 << len(registers)
    kept = count >> len(space) if keeps else 0
    return tuple(made), start(bits.constant), count - kept if proved else -1


Found: TypeAlias = tuple[list[int], list[int], bool, bool]
TRIALS = 40
"""Limit on random completions of a space."""


def _cheapest(
    own: list[int], high: list[int], shares: list[int], units: list[int], asked: list[int], size: tuple[int, int]
) -> Found:
    """Return (label of every multiple of the row, Q, whether lanes keep words, whether Q is provably smallest).

    Args:
        own: Lane of every fixed column.
        high: Lane, in L, of every multiple of the row.
        shares: Every register column of L as a sum of fixed columns and multiples of the row, in this order.
        units: The free lanes.
        asked: Vectors that Q must contain.
        size: Lane bits and register bits.
    """
    lanes, registers = size
    first = list(matrix.image_basis(asked))
    least = len(first) + len(_joining(high, units, first))
    proved = True
    rng = random.Random(0)
    for many in range(least, min(lanes, registers) + 1):
        for space in _spaces(first, lanes, many):
            clock.check("the search for the fewest words moved")
            if _joining(high, units, space):
                continue
            base = _labels(high, units, space)
            inside = list(matrix.intersection(units, space)) if units and space else []
            held = [matrix.apply([*own, *base], share) for share in shares]
            if matrix.rank([*held, *inside]) < many:  # with all freedom of the labels
                continue
            for _ in range(TRIALS):
                labels = [
                    label ^ matrix.apply(inside, rng.randrange(1 << len(inside))) if rng.random() < 0.5 else label
                    for label in base
                ]
                held = [matrix.apply([*own, *labels], share) for share in shares]
                if matrix.rank(held) == many and matrix.rank(labels) == len(units):
                    return labels, space, True, proved
            proved = False
    everything = [1 << place for place in range(lanes)]
    return _labels(high, units, everything), everything, False, proved


def _spaces(base: list[int], lanes: int, many: int) -> Iterator[list[int]]:
    """Yield every space of dimension ``many`` that contains a base, once."""
    level = {matrix.image_basis(base)}
    for _ in range(many - len(base)):
        level = {
            matrix.image_basis([*space, vector])
            for space in level
            for vector in range(1, 1 << lanes)
            if matrix.remainder(space, vector) == vector
        }
    for space in sorted(level):
        yield list(space)


def _apart(column: int) -> Broken:
    bit = column.bit_length() - 1
    because = f"offset bit {bit} is inside the row of one address, but a warp's places do not have both of its values"
    return Broken("FACTOR_ROW", because, {"output_bit": bit})


def _joining(left: list[int], right: list[int], space: list[int]) -> list[int]:
    """Return the fewest vectors that, with ``space``, make the spans of ``left`` and ``right`` equal."""
    shared = matrix.intersection([*left, *space], [*right, *space])
    more = [matrix.extension(shared, side) for side in (left, right)]
    return [one ^ other for one, other in itertools.zip_longest(*more, fillvalue=0)]


def _labels(lanes: list[int], units: list[int], space: list[int]) -> list[int]:
    """Return for every vector a sum of free lanes, equal to its lane modulo ``space``; together they span all units."""
    basis = [*units, *space]
    reduced = matrix.eliminate(basis)
    known = (1 << len(units)) - 1
    labels, spare, reached = list[int](), list[int](), list[int]()
    for place, lane in enumerate(lanes):
        label = matrix.apply(units, reduced.reduce(lane)[1] & known)
        if matrix.rank([*reached, label]) > len(reached):
            reached.append(label)
        else:
            spare.append(place)
        labels.append(label)
    inside = list(matrix.intersection(units, space)) if units and space else []
    for unit in (*inside, *units):
        if matrix.rank([*reached, unit]) > len(reached) and spare:
            labels[spare.pop(0)] ^= unit
            reached.append(unit)
    return labels


def _columns(bits: Bits, fixed: dict[int, int], high: list[int], labels: list[int], free: list[int]) -> tuple[int, ...]:
    """The columns: fixed ones, multiples of the row with the lane's label for free lanes, label 0 for registers."""
    registers, lanes, _ = (bits.of_role(role) for role in range(3))
    columns = [fixed.get(place, 0) for place in range(len(bits.columns))]
    reduced = matrix.eliminate(labels)
    for place in free:
        columns[lanes[place]] = matrix.apply(high, reduced.reduce(1 << place)[1])
    none = [matrix.apply(high, chosen) for chosen in matrix.kernel(labels)]
    for place in registers:
        if place not in fixed:
            columns[place] = none.pop(0)
    return tuple(columns)
