"""Questions: bank conflicts, the choice of a shared layout, what a layout or plan does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.ask.bank_turns import BankAccess, BankReport, banks
    from layoutalg.ask.choices import Choice, Loser, Suggestion, suggest
    from layoutalg.ask.explanation import Explanation, explain

__all__ = ["BankAccess", "BankReport", "Choice", "Explanation", "Loser", "Suggestion", "banks", "explain", "suggest"]

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.ask.bank_turns": "BankAccess BankReport banks",
        "layoutalg.ask.choices": "Choice Loser Suggestion suggest",
        "layoutalg.ask.explanation": "Explanation explain",
    },
)
