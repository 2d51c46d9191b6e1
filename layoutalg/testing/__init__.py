"""Helpers for your own test suite: strategies, assertions, laws for foreign layouts.

Install the extra ``layoutalg[test]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.testing import laws as laws
    from layoutalg.testing import problems as problems
    from layoutalg.testing import report as report
    from layoutalg.testing import strategies as strategies
    from layoutalg.testing.assertions import assert_admissible as assert_admissible
    from layoutalg.testing.assertions import assert_bijective as assert_bijective
    from layoutalg.testing.assertions import assert_conflict_free as assert_conflict_free
    from layoutalg.testing.assertions import assert_covers as assert_covers
    from layoutalg.testing.assertions import assert_equivalent as assert_equivalent
    from layoutalg.testing.assertions import assert_injective as assert_injective


__getattr__, __dir__ = door(
    __name__,
    {f"{__name__}.{name}": name for name in ("laws", "problems", "report", "strategies")}
    | {
        "layoutalg.testing.assertions": "assert_admissible assert_bijective assert_conflict_free assert_covers "
        "assert_equivalent assert_injective",
    },
)
