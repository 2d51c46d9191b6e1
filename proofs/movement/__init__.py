"""Movement terms: what they are, what they denote, and the rules that rewrite them, each with its proof."""

from layoutalg.proofs.movement.layouts import Table
from layoutalg.proofs.movement.running import Labels, compared
from layoutalg.proofs.movement.term import OPERATIONS, Kind, Term, term

__all__ = ["OPERATIONS", "Kind", "Labels", "Table", "Term", "compared", "term"]
