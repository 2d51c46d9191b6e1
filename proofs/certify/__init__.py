"""Certificates for third parties: answers as JSON that ``layoutalg/proofs/checker`` checks on its own."""

from __future__ import annotations

from layoutalg.proofs.certify.algebra import composition, equality, functoriality
from layoutalg.proofs.certify.banks import bank_turns, least_turns
from layoutalg.proofs.certify.certificate import KINDS, Certificate
from layoutalg.proofs.certify.inverses import inverse
from layoutalg.proofs.certify.operands import no_operand, operand
from layoutalg.proofs.certify.plans import handoff, no_plan, plan

__all__ = [
    "KINDS",
    "Certificate",
    "bank_turns",
    "composition",
    "equality",
    "functoriality",
    "handoff",
    "inverse",
    "least_turns",
    "no_operand",
    "no_plan",
    "operand",
    "plan",
]
