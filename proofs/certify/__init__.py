"""Certificates for other people: every answer as JSON that ``layoutalg/proofs/checker.py`` alone can check."""

from __future__ import annotations

from layoutalg.proofs.certify.algebra import composition, equality
from layoutalg.proofs.certify.certificate import KINDS, Certificate
from layoutalg.proofs.certify.inverses import inverse

__all__ = ["KINDS", "Certificate", "composition", "equality", "inverse"]
