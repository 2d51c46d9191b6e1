"""Certificates for third parties: answers as JSON that ``layoutalg/proofs/checker`` checks on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs.certify import forced as forced
    from layoutalg.proofs.certify.algebra import composition as composition
    from layoutalg.proofs.certify.algebra import equality as equality
    from layoutalg.proofs.certify.algebra import functoriality as functoriality
    from layoutalg.proofs.certify.banks import bank_turns as bank_turns
    from layoutalg.proofs.certify.banks import least_turns as least_turns
    from layoutalg.proofs.certify.banks import sectors_of as sectors_of
    from layoutalg.proofs.certify.certificate import KINDS as KINDS
    from layoutalg.proofs.certify.certificate import Certificate as Certificate
    from layoutalg.proofs.certify.evidence import same_tables as same_tables
    from layoutalg.proofs.certify.indirect import paging as paging
    from layoutalg.proofs.certify.indirect import routing as routing
    from layoutalg.proofs.certify.inverses import inverse as inverse
    from layoutalg.proofs.certify.operands import no_operand as no_operand
    from layoutalg.proofs.certify.operands import operand as operand
    from layoutalg.proofs.certify.plans import handoff as handoff
    from layoutalg.proofs.certify.plans import no_plan as no_plan
    from layoutalg.proofs.certify.plans import plan as plan
    from layoutalg.proofs.certify.systems import none_of as none_of
    from layoutalg.proofs.certify.systems import overlap as overlap

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
