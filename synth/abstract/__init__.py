"""Abstract interpretation of tiles: parameters as intervals and residues, propagated through operations."""

from __future__ import annotations

from layoutalg.synth.abstract.rules import never_copied, never_operand
from layoutalg.synth.abstract.search import surviving
from layoutalg.synth.abstract.tile import AbstractTile, Digit

__all__ = ["AbstractTile", "Digit", "never_copied", "never_operand", "surviving"]
