"""The tests' own copy engine against everything that one NVIDIA H200 did: maps, loads, stores, faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from judges import tma_engine as engine

DATA = Path(__file__).parents[1] / "data" / "measured"
IMAGE_BYTES = 32768
ODD_WORDS = (  # what the probes call pattern 3; see the README of the data
    *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7FE000, 0x7F7FF000),
    *(0x7F7FEFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF),
    *(0x7F801FFF, 0xFFBFF000, 0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0xBF801000, 0x00001000, 0x00003000),
    *(0x80001001, 0x40490FDB),
)


def test_the_driver_accepts_and_writes_what_the_engine_says():
    with np.load(DATA / "tensormap_dev.npz") as archive:
        params, status, words = archive["params"], archive["status"], archive["words"].astype("<u8")
    accepted = 0
    for row, verdict, written in zip(params, status, words, strict=True):
        dtype, rank, interleave, swizzle, promotion, fill = (int(row[k]) for k in (0, 1, 22, 23, 24, 25))
        plain = dtype <= 12 and 1 <= rank <= 5 and interleave <= 2 and swizzle <= 3 and promotion <= 3 and fill <= 1
        tm = engine.map_of(row) if plain else None
        assert (verdict == 0) == (tm is not None and not engine.refusals(tm)), row
        if tm is not None and verdict == 0:
            assert engine.write_map(tm) == written.tobytes()
            assert engine.read_map(written.tobytes()) == tm
            accepted += 1
    assert accepted > 11_000


@pytest.mark.parametrize(("name", "count"), [("tma_exec_plain_dev.npz", 300), ("tma_exec_estride_dev.npz", 100)])
def test_recorded_loads(name: str, count: int):
    memory = (np.arange(1 << 21) + 0x40000000).astype("<u4").view(np.uint8)
    with np.load(DATA / name) as archive:
        params, coords, images, expect, done = (archive[k] for k in ("params", "coords", "image", "expect", "done"))
    for row, start, image, bytes_expected, completed in zip(params, coords, images, expect, done, strict=True):
        tm = engine.map_of(row)
        shared = np.full(1 << 17, 0xEE, np.uint8)
        moved = engine.load(tm, start[: tm.rank].tolist(), memory, shared)
        assert np.array_equal(shared[:IMAGE_BYTES], image), tm
        assert bytes_expected <= moved
        assert completed or bytes_expected < moved
    assert len(params) == count


@dataclass(frozen=True)
class Probe:
    tm: engine.Map
    coords: list[int]
    offset: int
    pattern: int
    answer: npt.NDArray[np.uint8] | None
    encoded: bytes


def probes(name: str) -> Iterator[Probe]:
    with np.load(DATA / name) as archive:
        arrays = {key: archive[key] for key in archive.files}
    for group in sorted({key.partition("/")[0] for key in arrays}):
        params, coords, offset, pattern, faults = (
            arrays[f"{group}/{field}"] for field in ("params", "coords", "offset", "pattern", "fault")
        )
        for index, fault in enumerate(faults):
            if str(fault).startswith("not run"):
                continue
            tm = engine.map_of(params[index])
            yield Probe(
                tm,
                coords[index][: tm.rank].tolist(),
                int(offset[index]),
                int(pattern[index]),
                None if fault else arrays[f"{group}/answer"][index],
                b"" if fault else arrays[f"{group}/maps"][index].tobytes(),
            )


def source(pattern: int, count: int) -> npt.NDArray[np.uint8]:
    if pattern == 3:
        return np.resize(np.array(ODD_WORDS, dtype="<u4"), count).view(np.uint8)
    if pattern == 2:
        words = np.random.default_rng(count).integers(0, 2**32, count, dtype=np.uint32)
        return words.astype("<u4").view(np.uint8)
    return (np.arange(count) + (0x40000000 if pattern == 0 else 1)).astype("<u4").view(np.uint8)


def test_probed_loads():
    memories = {pattern: source(pattern, 1 << 21) for pattern in range(4)}
    seen: Counter[str] = Counter()
    for probe in probes("tma_load_probe_dev.npz"):
        tm, coords = probe.tm, list(probe.coords)
        if tm.base < 0 and max(tm.dims) <= engine.DIM_LIMIT:  # the buffer begins in the middle of such a tensor
            below = coords[0]
            tm = replace(tm, base=tm.base + below * tm.size, dims=(tm.dims[0] - below, *tm.dims[1:]))
            coords[0] = 0
        elif tm.base < 0:
            tm = replace(tm, base=0)
        shared = np.full(1 << 18, 0xEE, np.uint8)
        try:
            engine.load(tm, coords, memories[probe.pattern], shared, probe.offset)
        except engine.FaultError as fault:
            assert probe.answer is None
            seen[fault.rule] += 1
            continue
        assert probe.answer is not None, probe
        assert np.array_equal(shared[:IMAGE_BYTES], probe.answer), probe
        seen["agrees"] += 1
    assert seen["agrees"] == 947
    assert {"SMEM_ALIGN", "DIM_EXECUTE", "BOX_ADDR", "agrees"} == set(seen)


def test_probed_stores():
    images = {pattern: source(pattern, IMAGE_BYTES // 4) for pattern in range(2)}
    seen: Counter[tuple[str, bool]] = Counter()
    for probe in probes("tma_store_dev.npz"):
        window = np.full(IMAGE_BYTES, 0xA5, np.uint8)
        try:
            engine.store(probe.tm, probe.coords, window, images[probe.pattern], probe.offset)
        except engine.FaultError as fault:
            seen[fault.rule, probe.answer is None] += 1
            continue
        assert probe.answer is not None, probe
        assert np.array_equal(window, probe.answer), probe
        seen["agrees", True] += 1
    assert seen["agrees", True] == 1228
    # stores whose elements overlap and differ did run on the device; the engine leaves their order open
    assert set(seen) == {
        ("agrees", True),
        ("SMEM_ALIGN", True),
        ("BOX_ADDR", True),
        ("STORE", True),
        ("OVERLAP", False),
    }


@pytest.mark.parametrize("name", ["tma_load_probe_dev.npz", "tma_store_dev.npz"])
def test_maps_as_the_driver_wrote_them(name: str):
    seen = 0
    for probe in probes(name):
        if any(probe.encoded):
            read = engine.read_map(probe.encoded)
            assert replace(read, base=probe.tm.base) == probe.tm
            assert engine.write_map(read) == probe.encoded
            seen += 1
    assert seen > 900
