"""Certificates for third parties: answers as JSON that ``layoutalg/proofs/checker`` checks on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs.certify import forced
    from layoutalg.proofs.certify.algebra import composition, equality, functoriality
    from layoutalg.proofs.certify.banks import bank_turns, least_turns, sectors_of
    from layoutalg.proofs.certify.certificate import KINDS, Certificate
    from layoutalg.proofs.certify.evidence import same_tables
    from layoutalg.proofs.certify.indirect import paging, routing
    from layoutalg.proofs.certify.inverses import inverse
    from layoutalg.proofs.certify.operands import no_operand, operand
    from layoutalg.proofs.certify.plans import handoff, no_plan, plan
    from layoutalg.proofs.certify.systems import none_of, overlap

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.proofs.certify.algebra": "composition equality functoriality",
        "layoutalg.proofs.certify.banks": "bank_turns least_turns sectors_of",
        "layoutalg.proofs.certify.certificate": "KINDS Certificate",
        "layoutalg.proofs.certify.evidence": "same_tables",
        "layoutalg.proofs.certify.forced": "forced",
        "layoutalg.proofs.certify.indirect": "paging routing",
        "layoutalg.proofs.certify.inverses": "inverse",
        "layoutalg.proofs.certify.operands": "no_operand operand",
        "layoutalg.proofs.certify.plans": "handoff no_plan plan",
        "layoutalg.proofs.certify.systems": "none_of overlap",
    },
)

__all__ = [
    "KINDS",
    "Certificate",
    "bank_turns",
    "composition",
    "equality",
    "forced",
    "functoriality",
    "handoff",
    "inverse",
    "least_turns",
    "no_operand",
    "no_plan",
    "none_of",
    "operand",
    "overlap",
    "paging",
    "plan",
    "routing",
    "same_tables",
    "sectors_of",
]
