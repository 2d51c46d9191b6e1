"""Operands of tile products, made by the whole main job: problem, copy, view, descriptors, proof."""

from __future__ import annotations

from layoutalg.codegen.product import Operand
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.handoff import operand_view, prove_handoff
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_modes, synthesize_wgmma

PRODUCTS: tuple[tuple[str, str, str, str, int, int, int], ...] = (
    ("K", "128B", "K", "128B", 64, 64, 64),
    ("K", "128B", "MN", "128B", 128, 128, 64),
    ("MN", "128B", "MN", "64B", 64, 64, 32),
    ("MN", "64B", "K", "32B", 64, 24, 16),
    ("K", "64B", "K", "32B", 64, 8, 32),
    ("K", "NONE", "K", "128B", 64, 40, 64),
    ("MN", "32B", "MN", "NONE", 64, 16, 32),
    ("K", "128B", "K", "128B", 128, 256, 128),
)
"""Cases ``(major of A, swizzle of A, major of B, swizzle of B, M, N, K)``."""


def proved_operand(operand: str, rows: int, k: int, major: str, swizzle: str, dtype: str = "bf16") -> Operand:
    """Return a [rows, k] operand tile of a 500 x 320 tensor, copied and read through proved descriptors.

    Raises: ValueError: the handoff is not proved.
    """
    mn_modes, k_modes = canonical_modes((rows, k), major, swizzle)
    document = {
        "schema": "layoutalg/tensormap-problem/1",
        "arch": "sm_90a",
        "direction": "load",
        "global": {"shape": [500, 320], "stride": [320, 1], "dtype": dtype, "base_align_bytes": 256},
        "tile": [rows, k] if major == "K" else [k, rows],
        "smem": {"modes": [mn_modes, k_modes] if major == "K" else [k_modes, mn_modes], "swizzle": swizzle},
    }
    copy = synthesize_tensormap(document)
    view = operand_view(copy.problem, operand, major)
    consumer = synthesize_wgmma(view.problem)
    if not isinstance(prove_handoff(copy, view, consumer), Proved):
        raise ValueError("the handoff is not proved")
    return Operand(copy, view, consumer)
