"""The read rule of ``wgmma`` against what an H200 read through 400 random descriptors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layoutalg.targets.nvidia import wgmma

DATA = Path(__file__).parents[1] / "data" / "measured" / "wgmma_dev.npz"
NAMES = {0: "NONE", 1: "128B", 2: "64B", 3: "32B"}


@pytest.fixture(scope="module")
def measured():
    with np.load(DATA) as archive:
        return archive["fields"].astype(np.int64), archive["index"].astype(np.int64)


def _descriptor(fields):
    start, leading, stride, base_offset, swizzle, _ = (int(x) for x in fields)
    return wgmma.MatrixDescriptor(start, 16 * leading, 16 * stride, base_offset, NAMES[swizzle])


def _major(fields):
    return wgmma.MAJORS[int(fields[5])]


def test_every_measured_read_is_reproduced(measured):
    fields, index = measured
    assert fields.shape == (400, 6)
    assert index.shape == (400, 64, 16)
    for row, seen in zip(fields, index, strict=True):
        assert np.array_equal(wgmma.operand_offsets(_descriptor(row), major=_major(row)), 2 * seen), row.tolist()


def test_the_data_covers_every_mode_and_base_offset(measured):
    fields, _ = measured
    assert {(int(f[4]), int(f[5])) for f in fields} == {(s, t) for s in range(4) for t in range(2)}
    assert set(fields[:, 3].tolist()) == set(range(8))


def test_the_data_can_tell_a_wrong_rule(measured):
    """Meta-test: adding the base offset instead of subtracting it, or dropping it, disagrees with the device."""
    fields, index = measured
    wrong = {"added": 0, "dropped": 0, "other major": 0, "swapped fields": 0}
    for row, seen in zip(fields, index, strict=True):
        changes = {
            "added": (*row[:3], -row[3] % 8, *row[4:]),
            "dropped": (*row[:3], 0, *row[4:]),
            "other major": (*row[:5], 1 - row[5]),
            "swapped fields": (row[0], row[2], row[1], *row[3:]),
        }
        for name, changed in changes.items():
            read = wgmma.operand_offsets(_descriptor(changed), major=_major(changed))
            wrong[name] += not np.array_equal(read, 2 * seen)
    assert min(wrong.values()) > 20, wrong


def test_unread_fields_are_really_unread_and_the_others_read(measured):
    fields, _ = measured
    for row in fields[:100]:
        d, major = _descriptor(row), _major(row)
        unread = wgmma.unread_fields(64, major, d.swizzle)
        for field in ("leading_bytes", "stride_bytes"):
            values = {"leading_bytes": d.leading_bytes, "stride_bytes": d.stride_bytes}
            values[field] += 16
            moved = wgmma.MatrixDescriptor(
                d.start_address_bytes, base_offset=d.base_offset, swizzle=d.swizzle, **values
            )
            same = np.array_equal(wgmma.operand_offsets(d, major=major), wgmma.operand_offsets(moved, major=major))
            assert same == (field in unread)
