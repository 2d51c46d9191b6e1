"""Pipelines of asynchronous copies, and whether they are safe for every trip count; schedules of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs.pipeline import (
        Barrier,
        Buffer,
        Builder,
        Move,
        Op,
        Pipeline,
        Proved,
        Refuted,
        Role,
        Route,
        Step,
        Throughput,
        Transfer,
        below,
        event_graph,
        join,
        path,
        placed,
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
        "layoutalg.proofs.pipeline": "Barrier Buffer Builder Move Op Pipeline Proved Refuted Role Route Step "
        "Throughput Transfer below event_graph join path placed throughput verify",
        "layoutalg.synth.schedule.call": "Schedule schedule",
        "layoutalg.synth.schedule.candidates": "Candidate",
        "layoutalg.synth.schedule.kernels": "attention_work gemm_work",
        "layoutalg.synth.schedule.work": "Dependence Work WorkOp WorkRing WorkRole",
    },
)

__all__ = [
    "Barrier", "Buffer", "Builder", "Candidate", "Dependence", "Move", "Op", "Pipeline", "Proved", "Refuted", "Role",
    "Route", "Schedule", "Step", "Throughput", "Transfer", "Work", "WorkOp", "WorkRing", "WorkRole", "attention_work",
    "below", "event_graph", "gemm_work", "join", "path", "placed", "schedule", "throughput", "verify",
]  # fmt: skip
