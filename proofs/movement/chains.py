"""Chains of rewrites, replayed step by step: the certificate that one term may replace another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.movement.layouts import CHECK
from layoutalg.proofs.movement.rules import RULES, Rule, rewritten, termed
from layoutalg.proofs.movement.term import Term

MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Step(Record, code="LA995"):
    """One rewrite of a chain.

    Args:
        rule: The name of the rule.
        path: Operand numbers that lead to the term that is replaced.
        forward: Whether the rule leads from the old term to the new one; otherwise from the new one to the old one.
        after: The term that replaces it.
    """

    rule: str
    path: tuple[int, ...]
    forward: bool
    after: Term

    def __str__(self) -> str:
        where = f" in operand {'.'.join(map(str, self.path))}" if self.path else ""
        return f"{self.rule}{'' if self.forward else ', backward'}{where}: {self.after}"


def rule_named(name: str) -> Rule:
    """Return a rule by its name."""
    known = {each.name: each for each in RULES}
    return known[CHECK.choice(name, "rule", tuple(known))]


def replayed(before: Term, steps: Sequence[Step], after: Term) -> Verdict:
    """Return whether a chain of rewrites leads from one term to another, each step by its rule.

    Mathematically: every step replaces a term with one of the same kind that the rule yields for it, or for which the
    rule yields it. The rules themselves are tried on all their small instances in the tests.

    Example:
        >>> from layoutalg.proofs.movement import term
        >>> x = term("input", name="A", shape=(2, 3), dtype="f32")
        >>> twice = term("transpose", term("transpose", x, order=(1, 0)), order=(1, 0))
        >>> once = term("transpose", x, order=(0, 1))
        >>> bool(replayed(twice, (Step("view.view", (), True, once), Step("view.nothing", (), True, x)), x))
        True
    """
    now = before
    if len(steps) > MOST_STEPS:
        return Unknown(f"the chain has {len(steps)} steps, more than {MOST_STEPS}", ("chain",))
    for number, step in enumerate(steps):
        try:
            old = now.at(step.path)
        except (IndexError, AttributeError):
            return Refuted("chain", {"what": "no such operand", "step": number, "path": step.path})
        first, second = (old, step.after) if step.forward else (step.after, old)
        if not _follows(rule_named(step.rule), first, second) or old.kind != step.after.kind:
            return Refuted("chain", {"what": f"the rule {step.rule} does not do this", "step": number, "at": str(old)})
        now = now.put(step.path, step.after)
    if now != after:
        return Refuted("chain", {"what": "the chain ends at another term", "end": str(now)})
    return Proved("chain", {"claim": "each step follows from its rule", "steps": len(steps)})


def _follows(rule: Rule, first: Term, second: Term) -> bool:
    """Whether a rule rewrites one term to another."""
    for before, after in rewritten(rule, first):
        with suppress(MalformedError):
            if before == first and termed(after) == second:
                return True
    return False
