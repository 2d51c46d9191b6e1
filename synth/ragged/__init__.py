"""Synthesis of descriptor families for ragged tensors."""

from __future__ import annotations

from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.synth.ragged.family import synthesize_ragged

__all__ = ["RaggedFamily", "synthesize_ragged"]
