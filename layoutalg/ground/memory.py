"""Refuse answers that would need too much memory, before allocating them."""

from __future__ import annotations

from layoutalg.ground import limits
from layoutalg.ground.errors import BudgetError, Diagnostic


def reserve(what: str, count: int, bytes_each: int, limit: int = limits.TABLE_BYTES) -> None:
    """Raise if ``count`` entries of ``bytes_each`` exceed the limit; call this before allocating.

    Args:
        what: What would be allocated, for the message.
        count: Number of entries (points).
        bytes_each: Bytes per entry in all arrays alive at the same time.
        limit: Limit in bytes.
    """
    if count * bytes_each > limit:
        because = f"{count} entries of {bytes_each} bytes exceed the limit of {limit} bytes"
        witness: dict[str, object] = {"bytes": count * bytes_each, "limit_bytes": limit}
        raise BudgetError(Diagnostic("LA002", "the answer would need too much memory", (what,), because, witness))


def reserve_items(what: str, values: object, limit: int = limits.TABLE_BYTES) -> None:
    """Raise if a sequence is too long to become an array (a range itself takes only a few bytes).

    Args:
        what: What would be allocated, for the message.
        values: Any object; objects without len() are accepted.
        limit: Limit in bytes.
    """
    try:
        count = len(values)  # type: ignore[arg-type]
    except TypeError:
        return
    except OverflowError:  # too long for len()
        count = 2**63
    reserve(what, count, 8, limit)
