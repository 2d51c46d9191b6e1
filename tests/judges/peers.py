"""Other libraries as the law suite sees them: tensor-layouts and pycute.

Implementation notes: the peers are looked for when they are asked for; each is pinned where it is installed.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import layoutalg as la
from layoutalg import convert
from layoutalg import cute as ours
from layoutalg.testing.laws import Library

STRIDES = st.integers(-3, 12)


def cute(**changes: Any) -> Library:
    """This library's CuTe algebra, exact or refused."""
    return Library(
        **{
            "name": "layoutalg",
            "build": lambda spec: ours.CuteLayout(*spec),
            "size": lambda a: a.size,
            "value": lambda a, i: a(i),
            "refusals": (la.LayoutError,),
            "equal": lambda a, b: a == b,
            "cosize": ours.cosize,
            "coalesce": ours.coalesce,
            "compose": ours.composition,
            "complement": ours.complement,
            "right_inverse": ours.right_inverse,
            "left_inverse": ours.left_inverse,
            "inverse": lambda a: a.inverse(),
            "logical_divide": ours.logical_divide,
            "logical_product": ours.logical_product,
            "repeat": ours.logical_product,
            "upcast": ours.upcast,
            "downcast": ours.downcast,
            "swizzle": lambda fields, x: ours.Swizzle(*fields)(x),
            "f2_matrix": _matrix,
            "strides": STRIDES,
            **changes,
        }
    )


def _matrix(layout: Any) -> list[list[int]]:
    found = convert.to_linear(layout)
    return [[column >> row & 1 for column in found.columns] for row in range(found.out_bits)]


def tensor_layouts() -> Library:
    """tensor-layouts 0.3.2."""
    import tensor_layouts as tl
    from tensor_layouts.analysis import to_F2_matrix

    return Library(
        name="tensor-layouts 0.3.2",
        build=lambda spec: tl.Layout(*spec),
        size=tl.size,
        value=lambda a, i: a(i),
        refusals=(ValueError, NotImplementedError, TypeError, AssertionError),
        equal=lambda a, b: a == b,
        cosize=tl.cosize,
        coalesce=tl.coalesce,
        compose=tl.compose,
        complement=tl.complement,
        right_inverse=tl.right_inverse,
        left_inverse=tl.left_inverse,
        logical_divide=tl.logical_divide,
        logical_product=tl.logical_product,
        repeat=tl.logical_product,
        upcast=tl.upcast,
        downcast=tl.downcast,
        swizzle=lambda fields, x: tl.Swizzle(*fields)(x),
        f2_matrix=to_F2_matrix,
        strides=STRIDES,
    )


def pycute(folder: Path) -> Library:
    """pycute as ``nvidia-cutlass==4.2.0.0`` carries it, from the folder that holds it."""
    sys.path.insert(0, str(folder))
    try:
        pc: Any = importlib.import_module("pycute")
    finally:
        sys.path.remove(str(folder))
    return Library(
        name="pycute of nvidia-cutlass 4.2.0.0",
        build=lambda spec: pc.Layout(*spec),
        size=lambda a: a.size(),
        value=lambda a, i: a(i),
        refusals=(ValueError, NotImplementedError, TypeError, AssertionError),
        equal=lambda a, b: a == b,
        cosize=lambda a: a.cosize(),
        coalesce=pc.coalesce,
        compose=pc.composition,
        complement=pc.complement,
        right_inverse=pc.right_inverse,
        left_inverse=pc.left_inverse,
        logical_divide=pc.logical_divide,
        logical_product=pc.logical_product,
        repeat=pc.logical_product,
        swizzle=lambda fields, x: pc.Swizzle(*fields)(x),
        strides=STRIDES,
    )


STORED = Path(__file__).parents[1] / "data" / "peer_laws.json"
"""Per peer and law the least counterexample that was found; ``benchmarks/peer_laws.py`` writes it."""


def stored(peer: str) -> dict[str, dict[str, Any]]:
    """The stored counterexamples of a peer: law -> ``operands``, ``text``, ``because``."""
    found = json.loads(STORED.read_text(encoding="utf-8"))["peers"][peer]
    return {law: row | {"operands": _tuples(row["operands"])} for law, row in found.items()}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
