"""Pipelines of asynchronous copies: statements, and whether they are safe for every trip count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs.pipeline.building import Builder
    from layoutalg.proofs.pipeline.cycles import Throughput, event_graph, throughput
    from layoutalg.proofs.pipeline.decision import Proved, Refuted, verify
    from layoutalg.proofs.pipeline.document import Barrier, Buffer, Pipeline, Role
    from layoutalg.proofs.pipeline.ops import Op
    from layoutalg.proofs.pipeline.placement import Move, Step, below, join, path, placed
    from layoutalg.proofs.pipeline.transfers import Route, Transfer

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.proofs.pipeline.building": "Builder",
        "layoutalg.proofs.pipeline.document": "Barrier Buffer Pipeline Role",
        "layoutalg.proofs.pipeline.ops": "Op",
        "layoutalg.proofs.pipeline.decision": "Proved Refuted verify",
        "layoutalg.proofs.pipeline.cycles": "Throughput event_graph throughput",
        "layoutalg.proofs.pipeline.placement": "Move Step below join path placed",
        "layoutalg.proofs.pipeline.transfers": "Route Transfer",
    },
)

__all__ = [
    "Barrier", "Buffer", "Builder", "Move", "Op", "Pipeline", "Proved", "Refuted", "Role", "Route", "Step",
    "Throughput", "Transfer", "below", "event_graph", "join", "path", "placed", "throughput", "verify",
]  # fmt: skip
