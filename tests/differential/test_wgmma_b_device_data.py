"""Reads of operand B measured on a device, against the rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layoutalg.ground.errors import TargetRuleError
from layoutalg.targets.nvidia import wgmma

DATA = Path(__file__).parents[1] / "data" / "measured" / "wgmma_b_dev.npz"
SWIZZLES = ("NONE", "128B", "64B", "32B")


@pytest.mark.parametrize("columns", [8, 64, 128, 256])
def test_every_measured_read_of_b_is_reproduced(columns):
    with np.load(DATA) as data:
        fields, index, done = (data[f"{columns}/{name}"] for name in ("fields", "index", "done"))
    assert (done == 1).all()
    answered = 0
    for (start, leading, stride, base_offset, swizzle, trans), wanted in zip(fields.tolist(), index, strict=True):
        descriptor = wgmma.MatrixDescriptor(start, 16 * leading, 16 * stride, base_offset, SWIZZLES[swizzle])
        try:
            offsets = wgmma.operand_offsets(descriptor, rows=columns, k=16, major=("K", "MN")[trans])
        except TargetRuleError:
            continue  # a field of 0 or an address past 2^18: the rule does not speak there
        answered += 1
        assert np.array_equal(offsets // 2, wanted.T.astype(np.int64)), (start, leading, stride, base_offset, swizzle)
    assert answered >= 100
