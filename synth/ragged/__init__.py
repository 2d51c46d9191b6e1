"""Synthesis of descriptor families for ragged tensors."""

from __future__ import annotations

from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.synth.ragged.family import ragged, synthesize_ragged
from layoutalg.synth.ragged.segments import boxes

__all__ = ["RaggedFamily", "boxes", "ragged", "synthesize_ragged"]
