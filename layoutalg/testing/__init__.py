"""For the test suites of others: strategies, and assertions that fail with a witness.

``layoutalg[test]`` installs what this needs. Main definitions: ``strategies`` (Hypothesis), ``assert_equivalent`` and
its siblings, ``problems`` (random TensorMap problems).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.testing import problems, report, strategies
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
    "problems",
    "report",
    "strategies",
]

__getattr__, __dir__ = door(
    __name__,
    {f"{__name__}.{name}": name for name in ("problems", "report", "strategies")}
    | {
        "layoutalg.testing.assertions": "assert_admissible assert_bijective assert_conflict_free assert_covers "
        "assert_equivalent assert_injective",
    },
)
