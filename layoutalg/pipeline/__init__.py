"""Pipelines of asynchronous copies, and whether they are safe for every trip count; schedules of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs.pipeline import (
        Barrier,
        Buffer,
        Builder,
        Op,
        Pipeline,
        Proved,
        Refuted,
        Role,
        Route,
        Throughput,
        Transfer,
        event_graph,
        throughput,
        verify,
    )
    from layoutalg.synth.schedule import (
        Candidate,
        Dependence,
        Schedule,
        Work,
        WorkOp,
        WorkRing,
        WorkRole,
        attention_work,
        gemm_work,
        schedule,
    )

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.proofs.pipeline": "Barrier Buffer Builder Op Pipeline Proved Refuted Role Route Throughput "
        "Transfer event_graph throughput verify",
        "layoutalg.synth.schedule.call": "Schedule schedule",
        "layoutalg.synth.schedule.candidates": "Candidate",
        "layoutalg.synth.schedule.kernels": "attention_work gemm_work",
        "layoutalg.synth.schedule.work": "Dependence Work WorkOp WorkRing WorkRole",
    },
)

__all__ = [
    "Barrier", "Buffer", "Builder", "Candidate", "Dependence", "Op", "Pipeline", "Proved", "Refuted", "Role", "Route",
    "Schedule", "Throughput", "Transfer", "Work", "WorkOp", "WorkRing", "WorkRole", "attention_work", "event_graph",
    "gemm_work", "schedule", "throughput", "verify",
]  # fmt: skip
