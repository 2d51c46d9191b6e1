"""Im2col and interleaved maps against what a driver and a device did, and the documented codecs of other targets."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutalg.ground.errors import LayoutError, MalformedError, TargetRuleError
from layoutalg.targets.nvidia import im2col, tensormap
from layoutalg.targets.nvidia.im2col import Im2colMap, Im2colWideMap
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap import TensorMap, batch
from layoutalg.targets.nvidia.tensormap.checks import RefusedMapError
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, INTERLEAVE_CODES, L2_PROMOTION_CODES, OOB_FILL_CODES

DATA = Path(__file__).parents[1] / "data" / "measured"
HOME = 1 << 24
NAMES = (
    {entry.code: name for name, entry in DTYPES.items()},
    {code: name for name, code in INTERLEAVE_CODES.items()},
    {entry.map_code: name for name, entry in SWIZZLE_TABLE.items()},
    {code: name for name, code in L2_PROMOTION_CODES.items()},
    {code: name for name, code in OOB_FILL_CODES.items()},
)


def stored(name: str) -> dict[str, Any]:
    with np.load(DATA / name, allow_pickle=False) as arrays:
        return dict(arrays)


@functools.cache
def memory() -> Any:
    return (np.arange(1 << 24, dtype=np.uint32) + np.uint32(0x40000000)).view(np.uint8)


def from_row(p: list[int]) -> Im2colMap | None:
    """The map of 29 numbers, None where a number has no name."""
    rank, codes = p[1], (p[0], *p[25:29])
    if any(code not in names for code, names in zip(codes, NAMES, strict=True)) or rank > 5:
        return None
    dtype, interleave, swizzle, promotion, fill = (names[code] for code, names in zip(codes, NAMES, strict=True))
    spatial = max(rank - 2, 0)
    return Im2colMap(
        dtype, tuple(p[3 : 3 + rank]), tuple(p[8 : 7 + rank]), tuple(p[12 : 12 + spatial]),
        tuple(p[15 : 15 + spatial]), p[18], p[19], tuple(p[20 : 20 + rank]), interleave, swizzle, promotion, fill, p[2],
    )  # fmt: skip


def test_every_recorded_verdict_and_every_byte() -> None:
    data = stored("im2col_dev.npz")
    words = iter(data["words"])
    accepted = 0
    for p, status in zip(data["params"].tolist(), data["status"].tolist(), strict=True):
        tm = from_row(p)
        raw = next(words).tobytes() if status == 0 else None
        assert (tm is not None and im2col.violations(tm) == ()) == (status == 0), (p, tm and im2col.violations(tm))
        if raw is not None and tm is not None:
            accepted += 1
            assert im2col.encode(tm) == raw, p
            if accepted % 8 == 0:
                assert im2col.decode(raw) == tm
    assert accepted == len(data["words"]) > 1500


def run(data: dict[str, Any], i: int) -> tuple[int, Any]:
    """Bytes counted and image of one recorded load, by the model."""
    p = data["params"][i].tolist()
    p[2] += HOME
    rank, image = p[1], np.full(1 << 16, 0xEE, np.uint8)
    coords, offset = data["coords"][i].tolist()[:rank], int(data["offset"][i])
    if data["mode"][i] == "im2col":
        tm = from_row(p)
        assert tm is not None
        offsets = data["offsets"][i].tolist()[: rank - 2]
        return im2col.im2col_load(tm, coords, offsets, memory(), image, offset), image
    return tensormap.tile_load(batch.from_row(p[:26]), coords, memory(), image, offset), image


@pytest.mark.parametrize("name", ["im2col_loads_dev.npz", "interleave_loads_dev.npz"])
def test_every_recorded_load(name: str) -> None:
    data = stored(name)
    images = dict(zip(data["rows"].tolist(), data["images"], strict=True))
    ran = faulted = 0
    for i, group in enumerate(data["group"].tolist()):
        if group == "im2col/offsets_beyond":
            continue  # offsets beyond their fields are refused; what those loads did stays evidence
        if data["fault"][i]:
            faulted += 1
            with pytest.raises(TargetRuleError, match="IM2COL_START"):
                run(data, i)
            continue
        ran += 1
        counted, image = run(data, i)
        found = hashlib.blake2b(image[:16384].tobytes(), digest_size=8).digest()
        assert int.from_bytes(found, "little") == int(data["digest"][i]), (group, i)
        assert (counted == data["expect"][i]) == bool(data["done"][i]), (group, i)
        touched = np.flatnonzero(image != 0xEE)
        assert (int(touched[-1]) + 1 if touched.size else 0) == int(data["last"][i])
        if i in images:
            assert np.array_equal(image[:16384], images[i])
    assert ran > 900
    assert (faulted > 100) == (name == "im2col_loads_dev.npz")


def test_every_recorded_store() -> None:
    data = stored("im2col_stores_dev.npz")
    images = dict(zip(data["rows"].tolist(), data["images"], strict=True))
    source = (np.arange(8192, dtype=np.uint32) + np.uint32(0x40000000)).view(np.uint8)
    ran = faulted = 0
    for i, group in enumerate(data["group"].tolist()):
        p = data["params"][i].tolist()
        p[2] += 4096
        coords, window = data["coords"][i].tolist()[: p[1]], np.full(40960, 0xA5, np.uint8)
        store = (im2col.im2col_store, from_row(p)) if data["mode"][i] == "im2col" else (
            tensormap.tile_store, batch.from_row(p[:26]))  # fmt: skip
        call = functools.partial(store[0], store[1], coords, window, source, int(data["offset"][i]))  # type: ignore[arg-type]
        if data["fault"][i]:
            faulted += 1
            with pytest.raises(TargetRuleError, match=r"IM2COL_STORE_BOX|IM2COL_START|STORE"):
                call()
            continue
        ran += 1
        call()
        found = hashlib.blake2b(window.tobytes(), digest_size=8).digest()
        assert int.from_bytes(found, "little") == int(data["digest"][i]), (group, i)
        if i in images:
            assert np.array_equal(window, images[i])
    assert (ran, faulted) == (1112, 107)


def test_offsets_beyond_their_fields_are_refused() -> None:
    tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64)
    with pytest.raises(TargetRuleError, match="IM2COL_OFFSET"):
        im2col.im2col_load(tm, (0, 0, 0, 0), (256, 0), memory(), np.zeros(4096, np.uint8))
    with pytest.raises(TargetRuleError, match="BOX_ADDR"):
        im2col.im2col_load(tm, (1, 0, 0, 0), (0, 0), memory(), np.zeros(4096, np.uint8))
    with pytest.raises(MalformedError, match="LA850"):
        im2col.use_violations(tm, (0, 0, 0), (0, 0))


def test_every_field_owns_its_bits() -> None:
    for fields in (im2col.FIELDS, tensormap.FIELDS):
        bits = [32 * field.word + field.low + bit for field in fields for bit in range(field.width)]
        assert sorted(bits) == list(range(1024))


def test_every_single_bit_changes_the_map_or_is_refused() -> None:
    tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, 0), 8, 64, (1, 2, 1, 1), swizzle="32B")
    raw = im2col.encode(tm)
    refused = 0
    for bit in range(1024):
        turned = (int.from_bytes(raw, "little") ^ 1 << bit).to_bytes(128, "little")
        try:
            other = im2col.decode(turned)
        except LayoutError as error:
            refused += 1
            assert error.diagnostic.code == "LA853"
            continue
        assert other != tm
        assert im2col.encode(other) == turned
    assert refused > 512
    with pytest.raises(MalformedError, match="kind"):
        im2col.decode(tensormap.encode(TensorMap("u8", (64,), (), (16,))))
    with pytest.raises(MalformedError, match="LA308"):
        im2col.decode(raw[:64])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"dims": (64, 9), "strides_bytes": (128,), "lower_corner": (), "upper_corner": ()}, "IM2COL_RANK"),
        ({"upper_corner": (-1, -14)}, "CORNER_EMPTY"),
        ({"lower_corner": (-129, 0)}, "CORNER_RANGE"),
        ({"channels_per_pixel": 264, "swizzle": "NONE"}, "CHANNELS_RANGE"),
        ({"channels_per_pixel": 4}, "CHANNELS_16B"),
        ({"pixels_per_column": 1025}, "PIXELS_RANGE"),
        ({"channels_per_pixel": 32}, "SWIZZLE_INNER"),
        ({"channels_per_pixel": 256, "pixels_per_column": 1024, "swizzle": "NONE"}, "BOX_SMEM"),
        ({"swizzle": "128B_ATOM_32B"}, "ARCH_ATOM"),
        ({"dtype": "u4_align16"}, "ARCH_ATOM"),
        ({"base_address": 8}, "BASE_ALIGN"),
        ({"dtype": "u16", "oob_fill": "NAN"}, "OOB_NAN"),
    ],
)
def test_rules(change: dict[str, Any], rule: str) -> None:
    fields: dict[str, Any] = {
        "dtype": "f16", "dims": (64, 9, 14, 4), "strides_bytes": (128, 1152, 16128), "lower_corner": (0, 0),
        "upper_corner": (0, 0), "channels_per_pixel": 16, "pixels_per_column": 64, "swizzle": "32B",
    }  # fmt: skip
    assert im2col.violations(Im2colMap(**fields)) == ()
    if "dims" in change:
        change = change | {"element_strides": ()}
    tm = Im2colMap(**fields | change)
    assert rule in [entry.rule for entry in im2col.violations(tm)]
    with pytest.raises(RefusedMapError, match="LA852"):
        im2col.encode(tm)


def test_wide_maps_are_documented_alone() -> None:
    tm = Im2colWideMap("f16", (64, 9, 14, 4), (128, 1152, 16128), -1, -1, 32, 64, swizzle="64B")
    rules = lambda tm, target: [entry.rule for entry in im2col.violations(tm, target, "documented")]  # noqa: E731
    assert rules(tm, "sm_100a") == []
    assert rules(tm, "sm_90a") == ["WIDE_ARCH"]
    put = lambda **change: Im2colWideMap(  # noqa: E731
        **{"dtype": "f16", "dims": (64, 9, 14, 4), "strides_bytes": (128, 1152, 16128), "lower_corner": -1,
           "upper_corner": -1, "channels_per_pixel": 32, "pixels_per_column": 64, "swizzle": "64B"} | change
    )  # fmt: skip
    assert rules(put(swizzle="NONE"), "sm_100a") == ["WIDE_SWIZZLE"]
    assert rules(put(swizzle="96B"), "sm_103a") == []
    assert rules(put(swizzle="96B"), "sm_100a") == ["WIDE_SWIZZLE"]
    assert rules(put(swizzle="96B", channels_per_pixel=56), "sm_103a") == ["SWIZZLE_INNER"]
    assert rules(put(upper_corner=-10), "sm_100a") == ["CORNER_EMPTY"]
    assert rules(put(pixels_per_column=4096), "sm_100a") == ["PIXELS_RANGE"]
    assert rules(put(pixels_per_column=4096, mode="W128"), "sm_100a") == []
    assert "WIDE_INTERLEAVE" in rules(put(interleave="16B"), "sm_100a")
    assert [entry.rule for entry in im2col.wide_use_violations(tm, 512, 32)] == ["WIDE_HALO", "WIDE_OFFSET"]
    with pytest.raises(TargetRuleError, match="LA306"):
        im2col.violations(tm, "sm_100a")


def test_packed_types_and_atom_swizzles_by_the_documents() -> None:
    for dtype, dims, box, stride in (("u4_align8", 256, 64, 128), ("u4_align16", 256, 128, 128),
                                     ("u6_align16", 256, 128, 192)):  # fmt: skip
        for swizzle in tensormap.SWIZZLES:
            tm = TensorMap(dtype, (dims, 64), (stride,), (box, 8), swizzle=swizzle)
            found = tensormap.violations(tm, "sm_100a", "documented")
            if found:
                with pytest.raises(RefusedMapError, match="LA854"):
                    tensormap.encode_documented(tm, "sm_100a")
                continue
            raw = tensormap.encode_documented(tm, "sm_100a")
            assert tensormap.decode_documented(raw, "sm_100a") == tm
            with pytest.raises(MalformedError, match="LA855"):
                tensormap.decode_documented(raw, "sm_90a")
    atoms = [name for name in tensormap.SWIZZLES if "ATOM" in name]
    for swizzle in atoms:
        tm = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle=swizzle)
        raw = tensormap.encode_documented(tm, "sm_100a")
        assert tensormap.decode_documented(raw, "sm_100a").swizzle == swizzle
        with pytest.raises(LayoutError):
            tensormap.decode(raw)


def test_documented_bytes_are_the_measured_ones_but_for_what_they_leave_open() -> None:
    tm = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096)
    ours, theirs = tensormap.encode_documented(tm, "sm_90a"), tensormap.encode(tm)
    assert int.from_bytes(ours[:64], "little") ^ int.from_bytes(theirs[:64], "little") == 1 << 64 + 1
    assert tensormap.decode_documented(theirs, "sm_90a") == tm
    with pytest.raises(MalformedError, match="swizzle_96B"):
        tensormap.decode_documented((int.from_bytes(ours, "little") | 1 << 86).to_bytes(128, "little"), "sm_103a")


def test_gathered_rows() -> None:
    tm = TensorMap("bf16", (64, 100), (128,), (64, 1), swizzle="128B")
    assert tensormap.row_violations(tm, (0, 2, 5, 0, 9), "sm_100a", "scatter4") == ()
    broken = TensorMap("bf16", (64, 100, 2), (128, 12800), (64, 2, 1), interleave="16B")
    rules = {entry.rule for entry in tensormap.row_violations(broken, (1, -1, 0, 0, 2**31), "sm_90a", "scatter4")}
    assert rules >= {"GATHER_ARCH", "GATHER_RANK", "GATHER_INTERLEAVE", "COORD_RANGE", "BOX_ADDR", "STORE"}
    two = TensorMap("bf16", (64, 100), (128,), (64, 2))
    assert [e.rule for e in tensormap.row_violations(two, (0, 0, 0, 0, 0), "sm_100a")] == ["GATHER_BOX"]
    with pytest.raises(MalformedError, match="LA856"):
        tensormap.row_violations(tm, (0, 0), "sm_100a")
    with pytest.raises(MalformedError, match="LA856"):
        tensormap.gathered_boxes(two, (0, 0, 0, 0, 0))


def test_every_rule_that_can_be_named_is_in_a_table() -> None:
    named = set(im2col.RULES) | set(tensormap.RULES)
    for path in Path(im2col.__file__).parent.glob("*.py"):
        for line in path.read_text().splitlines():
            if 'Violation("' in line:
                assert line.split('Violation("')[1].split('"')[0] in named, line
    json.dumps([rule.limit for rule in im2col.RULES.values()])
