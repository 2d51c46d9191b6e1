"""Movements: where the elements of cropped, padded and reshaped axes come from."""

from __future__ import annotations

from functools import partial
from typing import Any

from layoutalg.proofs.laws.law import INTEGERS, Law, stated
from layoutalg.proofs.laws.term import Condition, every, implies
from layoutalg.proofs.laws.trial import Trial
from layoutalg.proofs.movement.rules import cropped_padding

LAWS: list[Law] = []
law = partial(stated, LAWS)
_AXIS = "one axis of any extent, any padding, any crop that it contains, each coordinate"


def _below(name: str, trial: Trial, least: int = 0) -> Any:
    value = trial.integer(name)
    trial.assume(value >= least)
    return value


def _inside(at: Any, extent: Any) -> Condition:
    return every(at >= 0, at < extent)


def _same(trial: Trial, one: Condition, other: Condition, what: str) -> None:
    trial.claim(implies(one, other), what)
    trial.claim(implies(other, one), what)


@law("movement.crop_sum", INTEGERS, _AXIS)
def _crop_of_crop(trial: Trial) -> None:
    """A crop of a crop is the crop from the sum of both starts, and is inside the axis."""
    extent, outer, inner = _below("n", trial, 1), _below("s", trial), _below("t", trial)
    middle, kept = _below("m", trial, 1), _below("k", trial, 1)
    trial.assume(inner + middle <= extent, outer + kept <= middle)
    at = trial.digit("i", kept)
    trial.claim((at + outer) + inner == at + (outer + inner), "the same element")
    trial.claim((outer + inner) + kept <= extent, "the crop is inside the axis")


@law("movement.pad_sum", INTEGERS, _AXIS)
def _pad_of_pad(trial: Trial) -> None:
    """An element of an axis that is padded twice is one of the axis exactly if it is after padding by the sums."""
    extent, outer, inner = _below("n", trial, 1), _below("l", trial), _below("k", trial)
    after, behind = _below("h", trial), _below("g", trial)
    at = trial.digit("i", outer + inner + extent + behind + after)
    middle = at - outer
    twice = every(_inside(middle, inner + extent + behind), _inside(middle - inner, extent))
    _same(trial, twice, _inside(at - (outer + inner), extent), "both are elements, or both are padding")


@law("movement.crop_pad", INTEGERS, _AXIS)
def _crop_of_pad(trial: Trial) -> None:
    """A crop of a padded axis that keeps an element is a padded crop, with the numbers of ``cropped_padding``."""
    extent, low, high = _below("n", trial, 1), _below("l", trial), _below("h", trial)
    start, kept = _below("s", trial), _below("k", trial, 1)
    trial.assume(start + kept <= low + extent + high)
    before, after, first, count = cropped_padding(start, kept, low, extent)
    trial.assume(count > 0)
    trial.claim(every(before >= 0, after >= 0, first >= 0, first + count <= extent), "the numbers are possible")
    trial.claim(before + count + after == kept, "the extent is kept")
    at = trial.digit("i", kept)
    one, other = at + start - low, at - before
    _same(trial, _inside(one, extent), _inside(other, count), "both are elements, or both are padding")
    trial.claim(implies(_inside(other, count), first + other == one), "the same element")


@law("movement.pad_rows", INTEGERS, "an array of any number of rows, padded by rows; rows of any two lengths")
def _pad_of_rows(trial: Trial) -> None:
    """Padding by whole rows is padding by whole rows of another length, if that divides the padding and the array."""
    rows, row, part = _below("n", trial, 1), _below("r", trial, 1), _below("p", trial, 1)
    low, before, count = _below("l", trial), _below("f", trial), _below("g", trial, 1)
    trial.assume(row * low == part * before, row * rows == part * count)
    at = _below("i", trial)
    one, other = at - row * low, at - part * before
    _same(trial, _inside(one, row * rows), _inside(other, part * count), "both are elements, or both are padding")
    trial.claim(one == other, "the same element")
