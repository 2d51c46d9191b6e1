"""Certificates for other people: every answer as JSON that ``layoutalg/proofs/checker.py`` alone can check."""

from __future__ import annotations

from layoutalg.proofs.certify.certificate import KINDS, Certificate

__all__ = ["KINDS", "Certificate"]
