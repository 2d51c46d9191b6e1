"""Kernels from proved pipelines: the text of roles, barriers and copies, and its synchronisation read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.codegen.pipeline.emission import Emitted, emit
    from layoutalg.codegen.pipeline.program import Loop, Program, Worker
    from layoutalg.codegen.pipeline.reread import Launch, mismatch

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.codegen.pipeline.emission": "Emitted emit",
        "layoutalg.codegen.pipeline.program": "Loop Program Worker",
        "layoutalg.codegen.pipeline.reread": "Launch mismatch",
    },
)

__all__ = ["Emitted", "Launch", "Loop", "Program", "Worker", "emit", "mismatch"]
