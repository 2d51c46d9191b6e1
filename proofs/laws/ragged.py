"""Ragged tensors: the fewest copies of a group, boxes that cover a rest, rows behind a group out of bounds."""

from __future__ import annotations

from functools import partial

from layoutalg.proofs import ragged_clip
from layoutalg.proofs.laws.law import INTEGERS, Law, stated
from layoutalg.proofs.laws.solvers import Z3
from layoutalg.proofs.laws.term import every, implies, some
from layoutalg.proofs.laws.trial import Trial

LAWS: list[Law] = []
law = partial(stated, LAWS)


@law("ragged.least", INTEGERS, "all sizes, all tile heights; a cover of c boxes by induction over c")
def _least(trial: Trial) -> None:
    """No cover of L rows by boxes of at most T rows has fewer than ceil(L / T) boxes: c of them reach c T rows."""
    tile, rest, whole = trial.extent("T"), trial.integer("r"), trial.integer("q")
    trial.assume(rest > 0, rest <= tile, whole >= 0)
    size, least = tile * whole + rest, whole + 1  # ceil(size / tile)
    trial.claim(every(tile * (least - 1) < size, size <= tile * least), "least is the ceiling")
    boxes, covered, height = trial.integer("c"), trial.integer("covered"), trial.digit("h", tile + 1)
    trial.assume(boxes >= 0, covered <= tile * boxes)
    trial.claim(covered + height <= tile * boxes + tile, "one box more covers at most T rows more")
    trial.claim(implies(boxes < least, tile * boxes <= tile * (least - 1)), "fewer boxes reach less")
    trial.claim(implies(covered >= size, boxes >= least), "a cover has at least so many")


@law("ragged.shift_back", INTEGERS, "all sizes of at least a tile, all tile heights")
def _shift_back(trial: Trial) -> None:
    """For L >= T, tiles at 0, T, ..., and one that ends at L cover every row, inside, with ceil(L / T) boxes."""
    tile, rest, whole, row = trial.extent("T"), trial.integer("r"), trial.extent("q"), trial.integer("row")
    trial.assume(rest >= 0, rest < tile, row >= 0, row < tile * whole + rest)
    size = tile * whole + rest
    trial.claim(tile <= tile * whole, "there is a whole tile")
    trial.claim(size - tile >= 0, "the last tile begins inside")
    trial.claim(some(row < tile * whole, every(size - tile <= row, row < size)), "each row is in some tile")


@law("ragged.overlap", INTEGERS, "all heights and rests; two boxes")
def _overlap(trial: Trial) -> None:
    """A rest r with h <= r <= 2h is covered, inside, by boxes of h rows at 0 and at r - h."""
    height, rest = trial.extent("h"), trial.integer("r")
    trial.assume(height <= rest, rest <= 2 * height)
    row = trial.digit("row", rest)
    trial.claim(rest - height >= 0, "the second box begins inside")
    trial.claim(some(row < height, every(rest - height <= row, row < rest)), "each row is in a box")


@law("ragged.spans", INTEGERS, "all rows and blocks of vectors, all places; offsets that never fall")
def _spans(trial: Trial) -> None:
    """Vectors dealt by blocks of S in turns are each taken once, by one group, and end in the place of their row."""
    block = trial.extent("S")
    turn, mine, other, its = trial.integer("k"), trial.digit("a", block), trial.integer("l"), trial.digit("b", block)
    trial.claim(implies(turn < other, block * turn + block <= block * other), "the later turn is behind")
    trial.claim(implies(other < turn, block * other + block <= block * turn), "the earlier turn is before")
    trial.claim(implies(block * turn + mine == block * other + its, every(turn == other, mine == its)), "taken once")
    begin, end, next_begin, row = (trial.integer(name) for name in ("begin", "end", "next", "row"))
    trial.assume(begin <= row, row < end, end <= next_begin)
    trial.claim(row < next_begin, "no later group has the row")
    vectors, place = trial.extent("R"), trial.integer("place")
    inside = trial.digit("c", vectors)
    at = vectors * row + inside
    trial.claim(at + vectors * (place - begin) == vectors * (place + row - begin) + inside, "the place of the vector")


def _clipped(trial: Trial, form: str) -> None:
    pitch, offset, size = trial.integer("pitch"), trial.integer("offset"), trial.digit("size", ragged_clip.TALL + 1)
    row, base = trial.integer("row"), trial.integer("base")
    trial.assume(offset >= 0, row >= 0)
    ragged, *more = ragged_clip.clipped_coordinates(form, offset, size, row)
    at = base + ragged_clip.moved_base(form, pitch) + pitch * ragged
    at += sum([c * step for c, step in zip(more, ragged_clip.further_pitches(form, pitch), strict=True)])
    turns = 1 if form == "read_write" else 0
    trial.claim(at == base + (offset + row) * pitch + turns * 2**64, "the address, in 64 bits")
    inside = every(ragged >= 0, ragged < ragged_clip.TALL)
    trial.claim(
        some(every(inside, row < size), every(ragged >= ragged_clip.TALL, row >= size)), "inside iff row < size"
    )


@law("ragged.clip", Z3, "all bases, pitches, groups of up to 2^30 rows, all rows from 0 on; as integers, so in 64 bits")
def _read_write(trial: Trial) -> None:
    """A clipped map names the address of row offset + row plus a multiple of 2^64, and is in bounds iff row < size."""
    _clipped(trial, "read_write")


@law("ragged.clip", Z3, "the same with the base moved down")
def _write_only(trial: Trial) -> None:
    _clipped(trial, "write_only")
