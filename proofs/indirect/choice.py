"""A ranking of ways to move data: what the planner's formula says of each."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record

CHECK = Checker("LA941", "this is no choice of ways")
MOST_MICROSECONDS = 1e15


@dataclass(frozen=True, slots=True)
class Candidate(Record, code="LA941"):
    """One way, and what it is taken to cost.

    Args:
        way: Its name.
        microseconds: The predicted time.
        bytes: Bytes read and written.
        granule: Bytes that are contiguous.
        launches: Kernels.
    """

    way: str
    microseconds: float
    bytes: int
    granule: int
    launches: int

    def _validate(self) -> None:
        if not 0 <= self.microseconds < MOST_MICROSECONDS:
            raise CHECK.malformed("microseconds", "must be a time", self.microseconds)

    def __str__(self) -> str:
        return f"{self.way}: {self.microseconds:.1f} us, {self.bytes} bytes by {self.granule}"


@dataclass(frozen=True, slots=True)
class Choice(Record, Shown, code="LA941", schema="layoutalg/movement-choice/1", json="way evidence ranked"):
    """All ways, fastest first.

    Args:
        ranked: The candidates.
        evidence: Whether the costs behind the ranking are ``"measured"`` or ``"assumed"``.
    """

    ranked: tuple[Candidate, ...]
    evidence: str

    def _validate(self) -> None:
        times = [each.microseconds for each in self.ranked]
        if not times or times != sorted(times):
            raise CHECK.malformed("ranked", "must have a candidate, the fastest first", times)

    @property
    def way(self) -> str:
        """The fastest."""
        return self.ranked[0].way

    def __str__(self) -> str:
        return "\n".join([f"{self.way} (costs {self.evidence})", *[f"  {each}" for each in self.ranked]])
