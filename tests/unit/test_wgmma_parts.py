"""Tiles whose instructions' parts lie anywhere: each part has its descriptor, so the tile is carried."""

from __future__ import annotations

import json

import numpy as np

import layoutalg as la


def tile(order: list[int], swizzled: int) -> np.ndarray:
    """Four parts of 64 x 16, rows of 32 bytes, in an order; with the XOR of two chunks or one that no mode has."""
    part = np.arange(64)[:, None] * 16 + np.arange(16)
    byte = 2 * np.block([[part + 1024 * order[2 * row + k] for k in range(2)] for row in range(2)])
    return (byte ^ (byte >> swizzled & 1) << 4) // 2


def test_parts_in_any_order_are_carried():
    assert la.admissible(tile([0, 1, 2, 3], 7), "wgmma.A")
    for order in ([0, 2, 3, 1], [1, 0, 2, 3], [3, 1, 0, 2]):
        answer = la.admissible(tile(order, 7), "wgmma.A")
        assert answer, answer
        assert answer.certificate.check()
        assert np.array_equal(answer.descriptor.read(), 2 * tile(order, 7))
        assert json.loads(json.dumps(answer.to_json()))["descriptor"]["schema"] == "layoutalg/wgmma-parts/1"
        assert isinstance(la.admissible(tile(order, 7), "wgmma.A", align_bytes=128), la.Unknown)
        assert isinstance(la.admissible(tile(order, 9), "wgmma.A"), la.Refused)


def test_parts_of_single_bits_are_carried_where_bytes_stay_whole():
    part = np.arange(64)[:, None] * 128 + np.arange(256) % 128 + np.arange(256) // 128 * 8192
    bits = np.concatenate([part + 2 * 8192, part], axis=1)
    answer = la.admissible(bits, "wgmma.A", dtype="b1")
    assert answer, answer
    assert np.array_equal(answer.descriptor.read(), bits // 8)
    turned = bits.copy()
    turned[:, [0, 1]] = turned[:, [1, 0]]
    assert la.admissible(turned, "wgmma.A", dtype="b1").rules == ("WGMMA_BITS",)
