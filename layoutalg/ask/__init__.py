"""Questions in the field's words: turns of the banks, the shared layout to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.ask.bank_turns import BankAccess, BankReport, banks
    from layoutalg.ask.choices import Choice, Loser, Suggestion, suggest

__all__ = ["BankAccess", "BankReport", "Choice", "Loser", "Suggestion", "banks", "suggest"]

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.ask.bank_turns": "BankAccess BankReport banks",
        "layoutalg.ask.choices": "Choice Loser Suggestion suggest",
    },
)
