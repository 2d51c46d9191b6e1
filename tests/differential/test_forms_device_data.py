"""Recorded sparse products, accesses, copies and reductions of a device against the models; no GPU needed.

The records are those of ``benchmarks/device.py forms``; their ``facts`` name the chip.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from instruments.fragments import decode, unpack

import layoutalg as la
from layoutalg.synth.admission.tma import REDUCTIONS as BOXES
from layoutalg.targets.layouts.nvidia_instructions import (
    CODES,
    ELEMENT_BITS,
    MMA_SP,
    expanded,
    mma_sp_fragment,
    mma_sp_metadata,
    mma_sp_selectors,
    mma_sp_type,
)
from layoutalg.targets.nvidia.accesses import FORMS
from layoutalg.targets.nvidia.bulk import REDUCTIONS as RUNS

MEASURED = Path(__file__).parents[1] / "data/measured"
with np.load(MEASURED / "sparse_dev.npz") as stored:
    SPARSE = dict(stored)
FORMS_RUN = json.loads(gzip.decompress((MEASURED / "forms_dev.json.gz").read_bytes()))


def matrix(name: str, operand: str, held: np.ndarray) -> np.ndarray:
    dtype = mma_sp_type(name, operand)
    return decode(unpack(mma_sp_fragment(name, operand), held, ELEMENT_BITS[dtype]), dtype)


def product(name: str, at: int, selector: int) -> tuple[np.ndarray, np.ndarray]:
    """D as it was found, and A B + C read through fragments and metadata."""
    held = {part: SPARSE[f"{name}/{part}"][at] for part in "abced"}
    places = mma_sp_metadata(name, selector)
    heard = places[..., 0] >= 0
    nibbles = held["e"].astype(np.int64)[:, None] >> 4 * np.arange(8) & 15
    codes = np.zeros((16, MMA_SP[name].groups), dtype=np.int64)
    codes[places[..., 0][heard], places[..., 1][heard]] = nibbles[heard]
    full = expanded(name, matrix(name, "A", held["a"]), codes)
    return matrix(name, "D", held["d"]), full @ matrix(name, "B", held["b"]) + matrix(name, "C", held["c"])


@pytest.mark.parametrize("name", sorted(MMA_SP))
def test_every_sparse_product_is_exact_through_fragments_and_metadata(name: str) -> None:
    which = SPARSE[f"{name}/which"].tolist()
    many = mma_sp_selectors(name)
    assert which == [*range(many), *range(4, 4 + many)]
    for at, form in enumerate(which):
        found, wanted = product(name, at, form % 4)
        assert np.array_equal(found, wanted)
        assert len(np.unique(found)) > 10


@pytest.mark.parametrize("name", sorted(MMA_SP))
def test_the_lanes_and_nibbles_that_were_heard_are_those_of_the_selector(name: str) -> None:
    for form, heard in zip(SPARSE[f"{name}/which"].tolist(), SPARSE[f"{name}/heard"], strict=True):
        assert np.array_equal(heard, mma_sp_metadata(name, form % 4))


@pytest.mark.parametrize("name", sorted(MMA_SP))
def test_codes_put_stored_parts_where_they_were_found(name: str) -> None:
    bits = ELEMENT_BITS[MMA_SP[name].operand]
    period = {32: 1, 4: 4}.get(bits, 2)
    stored_ = np.tile(1.0 + np.arange(MMA_SP[name].k // 2) % period, (16, 1))
    for codes in SPARSE[f"{name}/codes"]:
        for code in CODES[bits]:
            full = expanded(name, stored_, np.full((16, MMA_SP[name].groups), code))
            assert np.array_equal(codes[code], full[0, : MMA_SP[name].group])
        if bits == 32:
            assert sorted(code for code in range(16) if codes[code].any()) == [4, 5, 6, 7, 12, 13, 14, 15]
        else:  # any order and equal places too, in both variants: each half of a code says where one part is added
            parts = stored_[0, :period].reshape(2, -1)
            for code in range(16):
                wanted = np.zeros((4, len(parts[0])))
                wanted[code & 3] += parts[0]
                wanted[code >> 2] += parts[1]
                assert np.array_equal(codes[code], wanted.reshape(-1))


def rows(*sections: str) -> list[dict[str, object]]:
    return [row for section in sections for row in FORMS_RUN[section]]


def test_every_admitted_plan_moved_every_byte_as_asked() -> None:
    ran = [row for row in rows("moves", "copies", "bulk", "multicast", "reductions") if row["kind"] == "admitted"]
    for row in ran:
        assert "fault" not in row, row
        assert row["wrong"] == 0, row
        assert row["compared"] > 0, row
    names = {str(row["instruction"]) for row in ran}
    assert {name for name, form in FORMS.items() if not form.matrix_rows} <= names
    seen = {row["name"] for row in ran}
    for engine, table in (("bulk", RUNS), ("tma", BOXES)):
        missing = {f"{engine}.reduce.{op} {kind}" for op, kinds in table.items() for kind in kinds} - seen
        assert not missing
    assert {row["ctas"] for row in rows("multicast")} == {2, 4}
    assert any(row.get("filled") for row in rows("copies"))
    assert sum(row.get("compared", 0) for row in ran) > 5_000_000


def test_an_address_off_its_multiple_is_a_fault_except_of_the_global_side_of_a_copy() -> None:
    seen = {True: 0, False: 0}
    for row in rows("moves", "copies", "bulk"):
        if row["kind"] != "refused" or "address" not in row["what"]:
            continue
        silent = row["name"].startswith("copy misplaced") and "global" in row["what"]
        assert row.get("fault") == (None if silent else "716"), row
        seen[silent] += 1
        if silent:  # the address is rounded down, and as many bytes at the end are zeros
            width, off = int(row["instruction"].rpartition(".")[2]), int(row["name"].split()[-1])
            wanted = [at if at % width < width - off else 0 for at in range(96)]
            assert row["answer"] == wanted
    assert seen[True] >= 13
    assert seen[False] >= 70


def test_a_size_off_its_multiple_is_rounded_down_without_a_word() -> None:
    for row in rows("bulk"):
        if row["kind"] == "refused" and "size" in row["what"]:
            size = int(row["what"].split()[1])
            assert row["answer"][: size // 16 * 16] == [at + 1 for at in range(size // 16 * 16)]
            assert set(row["answer"][size // 16 * 16 :]) == {0xEE}
    for row in rows("copies"):
        if row["kind"] == "refused" and "size" in row["what"]:  # one byte more than the copy has: modulo its size
            width = int(row["instruction"].rpartition(".")[2])
            assert row["answer"] == [at + 1 if at % width < 1 else 0 for at in range(96)]


def test_reductions_that_are_refused_were_illegal_instructions_or_of_types_without_a_meaning_here() -> None:
    refused = [row for row in rows("reductions") if row["kind"] == "refused"]
    for row in refused:
        assert row.get("fault") in ("715", None), row
        answered = row["operation"] == "add" and row["dtype"] in ("f32_ftz", "tf32", "tf32_ftz")
        assert answered == ("fault" not in row)
        if answered:
            assert set(row["answer"]) == {8.0}
    assert len(refused) >= 72
    assert la.admissible("(8,32):(32,1)", "tma.reduce.xor", dtype="s64").rules == ("REDUCE_DTYPE",)


def test_sums_keep_denormals_and_minima_leave_nan_out() -> None:
    special = {row["name"]: row for row in rows("reductions") if row["kind"] == "special"}
    for dtype, kind, nan in (("f16", "<f2", 0x7FFF), ("f32", "<f4", 0x7FFFFFFF), ("tf32", "<f4", 0x7FFFFFFF)):
        old, new = (np.array(part, dtype=f"<u{kind[-1]}").view(kind) for part in special[f"box add {dtype}"]["values"])
        found = np.array(special[f"box add {dtype}"]["answer"], dtype=f"<u{kind[-1]}")
        wanted = (old + new).view(found.dtype)
        wanted[np.isnan(old + new)] = nan
        assert np.array_equal(found, wanted)
    old, new = (np.array(part, dtype="<u2").view("<f2") for part in special["box min f16"]["values"])
    for name, function in (("min", np.fmin), ("max", np.fmax)):
        found = np.array(special[f"box {name} f16"]["answer"], dtype="<u2").view("<f2")
        assert np.array_equal(found, function(old, new), equal_nan=True)
