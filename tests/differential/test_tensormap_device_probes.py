"""Against probes of one NVIDIA H200: loads and stores at edges, at offsets, of odd values, and those that fault."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.ground.errors import LayoutError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, batch

DATA = Path(__file__).parents[1] / "data" / "measured"
IMAGE_BYTES = WINDOW_BYTES = 32768
BUFFER_WORDS = 1 << 21
Bytes = npt.NDArray[np.uint8]
SPECIAL_WORDS = (  # zeros, denormals, largest numbers, infinities, NaNs, ties: what the probe put in memory
    *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7FE000, 0x7F7FF000),
    *(0x7F7FEFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF),
    *(0x7F801FFF, 0xFFBFF000, 0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0xBF801000, 0x00001000, 0x00003000),
    *(0x80001001, 0x40490FDB),
)


@dataclass(frozen=True)
class Probe:
    """One recorded copy; ``answer`` is None where the device faulted."""

    group: str
    tm: TensorMap
    coords: tuple[int, ...]
    offset: int
    pattern: int
    answer: Bytes | None
    encoded: bytes


def probes(name: str) -> Iterator[Probe]:
    with np.load(DATA / name) as archive:
        arrays = {key: archive[key] for key in archive.files}
    for group in sorted({key.partition("/")[0] for key in arrays}):
        get = lambda field, group=group: arrays.get(f"{group}/{field}")  # noqa: E731
        for index, fault in enumerate(get("fault")):
            if fault.startswith("not run"):
                continue
            row = get("params")[index].copy()
            base = int(row[2])
            row[2] = 0
            tm = replace(batch.from_row(row), base_address=base)
            answer = None if fault else get("answer")[index]
            coords = tuple(get("coords")[index][: tm.rank].tolist())
            encoded = b"" if fault else get("maps")[index].tobytes()
            yield Probe(group, tm, coords, int(get("offset")[index]), int(get("pattern")[index]), answer, encoded)


def words(pattern: int, count: int) -> Bytes:
    """Return the recorded source: floats from 2 on (0), denormals (1), random bits (2), odd floats (3)."""
    if pattern == 3:
        return np.resize(np.array(SPECIAL_WORDS, dtype="<u4"), count).view(np.uint8)
    if pattern == 2:
        return np.random.default_rng(count).integers(0, 2**32, count, dtype=np.uint32).astype("<u4").view(np.uint8)
    return (np.arange(count) + (0x40000000 if pattern == 0 else 1)).astype("<u4").view(np.uint8)


def load(probe: Probe, memories: dict[int, Bytes]) -> Bytes:
    """Load; a negative base, below the recorded buffer, is moved up together with the memory."""
    memory, tm = memories[probe.pattern], probe.tm
    if tm.base_address < 0:
        size = tensormap.element_bytes(tm.dtype)
        first = tm.base_address + probe.coords[0] * size
        tm = replace(tm, base_address=first, dims=(tm.dims[0] - probe.coords[0], *tm.dims[1:]))
        probe = replace(probe, coords=(0, *probe.coords[1:]))
    image = np.full(max(IMAGE_BYTES, probe.offset + tensormap.footprint_bytes(tm)), 0xEE, np.uint8)
    tensormap.tile_load(tm, probe.coords, memory, image, probe.offset)
    return image[:IMAGE_BYTES]


def test_loads() -> None:
    memories = {pattern: words(pattern, BUFFER_WORDS) for pattern in (0, 1, 2, 3)}
    agreed = 0
    for probe in probes("tma_load_probe_dev.npz"):
        if probe.answer is None:
            if probe.tm.base_address >= 0:
                with pytest.raises(LayoutError) as caught:
                    load(probe, memories)
                assert caught.value.diagnostic.code in ("LA321", "LA324", "LA331")
            else:
                assert max(probe.tm.dims) > tensormap.MAX_DIM
            continue
        assert np.array_equal(load(probe, memories), probe.answer), probe
        agreed += 1
    assert agreed > 900


def test_stores() -> None:
    image = {pattern: words(pattern, IMAGE_BYTES // 4) for pattern in (0, 1)}
    agreed, refused = 0, set()
    for probe in probes("tma_store_dev.npz"):
        window = np.full(WINDOW_BYTES, 0xA5, np.uint8)
        try:
            tensormap.tile_store(probe.tm, probe.coords, window, image[probe.pattern], probe.offset)
        except LayoutError as error:
            code = error.diagnostic.code
            refused.add((code, probe.answer is None))
            continue
        assert probe.answer is not None, probe
        assert np.array_equal(window, probe.answer), probe
        agreed += 1
    assert agreed > 1200
    assert refused == {("LA321", True), ("LA324", True), ("LA328", True), ("LA329", False)}


@pytest.mark.parametrize("name", ["tma_load_probe_dev.npz", "tma_store_dev.npz"])
def test_their_maps(name: str) -> None:
    seen = 0
    for probe in probes(name):
        if any(probe.encoded):
            placed = replace(probe.tm, base_address=int.from_bytes(probe.encoded[:8], "little"))
            assert tensormap.encode(placed) == probe.encoded
            assert tensormap.decode(probe.encoded) == placed
            seen += 1
    assert seen > 780
