"""Base of swizzle and padding plans: accesses, the instructions that serve them, and their bank turns.

Optimality is certified by counting the turns of all competing layouts, ``Rivals``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.banks import least_turns, measured_access
from layoutalg.proofs.rivals import Rivals
from layoutalg.targets.banks import bank_model
from layoutalg.targets.registry import grade_in_words


@dataclass(frozen=True, slots=True)
class Served(Record, code="LA910"):
    """How one access is served on one target.

    Args:
        access: Number of the access.
        target: The target.
        instruction: The instruction's name.
        count: Instructions of all warps.
        turns: Their total turns.
        ideal: Turns with the words of every group spread evenly over the banks.
        evidence: Basis of the bank model: ``"measured"``, ``"documented"`` or ``"assumed"``.
    """

    access: int
    target: str
    instruction: str
    count: int
    turns: int
    ideal: int
    evidence: str

    def __str__(self) -> str:
        free = "free of conflicts" if self.turns == self.ideal else f"{self.ideal} without conflicts"
        taken = "1 turn" if self.turns == 1 else f"{self.turns} turns"
        return f"{self.count} x {self.instruction} of {self.target}: {taken}, {free}{self._basis}"

    @property
    def _basis(self) -> str:
        return "" if self.evidence == "measured" else f" ({grade_in_words(self.evidence, self.target)})"


def counted(
    number: int,
    target: str,
    instruction: str,
    addresses: npt.NDArray[np.int64],
    active: npt.NDArray[np.bool_] | None = None,
) -> Served:
    """Return how instructions at these byte addresses, int64[instruction, lane], serve an access."""
    model = bank_model(target, instruction)
    turns, ideal = model.totals(addresses, active)
    return Served(number, target, instruction, len(addresses), turns, ideal, model.evidence)


Elsewhere: TypeAlias = partial["tuple[Recounted, ...]"]
"""A search with its arguments: a value, so that plans can be pickled and copied."""


class Recounted(Record, Shown):
    """A plan with recountable turns.

    Subclasses have the fields ``served``; ``bound``, the finder's lower bound on the turns of any layout of ``space``;
    and ``elsewhere``, a search for plans of other classes that serve the same accesses in fewer turns.
    """

    __slots__ = ()

    served: tuple[Served, ...]
    bound: int
    elsewhere: Elsewhere | None

    @property
    def turns(self) -> int:
        """Turns of all accesses on all targets."""
        return sum(each.turns for each in self.served)

    @property
    def ideal(self) -> int:
        """Turns without conflicts."""
        return sum(each.ideal for each in self.served)

    @property
    def conflict_free(self) -> bool:
        """Whether no access has a conflict with the instructions of ``served``; others may need fewer turns."""
        return self.turns == self.ideal

    @property
    def space(self) -> str:
        """The layouts that were searched, in words; ``bound`` and ``optimal`` refer to these only."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The form and the layout in one line."""
        raise NotImplementedError

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no layout of ``space`` takes fewer turns; for others see ``better``."""
        return self.turns == self.bound

    @property
    def claim(self) -> str:
        """What is proved about the turns, and over which layouts."""
        return f"the minimum over all {self.space}" if self.optimal else f"all {self.space} take at least {self.bound}"

    @property
    def better(self) -> tuple[Recounted, ...]:
        """Plans of other classes with fewer turns for the same accesses, fewest first; searched when read."""
        found = [] if self.elsewhere is None else [each.check() for each in self.elsewhere()]
        return tuple(sorted((each for each in found if each.turns < self.turns), key=lambda each: each.turns))

    @property
    def better_lines(self) -> list[str]:
        """A line for each of ``better``."""
        return [f"better        {each.turns} turns with {each.title}" for each in self.better]

    def check(self) -> Recounted:
        """Return the plan after recounting its turns from the addresses of every instruction."""
        raise NotImplementedError

    def serve_again(self, each: Served) -> Served:
        """Return an entry of ``served``, recounted from the addresses of its instructions."""
        raise NotImplementedError

    def rivals(self) -> Iterator[Rivals]:
        """Yield the competing layouts for ``least_certificates``."""
        raise NotImplementedError

    def listable(self) -> None:
        """Return if ``rivals`` are few enough to list."""
        raise NotImplementedError

    def least_certificates(self) -> tuple[Certificate, ...]:
        """Return ``least-turns`` certificates that nothing in ``space`` takes fewer turns.

        A conflict-free plan has one: no placement takes fewer turns with the same instructions. Otherwise there is one
        for each set of instructions that some layout of the form needs; together they list the whole form.

        Raises: RepresentabilityError: LA436, for a target that was not measured; LA906, with the reason why there is
            none.
        """
        self.listable()
        return tuple(least_turns(each.accesses, each.turns, each.layouts, each.first) for each in self.rivals())

    @property
    def starts(self) -> int:
        """Number of lane addresses of all accesses."""
        return sum(each.count * bank_model(each.target, each.instruction).lanes for each in self.served)

    @property
    def uncertified(self) -> str:
        """Why ``least_certificates`` fails; empty if it does not."""
        try:
            self.listable()
            for each in self.served:
                measured_access(each.target, each.instruction)
        except RepresentabilityError as error:
            return error.diagnostic.because
        return ""

    def recount(self, wrong: Checker) -> None:
        """Recount every entry.

        Raises: MalformedError: the code of ``wrong``, if an entry or the bound is wrong.
        """
        for each in self.served:
            found = self.serve_again(each)
            if found != each:
                raise wrong.malformed("served", f"must be '{found}'", str(each))
        if self.bound > self.turns:
            raise wrong.malformed("bound", f"must not exceed the turns, {self.turns}", self.bound)


def uncertified(because: str) -> RepresentabilityError:
    """Return the error for an optimum without a certificate."""
    return RepresentabilityError(
        Diagnostic("LA906", "optimality cannot be certified", ("least_certificates",), because)
    )
