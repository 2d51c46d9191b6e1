"""The stand-alone checker's two formulas of hardware against what an H200 did: reads of wgmma, turns of banks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from instruments.bank_probe import KINDS
from judges.certificates import told

from layoutalg.targets.nvidia import wgmma

MEASURED = Path(__file__).parents[1] / "data" / "measured"
SWIZZLES = {0: "NONE", 1: "128B", 2: "64B", 3: "32B"}
ACCESS = {"load": "ld.shared.b{}", "store": "st.shared.b{}", "ldmatrix": "ldmatrix.x4", "stmatrix": "stmatrix.x4"}


def claim(fields: np.ndarray, seen: np.ndarray, operand: str) -> dict[str, object]:
    """That the descriptor reads the bytes [m, k] that the device read, for bases that are multiples of 1024."""
    start, leading, stride, base_offset, swizzle, trans = (int(field) for field in fields)
    word = wgmma.MatrixDescriptor(start, 16 * leading, 16 * stride, base_offset, SWIZZLES[swizzle]).encode()
    layout = {"size": seen.size, "stages": [["table", seen.T.ravel().tolist()]]}
    asked = {"operand": operand, "shape": list(seen.shape), "layout": layout, "swizzle": 0, "align": 1024}
    return asked | {"major": wgmma.MAJORS[trans], "rows": len(seen), "words": [word]}


def refuted_nearby(statement: dict[str, object], place: int) -> bool:
    """Whether the claim of the next element of one place, or that another word reads all of this, is refuted."""
    layout = statement["layout"]
    stages = [["table", [byte + 2 * (i == place) for i, byte in enumerate(layout["stages"][0][1])]]]
    changed = {"layout": {**layout, "stages": stages}}, {"words": [statement["words"][0] ^ 1]}
    return all(told("wgmma-operand", statement | change)[0] == 1 for change in changed)


def test_every_measured_read_of_a_is_proved_and_no_other_is() -> None:
    with np.load(MEASURED / "wgmma_dev.npz") as stored:
        fields, index = stored["fields"], stored["index"].astype(np.int64)
    for row, seen in zip(fields, index, strict=True):
        assert told("wgmma-operand", claim(row, 2 * seen, "A")) == (0, "1 descriptors read 64 x 16 elements")
    for place in range(0, 400, 20):
        assert refuted_nearby(claim(fields[place], 2 * index[place], "A"), place)


@pytest.mark.parametrize("rows", [8, 64, 128, 256])
def test_every_measured_read_of_b_is_proved_and_no_other_is(rows: int) -> None:
    with np.load(MEASURED / "wgmma_b_dev.npz") as stored:
        fields, index, done, fault = (stored[f"{rows}/{name}"] for name in ("fields", "index", "done", "fault"))
    assert done.all()
    assert not any(fault)
    for row, seen in zip(fields, index, strict=True):
        statement = claim(row, 2 * seen.T.astype(np.int64), "B")
        assert told("wgmma-operand", statement) == (0, f"1 descriptors read {rows} x 16 elements"), row
    assert refuted_nearby(claim(fields[3], 2 * index[3].T.astype(np.int64), "B"), rows + 7)


def test_every_counted_access_takes_the_turns_that_are_proved() -> None:
    with np.load(MEASURED / "banks_dev.npz") as stored:
        record = {name: stored[name] for name in ("kind", "bits", "wavefronts", "offsets")}
    seen = set()
    for place, (number, bits, offsets) in enumerate(
        zip(*(record[name] for name in ("kind", "bits", "offsets")), strict=True)
    ):
        kind = tuple(KINDS)[number]
        counted = int(record["wavefronts"][place, 0 if kind in ("load", "ldmatrix") else 1])
        address = {"size": 32, "stages": [["table", offsets.tolist()]]}
        statement = {"access": f"sm_90a {ACCESS[kind].format(bits)}", "address": address}
        seen.add((statement["access"], counted))
        assert told("bank-turns", statement | {"turns": counted, "most": counted})[0] == 0
        assert told("bank-turns", statement | {"turns": counted - 1, "most": counted - 1})[0] == 1
    assert len({access for access, _ in seen}) == 12
    assert len(seen) > 60
