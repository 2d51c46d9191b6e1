"""The examples of the instruments say what they return."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["bank_probe", "fragment_checks", "fragments", "operands", "runner", "simulation"])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"instruments.{name}")).failed == 0
