"""Turns of the banks by the cheapest exact way: ranks, residues or enumeration.

Main statements: where all lanes are active and lane i lies at byte b + s i, s a multiple of the access of v bytes (a
power of two, at least a word), or s = 0, two lanes meet in a bank exactly where they are congruent modulo
p = M / gcd(M, s / v), M = 4 B / v; then they meet in all of its words. A group thus takes as many turns as the fullest
residue class modulo p has lanes of the group, whatever b is; of n lanes in a row that is ceil(n / p). Elements
narrower than a word behave as words where s is a multiple of 4; steps below a word touch all words between the first
and the last, in a row, and those take ceil(words / B) turns.

References: the residues are elementary; the ranks are those of ``bank_model``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.recognize import Departure, linear
from layoutalg.targets.bank_model import CHECK, BankModel
from layoutalg.targets.nvidia.banks import WORD_BYTES

ENGINES = ("ranks", "residues", "enumeration")


@dataclass(frozen=True, slots=True)
class Counted:
    """What the banks make of one instruction.

    Args:
        turns: Turns of all groups.
        ideal: Turns if the words of every group were spread evenly over the banks.
        engine: ``"ranks"``, ``"residues"`` or ``"enumeration"``.
    """

    turns: int
    ideal: int
    engine: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA905")


def residues(model: BankModel, stride_bytes: int, base_bytes: int = 0) -> Counted | None:
    """Return the turns where lane i lies at base + stride * i, by residues; None where they have no closed form here.

    Args:
        model: The instruction.
        stride_bytes: Any integer, multiples of ``model.grain_bytes``; negative ones from a base that is high enough.
        base_bytes: Byte of lane 0, a multiple of the same.

    Raises: MalformedError: LA905.

    Example:
        >>> from layoutalg.targets.bank_model import bank_model
        >>> [residues(bank_model("gfx942", "ds_read_b128"), stride).turns for stride in (0, 16, 48, 80, 128)]
        [8, 8, 8, 8, 64]

    Source: see the head of the file.
    """
    stride = CHECK.integer(stride_bytes, "stride_bytes", -(2**56), 2**56)
    base = CHECK.integer(base_bytes, "base_bytes", 0, 2**61)
    if stride % model.grain_bytes or base % model.grain_bytes:
        rule = f"must be a multiple of {model.grain_bytes} bytes for {model.operation}"
        wrong = "stride_bytes" if stride % model.grain_bytes else "base_bytes"
        raise CHECK.malformed(wrong, rule, stride if stride % model.grain_bytes else base)
    if base + min(0, stride * (model.lanes - 1)) < 0:
        raise CHECK.malformed("base_bytes", f"must be at least {-stride * (model.lanes - 1)} for this stride", base)
    words = max(1, model.access_bytes // WORD_BYTES)
    if stride == 0:
        groups = -(-len(model.groups) // (2 if model.joins else 1))
        return Counted(groups, groups * -(-words // model.banks), "residues")
    if model.access_bytes == 12:
        return None
    if 0 < abs(stride) <= WORD_BYTES and model.access_bytes < WORD_BYTES:
        return _dense(model, stride, base)
    if stride % WORD_BYTES:
        return None
    blocks = model.banks // words
    period = blocks // math.gcd(blocks, stride // (WORD_BYTES * words))
    turns = ideal = 0
    for group in model.groups:
        turns += max(Counter(lane % period for lane in group).values())
        ideal += -(-len(group) * words // model.banks)
    return Counted(turns, ideal, "residues")


def _dense(model: BankModel, stride: int, base: int) -> Counted | None:
    """Return the same for steps of at most a word between elements narrower than one, lanes in a row."""
    total = 0
    for group in model.groups:
        if group != tuple(range(group[0], group[0] + len(group))):
            return None
        ends = sorted((base + stride * group[0], base + stride * group[-1]))
        words = ends[1] // WORD_BYTES - ends[0] // WORD_BYTES + 1
        total += -(-words // model.banks)
    return Counted(total, total, "residues")


def counted(model: BankModel, byte_addresses: Sequence[int | None] | npt.NDArray[np.int64]) -> Counted:
    """Return the turns of one instruction by the cheapest exact engine, and which it was.

    Args:
        model: The instruction.
        byte_addresses: One byte address per lane, None for an inactive lane.

    Raises: MalformedError: LA709.

    Example:
        >>> from layoutalg.targets.bank_model import bank_model
        >>> model = bank_model("gfx942", "ds_read_b64")
        >>> [counted(model, [8 * f(lane) for lane in range(64)]).engine for f in (lambda x: 3 * x, lambda x: x ^ x // 8,
        ...  lambda x: x * x)]
        ['residues', 'ranks', 'enumeration']
    """
    offsets = np.asarray(byte_addresses)
    regular = offsets.dtype.kind in "iu" and offsets.shape == (model.lanes,) and int(offsets.min()) >= 0
    if regular and int(offsets.max()) < 2**61 and not (offsets % model.grain_bytes).any():
        offsets = offsets.astype(np.int64)
        steps = np.diff(offsets)
        if (steps == steps[0]).all():
            found = residues(model, int(steps[0]), int(offsets[0]))
            if found is not None:
                return found
        if model.access_bytes != 12:
            columns = linear(offsets)
            if not isinstance(columns, Departure):
                return Counted(*model.ranks(columns[0], columns[1]), "ranks")
    phases = model.phases(byte_addresses)
    return Counted(sum(each.turns for each in phases), sum(each.least for each in phases), "enumeration")
