"""Where values are (registers, tensor, shared or global memory), and what moves them where an op needs them elsewhere.

A placement is below another if all who can read a value there can read it in the other. Values get the least
placements that agree with their ops: instructions fix those of results; views, and merges of loops, take the join of
their operands'. Where an op needs another placement than its operand has, the shortest sequence of instructions that
moves it is named.

References: PTX ISA 9.1, state spaces (5.1), ``cp.async.bulk.tensor``, ``wgmma``, ``tcgen05``, ``mapa``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.ground.record import Checked
from layoutalg.targets.registry import lookup

CHECK = Checker("LA987", "invalid flow of values")
PLACEMENTS: Final = ("register", "tensor", "shared::cta", "shared::cluster", "global")
_ABOVE: Final[Mapping[str, tuple[str, ...]]] = {
    "register": ("tensor", "shared::cta"), "tensor": ("shared::cluster",), "shared::cta": ("shared::cluster",),
    "shared::cluster": ("global",), "global": (),
}  # fmt: skip
"""The placements next above each."""
MOVES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("register", "shared::cta"): ("stmatrix", "st.shared"),
    ("shared::cta", "register"): ("ldmatrix", "ld.shared"),
    ("register", "shared::cluster"): ("st.async", "st.shared::cluster"),
    ("shared::cluster", "register"): ("ld.shared::cluster",),
    ("shared::cta", "shared::cluster"): ("mapa", "cp.async.bulk.shared::cluster.shared::cta"),
    ("register", "global"): ("st.global",),
    ("global", "register"): ("ld.global",),
    ("global", "shared::cta"): ("cp.async.bulk.tensor", "cp.async"),
    ("global", "shared::cluster"): ("cp.async.bulk.tensor.multicast::cluster",),
    ("shared::cta", "global"): ("cp.async.bulk.tensor",),
    ("register", "tensor"): ("tcgen05.st",),
    ("tensor", "register"): ("tcgen05.ld",),
    ("shared::cta", "tensor"): ("tcgen05.cp",),
}
"""The instructions that move a value in one step, the widest first."""
OPS: Final[Mapping[str, tuple[tuple[tuple[str, ...], ...], str | None]]] = {
    "argument": ((), "global"),
    "constant": ((), "register"),
    "tma_load": ((("global",),), "shared::cta"),
    "tma_multicast": ((("global",),), "shared::cta"),
    "remote_load": ((("shared::cluster",),), "register"),
    "tma_store": ((("shared::cta",),), "global"),
    "load": ((("global", "shared::cta", "shared::cluster"),), "register"),
    "elementwise": ((("register",), ("register",)), "register"),
    "mma": ((("register",), ("register",), ("register",)), "register"),
    "wgmma": ((("register", "shared::cta"), ("shared::cta",), ("register",)), "register"),
    "tcgen05.mma": ((("tensor", "shared::cta"), ("shared::cta",), ("tensor",)), "tensor"),
    "view": ((PLACEMENTS,), None),
    "merge": ((PLACEMENTS, PLACEMENTS), None),
}
"""Each op: the placements that each operand may have, the preferred first, and that of its result; None: the join. A
multicast copy leaves a value in the own shared memory of every block."""


def below(one: str, other: str) -> bool:
    """Return whether all who can read a value in one placement can read it in the other.

    Example:
        >>> below("register", "global"), below("tensor", "shared::cta")
        (True, False)
    """
    return one == other or any(below(each, other) for each in _ABOVE[CHECK.choice(one, "one", PLACEMENTS)])


def join(one: str, other: str) -> str:
    """Return the least placement above both.

    Mathematically: the least upper bound in the order of ``below``.

    Example:
        >>> join("tensor", "shared::cta"), join("register", "shared::cta")
        ('shared::cluster', 'shared::cta')
    """
    CHECK.choice(other, "other", PLACEMENTS)
    return next(each for each in PLACEMENTS if below(one, each) and below(other, each))


def available(target: str) -> tuple[str, ...]:
    """Return the placements of a target.

    Example:
        >>> available("sm_90a"), len(available("sm_100a"))
        (('register', 'shared::cta', 'shared::cluster', 'global'), 5)
    """
    found = lookup(target)
    clusters, tensor = found.has_tensor_maps, "tcgen05" in found.features
    return tuple(
        [each for each in PLACEMENTS if (each != "tensor" or tensor) and (each != "shared::cluster" or clusters)]
    )


@dataclass(frozen=True, slots=True)
class Step(Checked, code="LA987"):
    """A value and the op that makes it.

    Args:
        name: The value.
        op: A name in ``OPS``.
        operands: Names of its operands; of a ``merge`` also of values that come later, as in a loop.
    """

    name: str
    op: str
    operands: tuple[str, ...] = ()

    def _validate(self) -> None:
        CHECK.choice(self.op, "op", OPS)
        most = len(OPS[self.op][0])
        if not (self.op == "elementwise" and len(self.operands) == 1) and len(self.operands) != most:
            raise CHECK.malformed(f"operands of {self.name}", f"must be {most} for {self.op}", self.operands)


@dataclass(frozen=True, slots=True)
class Move(Checked, code="LA987"):
    """A value that an op needs elsewhere.

    Args:
        value: The value.
        user: The step that needs it.
        path: The placements it goes through, from where it is.
        instructions: What moves it, one for each step of the path.
    """

    value: str
    user: str
    path: tuple[str, ...]
    instructions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.value} for {self.user}: {' -> '.join(self.path)} by {', '.join(self.instructions)}"


def path(source: str, destination: str, target: str) -> tuple[str, ...] | None:
    """Return the placements of a shortest sequence of moves; None if there is none on the target.

    Example:
        >>> path("tensor", "global", "sm_100a")
        ('tensor', 'register', 'global')
    """
    known = available(target)
    seen: dict[str, tuple[str, ...]] = {source: (source,)} if source in known else {}
    waiting = list(seen)
    while waiting and destination not in seen:
        at = waiting.pop(0)
        for each in known:
            if (at, each) in MOVES and each not in seen:
                seen[each] = (*seen[at], each)
                waiting.append(each)
    return seen.get(destination)


def placed(flow: Sequence[Step], target: str = "sm_90a") -> tuple[dict[str, str], tuple[Move, ...]]:
    """Return the least placement of every value, and the moves that operands need.

    Mathematically: the least fixed point of the equations of ``OPS`` over the lattice; a value whose op does not fix
    its placement starts at the bottom.

    Args:
        flow: The steps.
        target: Architecture.

    Raises:
        MalformedError: LA987: a name is used twice, or not defined, or an operand comes later and is not of a merge.
        InfeasibleError: LA988: the target has no such placement, or nothing moves a value there.

    Example:
        >>> where, moves = placed([
        ...     Step("x", "argument"), Step("w", "argument"), Step("b", "tma_load", ("w",)), Step("zero", "constant"),
        ...     Step("a", "load", ("x",)), Step("scaled", "elementwise", ("a",)),
        ...     Step("d", "wgmma", ("scaled", "b", "zero")), Step("out", "tma_store", ("d",))])
        >>> where["d"], [str(move) for move in moves]
        ('register', ['d for out: register -> shared::cta by stmatrix'])
    """
    where: dict[str, str] = {}
    names = [step.name for step in flow]
    for place, step in enumerate(flow):
        if step.name in names[:place]:
            raise CHECK.malformed("name", "must not be used twice", step.name)
        for operand in step.operands:
            if operand not in (names if step.op == "merge" else names[:place]):
                raise CHECK.malformed(f"operands of {step.name}", "must be earlier values", operand)
        where[step.name] = OPS[step.op][1] or PLACEMENTS[0]
    for _ in itertools.count():
        before = dict(where)
        for step in flow:
            if OPS[step.op][1] is None:
                for operand in step.operands:
                    where[step.name] = join(where[step.name], where[operand])
        if where == before:
            break
    moves = [
        _move(step, number, operand, where, target) for step in flow for number, operand in enumerate(step.operands)
    ]
    for name, each in where.items():
        if each not in available(target):
            raise _infeasible(f"{name} is in {each} memory, which {target} does not have", name)
    return where, tuple([move for move in moves if move])


def _move(step: Step, number: int, operand: str, where: Mapping[str, str], target: str) -> Move | None:
    """The move that an operand needs; None if it is where it may be."""
    wanted = (where[step.name],) if step.op == "merge" else OPS[step.op][0][number]
    if where[operand] in wanted:
        return None
    found = [each for each in (path(where[operand], to, target) for to in wanted) if each]
    if not found:
        because = (
            f"nothing on {target} moves it from {where[operand]} to {' or '.join(wanted)}, where {step.op} needs it"
        )
        raise _infeasible(because, f"{operand} for {step.name}")
    best = min(found, key=len)
    return Move(operand, step.name, best, tuple([MOVES[pair][0] for pair in itertools.pairwise(best)]))


def _infeasible(because: str, where: str) -> InfeasibleError:
    return InfeasibleError(Diagnostic("LA988", "a value has no place", (where,), because))
