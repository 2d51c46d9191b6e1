"""Factor a layout into a descriptor's layout and a permutation of registers and lanes.

``layout = carried o residual``. Place x needs the element at offset ``layout(x)``. The descriptor stores tile
coordinate t at offset ``carried(t)``; place t loads it first, and the shuffles then give place x the word of place
``residual(x)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.exchange import Cost, ExchangePlan
from layoutalg.proofs.shuffle import ShufflePlan
from layoutalg.proofs.tile_map import SHARED_LAYOUTS, flat_offsets

Way = Literal["exchanges", "shuffles", "shared"]
CHECK = Checker("LA882", "invalid factorisation")


@dataclass(frozen=True, slots=True)
class Factorisation(
    Record,
    Shown,
    code="LA882",
    schema="layoutalg/factorisation/1",
    verdict="factored",
    json="consumer=plan.consumer target=plan.target dtype=plan.dtype layout carried residual rounds least unique plan "
    "places shuffles certificate exchange costs cheapest",
):
    """A layout split into the part a descriptor carries and the part that threads permute.

    Args:
        layout: The factored layout.
        carried: The layout that the consumer's descriptor denotes: tile coordinates to element offsets.
        residual: Places (register, lane, warp), or tile coordinates, to tile coordinates, within each warp.
        plan: The admission of ``carried``.
        places: The flat layout coordinate of every (warp, lane, register), register fastest.
        shuffles: The residual as rounds of shuffles.
        least: Whether no factorisation of the layout has fewer rounds.
        unique: What all factorisations have in common.
        certificate: Proof that ``layout`` is the composition.
        exchange: The residual as bit exchanges between words and lanes; None if it is not affine over F2.
    """

    layout: Any = field(hash=False)
    carried: Any = field(hash=False)
    residual: Any = field(hash=False)
    plan: Admitted
    places: tuple[int, ...]
    shuffles: ShufflePlan
    least: bool
    unique: str
    certificate: Certificate
    exchange: ExchangePlan | None = None

    def _validate(self) -> None:
        for name in ("layout", "carried", "residual"):
            if not isinstance(getattr(self, name), SHARED_LAYOUTS):
                raise CHECK.malformed(name, "must be a layout", getattr(self, name))
        steps = self.shuffles
        if sorted(self.places) != list(range(steps.warps * steps.lanes * steps.registers)):
            raise CHECK.malformed("places", "must be a permutation of the places of the shuffles", len(self.places))

    def __bool__(self) -> bool:
        return True

    def check(self) -> Factorisation:
        """Return the factorisation after tracing every element through the shuffles and the exchanges.

        Raises: MalformedError: LA882, with the first place that gets the wrong offset.
        """
        places = np.array(self.places, dtype=np.int64)
        held, wanted = flat_offsets(self.carried)[places], flat_offsets(self.layout)[places]
        for name, moves in (("shuffles", self.shuffles), ("exchange", self.exchange)):
            found = wanted if moves is None else held[moves.source().reshape(-1)]
            if (found != wanted).any():
                place = int(np.argmax(found != wanted))
                rule = f"must move the element at offset {wanted[place]} to place {place}"
                raise CHECK.malformed(name, rule, int(found[place]))
        return self

    @property
    def rounds(self) -> int:
        """Shuffle instructions per thread, one 32-bit word each."""
        return len(self.shuffles.rounds)

    @property
    def costs(self) -> Mapping[Way, Cost]:
        """Cost of the residual per thread, for each way that a kernel can implement it."""
        shared = Cost(turns=2 * self.shuffles.registers if self.rounds else 0)
        found: dict[Way, Cost] = {}
        if self.exchange is not None:
            found["exchanges"] = self.exchange.cost
            shared = self.exchange.shared_cost
        found["shuffles"], found["shared"] = self.shuffles.cost, shared
        return MappingProxyType(found)

    @property
    def cheapest(self) -> Way:
        """The way with the lowest cost."""
        costs = self.costs
        return min(costs, key=lambda way: costs[way].cycles)

    def __str__(self) -> str:
        count = self.rounds
        told = "no shuffle" if not count else f"{count} shuffle{'s' if count > 1 else ''} per thread"
        how = ", the minimum" if self.least and count else ""
        carrier = f"{self.plan.consumer} on {self.plan.target}, {self.plan.dtype}"
        return "\n".join(
            (
                f"factored      {carrier}: {told}{how}",
                f"  carried     {self.carried}",
                f"  residual    {self.residual}",
                f"  unique      {self.unique}",
                *(f"  {way:<11} {cost}{', the cheapest' if way == self.cheapest else ''}"
                  for way, cost in (self.costs.items() if count else ())),
            )
        )  # fmt: skip
