"""What a device did with wgmma of every type, against the facts of the library and against documents' other wording."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from layoutalg.targets.nvidia import wgmma

MEASURED = Path(__file__).parents[1] / "data" / "measured"
with np.load(MEASURED / "wgmma_probes_dev.npz") as stored:
    PROBES = dict(stored)
READS = sorted(name.removesuffix("/fields") for name in PROBES if name.endswith("/fields"))
CAMPAIGN = json.loads(gzip.decompress((MEASURED / "wgmma_campaign_dev.json.gz").read_bytes()))
ROWS_OF_B = 64
SPANS = {"NONE": 16, "32B": 32, "64B": 64, "128B": 128}


def table(name: str, field: np.ndarray) -> np.ndarray:
    """The element of the region that ``operand_offsets`` says is read, for one descriptor of a probe."""
    words = name.split("_")
    dtype, operand, sparse = words[1], words[2], words[-1] == "sparse"
    bits = wgmma.OPERAND_BITS[dtype]
    start, leading, stride, offset, code = (int(value) for value in field)
    d = wgmma.MatrixDescriptor(start, leading, stride, offset, wgmma.SWIZZLES[code])
    k = wgmma.instruction_k(bits, sparse and operand == "B")
    rows = 64 if operand == "A" else ROWS_OF_B
    read = wgmma.operand_offsets(d, rows=rows, k=k, element_bits=bits, major="MN" if "MN" in words else "K")
    return read * 8 // bits + (np.arange(k) % 8 if bits == 1 else 0)


@pytest.mark.parametrize("name", READS)
def test_the_device_read_what_is_predicted_through_every_descriptor(name):
    fields, digests = PROBES[f"{name}/fields"], PROBES[f"{name}/digest"]
    places, samples = PROBES[f"{name}/at"], PROBES[f"{name}/sample"]
    assert len(fields) == len(digests) >= 64
    for field, digest, sample in zip(fields, digests, samples, strict=True):
        found = table(name, field)
        assert np.array_equal(found.reshape(-1)[places], sample)
        raw = hashlib.blake2b(found.astype("<i4").tobytes(), digest_size=8).digest()
        assert np.frombuffer(raw, dtype="<u8")[0] == digest


def test_a_changed_rule_would_be_seen():
    """Every digit of the rule matters to some recorded read: changing a field changes the predicted table."""
    name = "read_f16_B_K_sparse"
    narrow = [i for i, field in enumerate(PROBES[f"{name}/fields"]) if wgmma.SWIZZLES[field[4]] == "32B"]
    assert len(narrow) >= 16
    for i in narrow:  # the dispute: LBO is read where K is longer than the span of a K-major operand
        field = PROBES[f"{name}/fields"][i].copy()
        first = table(name, field)
        field[1] += 16
        assert not np.array_equal(first, table(name, field))


@pytest.mark.parametrize("name", sorted(name for name in PROBES if name.startswith("registers_")))
def test_registers_of_a_hold_what_the_fragment_says(name):
    bits = wgmma.OPERAND_BITS[name.split("_")[1].split("/")[0]]
    where = wgmma.register_coordinates(bits)
    index = PROBES[name]
    assert np.array_equal(index[where[..., 0], where[..., 1]].reshape(-1), np.arange(where[..., 0].size))


@pytest.mark.parametrize("name", sorted(name for name in PROBES if name.startswith("accumulator_")))
def test_accumulators_hold_what_the_fragment_says(name):
    n = int(name.split("/")[0].split("_")[-1])
    assert np.array_equal(PROBES[name], wgmma.accumulator_coordinates(n))


@pytest.mark.parametrize("name", sorted(name.split("/")[0] for name in PROBES if name.endswith("/words")))
def test_metadata_are_heard_where_the_layout_says(name):
    """Stored elements were 1, 2, 1, 2, ...; the product with an identity shows where each one belongs."""
    dtype, selector = name.split("_")[1], int(name.split("_")[2])
    bits = wgmma.OPERAND_BITS[dtype]
    size = 2 if bits == 32 else 4
    where = wgmma.metadata_coordinates(bits, selector)
    for words, d in zip(PROBES[f"{name}/words"], PROBES[f"{name}/d"], strict=True):
        groups = d.reshape(64, -1, size)
        for thread, nibble in np.argwhere(where[..., 0] >= 0):
            row, group = where[thread, nibble]
            code = int(words[thread]) >> 4 * int(nibble) & 15
            inside = wgmma.SPARSE_CODES[bits][code]
            stored = [1, 2] if size == 4 else [1 + group % 2]
            wanted = np.zeros(size, dtype=int)
            wanted[list(inside)] = stored
            assert groups[row, group].tolist() == wanted.tolist()


def test_every_instruction_of_every_type_ran_and_none_was_wrong():
    rows = {(row[0], bool(row[1])): row for row in CAMPAIGN["rows"]}
    assert not CAMPAIGN["faults"]
    assert len(rows) == len(CAMPAIGN["rows"]) == CAMPAIGN["facts"]["instructions"]
    for kind in wgmma.MULTIPLIES.values():
        for accumulator in kind.accumulators:
            for sparse in (False, True) if kind.sparse else (False,):
                for registers in (False, True):
                    for n in kind.n:
                        k = wgmma.instruction_k(kind.bits, sparse)
                        op, sp = (".and.popc" if kind.a == "b1" else ""), (".sp" if sparse else "")
                        name = f"wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}.{accumulator}.{kind.a}.{kind.b}{op}"
                        _, _, cases, wrong = rows.pop((name, registers))
                        majors = (2 if registers else 4) if kind.transposable else 1
                        selectors = 2 if sparse and kind.bits > 8 else 1
                        swizzles = 4 if registers else 16
                        assert cases == swizzles * (majors * selectors + kind.negatable)
                        assert wrong == 0
    assert not rows
