"""For tests of this library and of others: random problems, and the judge that simulates plans on real bytes."""

from __future__ import annotations
