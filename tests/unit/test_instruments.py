"""The examples of the instruments say what they return."""

from __future__ import annotations

import doctest
import importlib

import pytest
from instruments.triton_peer import triton_python


@pytest.mark.parametrize(
    "name", ["bank_probe", "fragment_checks", "fragments", "operands", "runner", "simulation", "wgmma_chain"]
)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"instruments.{name}")).failed == 0


def test_another_triton_is_another_peer(tmp_path, monkeypatch):
    """The live tests compare with one version: with none, and with another, they are skipped and say why."""
    for version, says in (("3.9.0", None), ("3.4.0", "triton 3.4.0 is installed"), ("none", "not installed")):
        python = tmp_path / version
        python.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
        python.chmod(0o755)
        monkeypatch.setenv("LAYOUTALG_TRITON_PYTHON", str(python))
        if says is None:
            assert triton_python(named=True) == str(python)
        else:
            with pytest.raises(pytest.skip.Exception, match=says):
                triton_python(named=True)
