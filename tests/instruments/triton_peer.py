"""An interpreter that has the Triton that the differential tests were written for."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

VERSION = "3.9.0"
"""Symbols, refusals and texts are those of this version; another one is another peer."""
_ASK = "import importlib.metadata as m\ntry: print(m.version('triton'))\nexcept m.PackageNotFoundError: print('none')"


def triton_python(named: bool = False) -> str:
    """Return the interpreter; skip the test where it has no Triton, or another version.

    Args:
        named: Whether ``LAYOUTALG_TRITON_PYTHON`` may name another interpreter than this one.
    """
    python = os.environ.get("LAYOUTALG_TRITON_PYTHON") if named else None
    python = python or sys.executable
    found = _version(python)
    if found == "none":
        pytest.skip("triton is not installed; LAYOUTALG_TRITON_PYTHON may name an interpreter that has it")
    if found != VERSION:
        pytest.skip(f"triton {found} is installed; these tests compare with {VERSION}")
    return python


@cache
def _version(python: str) -> str:
    done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()
