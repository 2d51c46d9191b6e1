"""For tests of other projects: Hypothesis strategies of every kind of value, and random TensorMap problems."""

from __future__ import annotations
