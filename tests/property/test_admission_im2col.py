"""Admission of im2col copies, judged by running every column through the model of the engine at every place."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.checker import check as standalone
from layoutalg.proofs.im2col import check
from layoutalg.proofs.im2col import layout as denoted
from layoutalg.proofs.listed import listed
from layoutalg.targets.nvidia import im2col
from layoutalg.targets.nvidia.im2col import Im2colMap

PERIOD = 1024


@functools.cache
def written(swizzle: str, pixels: int, channels: int) -> list[dict[tuple[int, int], int]] | None:
    """Where one bf16 column puts (pixel, channel), by the engine, for every start in a period; None if refused."""
    tm = Im2colMap("bf16", (channels, pixels, 1), (2 * channels, 2 * channels * pixels), (0,), (0,), channels, pixels,
                   swizzle=swizzle)  # fmt: skip
    if im2col.violations(tm):
        return None
    memory = (1 + np.arange(pixels * channels, dtype=np.uint16)).view(np.uint8)
    found = []
    for start in range(0, PERIOD, 128):
        image = np.zeros(8192, np.uint8)
        im2col.im2col_load(tm, (0, 0, 0), (0,), memory, image, start)
        values = image.view(np.uint16)
        at = np.flatnonzero(values)
        found.append({divmod(int(values[i]) - 1, channels): int(i) for i in at})
    return found


def carried(table: np.ndarray) -> bool:
    """Whether columns of one kind write exactly this table, each element once: every grid, every start."""
    pixels, channels = table.shape
    for swizzle in ("NONE", "32B", "64B", "128B"):
        for p in [v for v in range(1, pixels + 1) if pixels % v == 0]:
            for c in [v for v in range(1, channels + 1) if channels % v == 0]:
                kinds = written(swizzle, p, c)
                if kinds is not None and all(
                    any(
                        all(int(table[row + i, col + k]) - place[i, k] in (0, jump) for i in range(p) for k in range(c))
                        for jump, place in placed(kinds, int(table[row, col]))
                    )
                    for row in range(0, pixels, p)
                    for col in range(0, channels, c)
                ):
                    return True
    return False


def placed(kinds: list[dict[tuple[int, int], int]], first: int) -> list[tuple[int, dict[tuple[int, int], int]]]:
    """The starts that put the first element where it is asked for: each with the elements of whole periods before."""
    step = PERIOD // 2
    return [(0, {at: v + step * k for at, v in kind.items()}) for kind in kinds for k in [(first - kind[0, 0]) // step]
            if (first - kind[0, 0]) % step == 0 and k >= 0]  # fmt: skip


def random_table(rng: random.Random) -> np.ndarray:
    """A tile of up to 16 pixels and 64 channels: grids of columns in any order, often with something moved."""
    pixels, channels = rng.choice((1, 2, 4, 6, 8, 12, 16)), 8 * rng.choice((1, 2, 4, 8))
    swizzle = rng.choice(("NONE", "32B", "64B", "128B"))
    span = {"NONE": 0, "32B": 16, "64B": 32, "128B": 64}[swizzle]
    wide = rng.choice([c for c in (8, 16, 32, 64) if channels % c == 0 and (not span or c <= span)])
    tall = rng.choice([p for p in range(1, pixels + 1) if pixels % p == 0])
    pitch = span or wide
    blocks = [(r, c) for r in range(0, pixels, tall) for c in range(0, channels, wide)]
    if rng.random() < 0.3:
        rng.shuffle(blocks)
    grain = rng.choice((64, 64, 64, 32, 512))
    linear = np.zeros((pixels, channels), np.int64)
    at = 0
    for r, c in blocks:
        linear[r : r + tall, c : c + wide] = at + np.arange(tall)[:, None] * pitch + np.arange(wide)
        at += -(-tall * pitch // grain) * grain
    from layoutalg.targets.nvidia.tensormap import apply_swizzle

    table = apply_swizzle(swizzle, linear * 2) // 2
    if rng.random() < 0.5:
        i, j = rng.randrange(pixels), 8 * rng.randrange(channels // 8)
        other = 8 * rng.randrange(channels // 8)
        table[i, j : j + 8], table[i, other : other + 8] = (
            table[i, other : other + 8].copy(),
            table[i, j : j + 8].copy(),
        )
    return table


@pytest.mark.parametrize("seed", range(4))
def test_answers_against_the_engine(seed: int) -> None:
    rng = random.Random(seed)
    said = {True: 0, False: 0}
    for _ in range(50):
        table = random_table(rng)
        found = la.admissible(table, "tma.im2col")
        assert not isinstance(found, Unknown)
        assert bool(found) == carried(table), (table.tolist(), str(found))
        said[bool(found)] += 1
        if isinstance(found, la.Admitted):
            assert check(found.descriptor)
            assert la.equivalent(denoted(found.descriptor), listed(table))
            assert standalone(found.certificate.to_json())[0] == 0
        else:
            assert found.rules
            for repair in found.repairs:
                if repair.name == "store the tile by rows":
                    assert la.admissible(repair.detail, "tma.im2col", tile=table.shape)
    assert min(said.values()) >= 5


TENSOR = ((8, 56, 56, 128), None, "bf16")


@pytest.mark.parametrize(
    ("layout", "options", "rule"),
    [
        ("(128,64):(72,1)", {}, "SWIZZLE_PITCH"),
        ("(128,64):(1,128)", {}, "SMEM_DENSE"),
        ("(128,12):(12,1)", {}, "CHANNELS_16B"),
        ("(128,64):(0,1)", {}, "SMEM_INJECTIVE"),
        ("(4096,64):(64,1)", {}, "SMEM_CAP"),
        ("Sw<3,3,3> o 0 o (128,64):(64,1)", {"align_bytes": 256}, "SMEM_ALIGN"),
        ("(128,64):(64,1)", {"align_bytes": 64}, "SMEM_ALIGN"),
        ("(128,64):(64,1)", {"tensor": TENSOR, "stride": (9, 1)}, "ELEM_STRIDE"),
        ("(128,64):(64,1)", {"tensor": ((8, 56, 56, 60), None, "bf16")}, "STRIDE_ALIGN"),
        ("(128,64):(64,1)", {"tensor": TENSOR, "filter": (1, 3), "dilation": (1, 300), "padding": (0, 600)},
         "IM2COL_OFFSET"),
        ("(128,64):(64,1)", {"target": "sm_80"}, "NO_TMA"),
    ],
)  # fmt: skip
def test_refusals_name_the_rule(layout: str, options: dict[str, object], rule: str) -> None:
    found = la.admissible(layout, "tma.im2col", **options)  # type: ignore[arg-type]
    assert isinstance(found, la.Refused)
    assert rule in found.rules


def test_stores() -> None:
    found = la.admissible("Sw<3,3,3> o 0 o (128,64):(64,1)", "tma.im2col.store", tensor=TENSOR, stride=(2, 2))
    assert isinstance(found, la.Admitted)
    tm = found.descriptor.tensor_map
    memory = np.zeros(8 * 56 * 56 * 128 * 2, np.uint8)
    image = np.random.default_rng(1).integers(1, 256, 1 << 14, dtype=np.uint8)
    start = found.descriptor.start(found.descriptor.issues[0], 100, 64)
    im2col.im2col_store(tm, start, memory, image)
    back = np.zeros(1 << 14, np.uint8)
    im2col.im2col_load(tm, start, (0, 0), memory, back)
    assert np.array_equal(back, image)
    assert np.count_nonzero(memory) == image.size
    assert la.admissible("(128,64):(64,1)", "tma.im2col.store")
    padded = la.admissible("(128,64):(64,1)", "tma.im2col.store", tensor=TENSOR, filter=(3, 3), padding=(1, 1))
    assert {"IM2COL_STORE_BOX", "IM2COL_OFFSET"} <= set(padded.rules)
    cut = la.admissible("(128,56):(56,1)", "tma.im2col.store", tensor=((8, 9, 9, 60), (5184, 576, 64, 1), "bf16"))
    assert cut.rules == ("STORE_CHUNK",)


def test_the_repair_of_a_tensor_is_planned() -> None:
    found = la.admissible("(128,64):(64,1)", "tma.im2col", tensor=((8, 56, 56, 60), None, "bf16"))
    assert [repair.name for repair in found.repairs] == ["store the tensor by rows"]
    strides = (56 * 56 * 64, 56 * 64, 64, 1)
    assert la.admissible("(128,64):(64,1)", "tma.im2col", tensor=((8, 56, 56, 60), strides, "bf16"))


def test_what_cannot_be_asked() -> None:
    assert isinstance(la.admissible("(128,64):(64,1)", "tma.im2col", "sm_100a"), Unknown)
    for options in ({"filter": (3, 3)}, {"issues": 1}, {"tensor": ((8, 56, 56, 128), None, "f32"), "dtype": "f16"}):
        with pytest.raises(MalformedError, match="LA801"):
            la.admissible("(128,64):(64,1)", "tma.im2col", **options)
    with pytest.raises(MalformedError, match="LA801"):
        la.admissible("(8,8,64):(512,64,1)", "tma.im2col")
    with pytest.raises(MalformedError, match="LA801"):
        la.admissible("(128,64):(64,1)", "tma.im2col.wide")
