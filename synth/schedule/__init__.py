"""Modulo schedules: the shortest time between two iterations of a loop, and the pipeline that runs so."""

from __future__ import annotations

from layoutalg.synth.schedule.call import Schedule, schedule
from layoutalg.synth.schedule.candidates import Candidate
from layoutalg.synth.schedule.kernels import attention_work, gemm_work
from layoutalg.synth.schedule.work import Dependence, Work, WorkOp, WorkRing, WorkRole

__all__ = [
    "Candidate", "Dependence", "Schedule", "Work", "WorkOp", "WorkRing", "WorkRole", "attention_work", "gemm_work",
    "schedule",
]  # fmt: skip
