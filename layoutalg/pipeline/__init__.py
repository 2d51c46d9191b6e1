"""Pipelines of asynchronous copies, and whether they are safe for every trip count."""

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

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.proofs.pipeline": "Barrier Buffer Builder Op Pipeline Proved Refuted Role Route Throughput "
        "Transfer event_graph throughput verify"
    },
)

__all__ = [
    "Barrier", "Buffer", "Builder", "Op", "Pipeline", "Proved", "Refuted", "Role", "Route", "Throughput",
    "Transfer", "event_graph", "throughput", "verify",
]  # fmt: skip
