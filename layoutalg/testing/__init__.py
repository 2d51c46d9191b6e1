"""Helpers for your own test suite: strategies, assertions, laws for foreign layouts.

Install the extra ``layoutalg[test]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.testing import laws, problems, report, strategies
    from layoutalg.testing.assertions import (
        assert_admissible,
        assert_bijective,
        assert_conflict_free,
        assert_covers,
        assert_equivalent,
        assert_injective,
    )

__all__ = [
    "assert_admissible",
    "assert_bijective",
    "assert_conflict_free",
    "assert_covers",
    "assert_equivalent",
    "assert_injective",
    "laws",
    "problems",
    "report",
    "strategies",
]

__getattr__, __dir__ = door(
    __name__,
    {f"{__name__}.{name}": name for name in ("laws", "problems", "report", "strategies")}
    | {
        "layoutalg.testing.assertions": "assert_admissible assert_bijective assert_conflict_free assert_covers "
        "assert_equivalent assert_injective",
    },
)
