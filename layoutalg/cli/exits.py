"""Exit codes of the command line."""

from __future__ import annotations

PROVED = 0
REFUTED = 1
UNKNOWN = 2
USAGE = 64
