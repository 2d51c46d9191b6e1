"""What is wrong with a tensor map: 40,000 recorded verdicts, single changed bits, and the driver's own arguments."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from layoutalg.ground.errors import DeviceMismatchError, LayoutError, MalformedError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, batch, diagnose

DATA = Path(__file__).parents[1] / "data" / "measured"
TM = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096)


def test_recorded_verdicts_and_repairs_that_hold():
    with np.load(DATA / "tensormap_dev.npz") as archive:
        rows, status = archive["params"], archive["status"]
    repaired = asked = 0
    for row, said in zip(rows[::97].tolist(), status[::97].tolist(), strict=True):
        try:
            tm = batch.from_row(row)
        except LayoutError:
            continue
        found = diagnose(tm, status=said)  # the driver and the rules agree, or this raises
        assert found.accepted == (said == 0)
        asked += said != 0
        for repair in found.repairs:
            assert found.repaired is not None
            assert not tensormap.violations(found.repaired)
            assert diagnose(dict(repair.document)).accepted
            repaired += 1
    assert repaired > asked // 2


def test_every_single_bit_is_named_or_makes_another_legal_map():
    raw = tensormap.encode(TM)
    for bit in range(1024):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        found = diagnose(bytes(changed))
        try:
            wanted = tensormap.decode(bytes(changed))
        except LayoutError:
            assert not found.accepted, bit
            word, low = bit // 32, bit % 32
            field = next(f for f in tensormap.FIELDS if f.word == word and f.low <= low < f.low + f.width)
            if field.name in ("reserved", "version", "allocation_class", "swizzle_atom", "swizzle_96B") and word < 16:
                assert field.name in {trouble.field for trouble in found.troubles}
                assert found.repaired == TM
            for repair in found.repairs:
                assert tensormap.decode(bytes.fromhex(repair.document["hex"])) == found.repaired
        else:
            assert found.accepted, bit
            assert found.tensor_map == wanted


def test_kinds_of_bits():
    raw = bytearray(tensormap.encode(TM))
    raw[8] |= 1
    assert [trouble.rule for trouble in diagnose(bytes(raw)).troubles] == ["IM2COL"]
    assert diagnose(bytes(raw)).repairs == ()
    assert diagnose(tensormap.encode(TM)[:64]).accepted
    assert diagnose("0x" + tensormap.encode(TM).hex()).tensor_map == TM
    rng = random.Random(0)
    for _ in range(200):
        diagnose(rng.randbytes(128))


def test_the_driver_s_names_and_numbers():
    given = {"tensorDataType": 9, "tensorRank": 2, "globalAddress": 8, "globalDim": [512, 1024],
             "globalStrides": [1024],
             "boxDim": [64, 300], "elementStrides": [1, 1], "interleave": 0, "swizzle": 3, "l2Promotion": 0,
             "oobFill": 0}  # fmt: skip
    found = diagnose(given)
    assert [trouble.rule for trouble in found.troubles] == ["BASE_ALIGN", "BOX_RANGE"]
    assert (found.repaired.base_address, found.repaired.box) == (0, (64, 256))
    assert all(trouble.since for trouble in found.troubles)
    assert json.loads(json.dumps(found.to_json()))["accepted"] is False
    assert "BOX_RANGE" in str(found)


def test_documented_only_is_told_apart():
    found = diagnose(TensorMap("u8", (64, 64), (32,), (64, 8)))
    assert found.accepted
    assert [(trouble.rule, trouble.enforced) for trouble in found.troubles] == [("STRIDE_NEST", False)]


def test_a_driver_that_decides_otherwise():
    with pytest.raises(DeviceMismatchError) as caught:
        diagnose(TM, status=1)
    assert "accept" in str(caught.value)


@pytest.mark.parametrize("wrong", [b"", "xyz", 3, None, {"colour": 1}, {"dtype": 99, "dims": (1,)}, [1, 2]])
def test_what_is_no_map(wrong):
    with pytest.raises(MalformedError):
        diagnose(wrong)
