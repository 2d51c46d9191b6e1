"""What CuTe DSL prints is read as the function it computes, and written again as it prints it.

The texts and offsets of 800 random layouts are stored; where ``LAYOUTALG_CUTE_PYTHON`` names an interpreter that has
nvidia-cutlass-dsl, fresh ones are printed too.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, make_identity_layout

HERE = Path(__file__).parent
STORED = json.loads(gzip.decompress((HERE.parent / "data" / "cute_dsl_texts.json.gz").read_bytes()))
PEER = os.environ.get("LAYOUTALG_CUTE_PYTHON")


def nest(value: Any) -> Any:
    """Lists of JSON as tuples."""
    return tuple(nest(entry) for entry in value) if isinstance(value, list) else value


def numbers(value: object) -> list[int]:
    """The integers of an offset or of a printed coordinate."""
    return [int(digits) for digits in re.findall(r"-?\d+", str(value))]


def compare(entries: list[dict[str, Any]]) -> None:
    """Read each text, compare its offsets, write it again, and write the layout built from its numbers."""
    for entry in entries:
        text = entry["text"].replace(" ", "")
        read = la.parse(entry["text"])
        expected = np.array([numbers(value) for value in entry["values"]]).reshape(len(entry["values"]), -1)
        built: Any
        found = read.table().reshape(len(expected), -1)
        assert np.array_equal(found, expected), entry["text"]
        if entry["kind"] == "identity" and "@" not in text:  # of one integer: printed as the numbers it is
            built = CuteLayout(nest(entry["shape"]))
        elif entry["kind"] == "identity":
            built = make_identity_layout(nest(entry["shape"]))
        else:
            built = CuteLayout(nest(entry["shape"]), nest(entry["stride"]))
        if entry["swizzle"]:
            built = ComposedLayout(Swizzle(*entry["swizzle"]), 0, built)
        assert read == built, entry["text"]
        assert built.to_text("cute_dsl").replace(" ", "") == text


@pytest.mark.parametrize("kind", ["layout", "swizzled", "identity"])
def test_stored_texts(kind: str) -> None:
    entries = [entry for entry in STORED["layouts"] if entry["kind"] == kind]
    assert len(entries) >= 200
    compare(entries)


@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="LAYOUTALG_CUTE_PYTHON names no interpreter with nvidia-cutlass-dsl")
def test_fresh_texts() -> None:
    assert PEER is not None
    command = [PEER, str(HERE / "cute_dsl_printer.py"), "400", "11"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    compare(json.loads(done.stdout)["layouts"])
