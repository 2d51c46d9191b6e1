"""Where solvers take part in synthesis: one layout for several consumers, least paddings, rules in conflict."""

from __future__ import annotations

from layoutalg.synth.solving.joint_plan import JointPlan, joint

__all__ = ["JointPlan", "joint"]
