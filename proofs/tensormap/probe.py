"""Plans for targets without a measured device: what documents allow, to be confirmed by a run."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.fields import malformed
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem


@dataclass(frozen=True, slots=True)
class TensorMapProbe(Record, Shown, code="LA372", schema="layoutalg/tensormap-probe/1", verdict="probe"):
    """A plan that documents allow on a target, and that a device of it must confirm.

    Args:
        problem: The problem, for the target.
        reason: Why this is no proof.
        plan: The plan, proved for sm_90a. The driver makes the target's bytes from its ``tensor_map``.

    Example:
        >>> import layoutalg as la
        >>> probe = la.tensormap(((1024, 512), None, "bf16"), (64, 64), target="sm_100a")
        >>> probe.verdict, probe.plan.tensor_map.box, probe.problem.arch, probe.plan.problem.arch
        ('probe', (64, 64), 'sm_100a', 'sm_90a')
    """

    problem: TensorMapProblem
    reason: str
    plan: TensorMapPlan

    def _validate(self) -> None:
        if self.plan.problem != self.problem.with_changes(arch=self.plan.problem.arch):
            raise malformed("plan", "must be of the same problem, but for the target", self.plan.problem)

    @property
    def verdict(self) -> str:
        """``"probe"``."""
        return "probe"

    def __bool__(self) -> bool:
        raise ValueError(f"a probe has no truth value: {self.reason}")

    def __str__(self) -> str:
        head, *lines = str(self.plan).split("\n")
        bytes_at = next(at for at, line in enumerate(lines) if line.startswith("  bytes"))
        return "\n".join([f"{'probe':<14}{head[14:]}", f"  reason      {self.reason}", *lines[:bytes_at]])
