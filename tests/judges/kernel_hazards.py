"""Tensor memory of a Triton kernel touched at the wrong time, in runs with numbers: no indices, only what is under way.

Roles go on in an order that favours some of them, and what is asynchronous ends as late as it can. The reading of the
text is that of ``kernel_run``.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from judges.kernel_run import Run

Place = tuple[str, int]
Access = tuple[str, str, Place]
"""Role, op, place."""
Late = tuple[Place, int, list[Access]]
"""What will arrive: barrier, bytes or 0, the accesses that have ended then."""
MOST_STEPS = 20_000


class Block:
    """A thread block that runs the events of all roles."""

    def __init__(self, run: Run, chance: random.Random) -> None:
        self.run, self.chance = run, chance
        self.at = dict.fromkeys(run.roles, 0)
        self.phase: dict[Place, int] = defaultdict(int)
        self.pending: dict[Place, int] = defaultdict(int)
        self.bytes: dict[Place, int] = defaultdict(int)
        self.counts: dict[Place, int] = {}
        self.begun = False
        self.open: list[Access] = []
        """Asynchronous accesses that nothing has covered."""
        self.late: list[Late] = []

    def hazard(self) -> str:
        """Return the first access of tensor memory at the wrong time, or nothing."""
        order = [*self.at, "copies", "arrivals"]
        self.chance.shuffle(order)
        greed = self.chance.choice((0.6, 0.95, 1.0))
        for _ in range(MOST_STEPS):
            ready = [actor for actor in order if self.can(actor)]
            if not ready:
                break
            actor = ready[0] if self.chance.random() < greed else self.chance.choice(ready)
            if actor in self.at:
                found = self.step(actor)
                if found:
                    return found
            else:
                self.arrive(self.chance.choice([one for one in self.late if bool(one[1]) == (actor == "copies")]))
        return ""

    def can(self, role: str) -> bool:
        """Whether a role can go on, or something arrive."""
        if role not in self.at:
            return any(bool(one[1]) == (role == "copies") for one in self.late)
        events = self.run.roles[role]
        if self.at[role] == len(events) or (role != "default" and not self.begun):
            return False
        event = events[self.at[role]]
        if event[0] == "end":
            return all(self.at[other] == len(self.run.roles[other]) for other in self.at if other != role)
        return event[0] != "wait" or self.phase[event[1:3]] & 1 != event[3]

    def step(self, role: str) -> str:
        """Let a role do what comes next; return what is wrong with that."""
        op, *rest = self.run.roles[role][self.at[role]]
        self.at[role] += 1
        place = tuple(rest[:2])
        if op == "begin":
            self.begun = True
        elif op == "init":
            self.counts[place] = self.pending[place] = rest[2]
            self.phase[place] = self.bytes[place] = 0
        elif op == "arrive":
            self.complete(place, rest[2], 0)
        elif op == "arrive_tx":
            self.complete(place, 1, rest[2])
        elif op == "tma_load":
            self.late.append((tuple(rest[2:4]), self.run.bytes[place[0]], []))
        elif op == "mma_arrive":
            self.late.append((place, 0, [access for access in self.open if access[0] == role]))
        elif place and place[0] in self.run.tensors:
            writes = op in ("write", "mma_write")
            for other, under_way, where in self.open:
                in_order = op == under_way == "mma_write" and other == role
                if where == place and not in_order and (writes or under_way == "mma_write"):
                    return f"{role}: {op} of {place} while {under_way} of {other} is under way"
            if op in ("mma", "mma_write"):
                self.open.append((role, op, place))
        return ""

    def arrive(self, one: Late) -> None:
        self.late.remove(one)
        bar, size, ended = one
        self.open = [access for access in self.open if not any(access is other for other in ended)]
        self.complete(bar, int(not size), -size)

    def complete(self, bar: Place, arrivals: int, size: int) -> None:
        self.pending[bar] -= arrivals
        self.bytes[bar] += size
        if self.pending[bar] == self.bytes[bar] == 0:
            self.phase[bar] += 1
            self.pending[bar] = self.counts.get(bar, 1)


def hazards(text: str, numbers: dict[str, int], runs: int, seed: int = 0) -> set[str]:
    """Return what goes wrong with tensor memory in some runs."""
    run: Any = Run(text, numbers)
    chance = random.Random(seed)
    return {Block(run, chance).hazard() for _ in range(runs)} - {""}
