"""Bank turns by the cheapest exact method: ranks, residues or enumeration.

Main statements: let all lanes be active and lane i access v bytes (a power of two, at least a word) at byte b + s i,
where s is 0 or a multiple of v. Two lanes meet in a bank iff they are congruent modulo p = M / gcd(M, s / v),
M = 4 B / v, and then they collide in every word of the access. So a group takes as many turns as it has lanes in its
fullest residue class modulo p, whatever b is; for n consecutive lanes that is ceil(n / p). Elements narrower than a
word behave like words if s is a multiple of 4; with steps below a word the lanes touch every word from the first to
the last, which takes ceil(words / B) turns.

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
    """Bank turns of one instruction.

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
    """Return the turns for lane i at base + stride * i, by residues; None if no closed form is implemented.

    Args:
        model: The instruction.
        stride_bytes: A multiple of ``model.grain_bytes``; if negative, ``base_bytes`` must be high enough.
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
    """Return the same for sub-word elements at steps of at most a word, if every group is consecutive lanes."""
    total = 0
    for group in model.groups:
        if group != tuple(range(group[0], group[0] + len(group))):
            return None
        ends = sorted((base + stride * group[0], base + stride * group[-1]))
        words = ends[1] // WORD_BYTES - ends[0] // WORD_BYTES + 1
        total += -(-words // model.banks)
    return Counted(total, total, "residues")


def counted(model: BankModel, byte_addresses: Sequence[int | None] | npt.NDArray[np.int64]) -> Counted:
    """Return the turns of one instruction by the cheapest exact engine, with that engine's name.

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
