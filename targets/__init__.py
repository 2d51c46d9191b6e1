"""Hardware facts: data and predicates with their evidence, no search."""

from __future__ import annotations

if __name__ != "layoutalg.targets":
    raise ImportError("import layoutalg.targets, not targets: this folder is only its source location")
