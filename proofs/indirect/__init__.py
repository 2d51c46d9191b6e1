"""Routed and paged data: index lists as values with their laws, plans, lifetimes of memory, certificates."""

from __future__ import annotations

from layoutalg.proofs.indirect.choice import Candidate, Choice
from layoutalg.proofs.indirect.lifetimes import Lifetimes, Use
from layoutalg.proofs.indirect.pages import Paged, PagedBatch, PageTable
from layoutalg.proofs.indirect.routing import Routing
from layoutalg.proofs.indirect.values import Labels, Permutation, Runs

__all__ = ["Candidate", "Choice", "Labels", "Lifetimes", "PageTable", "Paged", "PagedBatch", "Permutation", "Routing",
           "Runs", "Use"]  # fmt: skip
