"""Questions: bank conflicts, which shared layout to use, what a layout or plan does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.ask.bank_turns import BankAccess, BankReport, banks
    from layoutalg.ask.choices import Choice, Loser, Suggestion, suggest
    from layoutalg.ask.explanation import Explanation, explain
    from layoutalg.ask.global_sectors import TransactionReport, WarpAccess, transactions

__all__ = [
    "BankAccess", "BankReport", "Choice", "Explanation", "Loser", "Suggestion", "TransactionReport", "WarpAccess",
    "banks", "explain", "suggest", "transactions",
]  # fmt: skip

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.ask.bank_turns": "BankAccess BankReport banks",
        "layoutalg.ask.choices": "Choice Loser Suggestion suggest",
        "layoutalg.ask.explanation": "Explanation explain",
        "layoutalg.ask.global_sectors": "TransactionReport WarpAccess transactions",
    },
)
