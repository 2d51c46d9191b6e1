"""What plans of swizzles and of paddings have in common: accesses served by instructions, and their turns.

Main statements: that nothing takes fewer turns is certified by counting what it is compared with, ``Rivals``.
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
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.picture import Shown
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.banks import least_turns, measured_access
from layoutalg.proofs.rivals import Rivals
from layoutalg.targets.banks import bank_model
from layoutalg.targets.registry import grade_in_words


@dataclass(frozen=True, slots=True)
class Served:
    """How one access is served on one target.

    Args:
        access: Number of the access.
        target: The target.
        instruction: The instruction's name.
        count: Instructions of all warps.
        turns: Turns of all of them.
        ideal: Turns if the words of every group were spread evenly over the banks.
        evidence: What the turns rest on: ``"measured"``, ``"documented"`` or ``"assumed"``, as ``bank_model`` says.

    Raises: MalformedError: LA910.
    """

    access: int
    target: str
    instruction: str
    count: int
    turns: int
    ideal: int
    evidence: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA910")

    def __str__(self) -> str:
        free = "free of conflicts" if self.turns == self.ideal else f"{self.ideal} without conflicts"
        taken = "1 turn" if self.turns == 1 else f"{self.turns} turns"
        return f"{self.count} x {self.instruction} of {self.target}: {taken}, {free}{self._basis}"

    @property
    def _basis(self) -> str:
        return "" if self.evidence == "measured" else f" ({grade_in_words(self.evidence, self.target)})"

    def to_json(self) -> dict[str, object]:
        """Return the entry as JSON-ready data."""
        return {
            "access": self.access, "target": self.target, "instruction": self.instruction, "count": self.count,
            "turns": self.turns, "ideal": self.ideal, "evidence": self.evidence,
        }  # fmt: skip


def counted(
    number: int,
    target: str,
    instruction: str,
    addresses: npt.NDArray[np.int64],
    active: npt.NDArray[np.bool_] | None = None,
) -> Served:
    """Return how an access is served by instructions at these byte addresses, int64[instruction, lane].

    Raises: MalformedError: LA709. RepresentabilityError: LA712.
    """
    model = bank_model(target, instruction)
    turns, ideal = model.totals(addresses, active)
    return Served(number, target, instruction, len(addresses), turns, ideal, model.evidence)


Elsewhere: TypeAlias = partial["tuple[Recounted, ...]"]
"""A search with its question: a value that is pickled and copied like the plan."""


class Recounted(Shown):
    """A plan that says how its accesses are served, and can count that again.

    A subclass has the fields ``served``; ``bound``, the turns that no layout of ``space`` goes below, as the finder
    proved; and ``elsewhere``, which looks for plans of other classes that take fewer turns of the same accesses.
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
        """The same, if no bank were busier than it must be."""
        return sum(each.ideal for each in self.served)

    @property
    def conflict_free(self) -> bool:
        """Whether no access has a conflict, by the instructions of ``served``: others may need fewer turns."""
        return self.turns == self.ideal

    @property
    def space(self) -> str:
        """The layouts among which this one was searched, in words; ``bound`` and ``optimal`` speak of these alone."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The form and the layout in one line."""
        raise NotImplementedError

    @property
    def optimal(self) -> bool:
        """Whether no layout of ``space`` takes fewer turns, as proved; ``better`` names what others do."""
        return self.turns == self.bound

    @property
    def claim(self) -> str:
        """What is proved of the turns, and among which layouts."""
        return f"the least of all {self.space}" if self.optimal else f"all {self.space} take at least {self.bound}"

    @property
    def better(self) -> tuple[Recounted, ...]:
        """Plans of other classes that take fewer turns of the same accesses, the fewest first; searched when read."""
        found = [] if self.elsewhere is None else [each.check() for each in self.elsewhere()]
        return tuple(sorted((each for each in found if each.turns < self.turns), key=lambda each: each.turns))

    @property
    def better_lines(self) -> list[str]:
        """A line for each of ``better``."""
        return [f"better        {each.turns} turns with {each.title}" for each in self.better]

    def check(self) -> Recounted:
        """Return the plan after counting its turns from the addresses of every instruction."""
        raise NotImplementedError

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        raise NotImplementedError

    def serve_again(self, each: Served) -> Served:
        """Return an entry of ``served`` as the addresses of its instructions say."""
        raise NotImplementedError

    def rivals(self) -> Iterator[Rivals]:
        """Yield what the plan is compared with, for ``least_certificates``."""
        raise NotImplementedError

    def listable(self) -> None:
        """Return if ``rivals`` are few enough to be listed.

        Raises: RepresentabilityError: LA906.
        """
        raise NotImplementedError

    def least_certificates(self) -> tuple[Certificate, ...]:
        """Return certificates of kind ``least-turns`` that nothing of ``space`` takes fewer turns.

        One, where no bank is busier than it must be: then no places of what the lanes move allow fewer by the same
        instructions. Else one for each set of instructions that move the accesses behind some layout of the form;
        together they list all of them.

        Raises: RepresentabilityError: LA436, for a target that was not measured; LA906: none can be given, and why.
        """
        self.listable()
        return tuple(least_turns(each.accesses, each.turns, each.layouts, each.first) for each in self.rivals())

    @property
    def starts(self) -> int:
        """Starts of lanes of all accesses."""
        return sum(each.count * bank_model(each.target, each.instruction).lanes for each in self.served)

    @property
    def uncertified(self) -> str:
        """Why ``least_certificates`` has none; empty where it has some."""
        try:
            self.listable()
            for each in self.served:
                measured_access(each.target, each.instruction)
        except RepresentabilityError as error:
            return error.diagnostic.because
        return ""

    def recount(self, wrong: Checker) -> None:
        """Count every entry again.

        Raises: MalformedError: the code of ``wrong``, where an entry or the bound is not what the plan says.
        """
        for each in self.served:
            found = self.serve_again(each)
            if found != each:
                raise wrong.malformed("served", f"must say '{found}'", str(each))
        if self.bound > self.turns:
            raise wrong.malformed("bound", f"must not exceed the turns, {self.turns}", self.bound)


def uncertified(because: str) -> RepresentabilityError:
    """Return the error for an optimum that no certificate shows."""
    return RepresentabilityError(
        Diagnostic("LA906", "this optimum has no certificate", ("least_certificates",), because)
    )
