"""What a law of the algebra is: a named sentence and the claims that prove it, each by one solver.

Notation: a claim (``layoutalg.proofs.laws.trial``) states the law on symbols; ``scope`` says for which values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from layoutalg.ground.verdict import Unknown, Verdict
from layoutalg.proofs.laws.solvers import BITWUZLA, CVC5, Z3, Answerer, installed
from layoutalg.proofs.laws.trial import Claim, explored

INTEGERS, BIT_VECTORS = (Z3, CVC5), (Z3, BITWUZLA)
"""The two solvers of each sort."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """One solver's part in a law."""

    answerer: Answerer  # the solver
    scope: str  # the values it speaks of, all of a kind, such as ``"all integers"``, bounds on widths or ranks stated
    claim: Claim = field(repr=False, compare=False)  # the law as a function of a ``Trial``

    @property
    def engine(self) -> str:
        """The name of the solver."""
        return self.answerer.name

    def prove(self) -> Verdict:
        """Decide it, under the deadline of ``layoutalg.ground.clock``."""
        if not installed(self.answerer):
            return Unknown(f"{self.engine} is not installed", (self.engine,))
        return explored(self.claim, self.answerer)


@dataclass(frozen=True, slots=True)
class Law:
    """A named sentence about the library's own functions; where the proof is by induction, it says over what."""

    name: str
    statement: str
    obligations: tuple[Obligation, ...]


def stated(
    laws: list[Law],
    name: str,
    solvers: Answerer | tuple[Answerer, ...],
    scope: str,
    says: str = "",
) -> Callable[[Claim], Claim]:
    """Return a decorator that adds a claim to a law of a list; a new law says what the claim's docstring says."""

    def add(claim: Claim) -> Claim:
        asked = solvers if isinstance(solvers, tuple) else (solvers,)
        given = tuple([Obligation(each, scope, claim) for each in asked])
        if laws and laws[-1].name == name:
            laws[-1] = replace(laws[-1], obligations=(*laws[-1].obligations, *given))
        else:
            laws.append(Law(name, says or " ".join((claim.__doc__ or "").split()), given))
        return claim

    return add
