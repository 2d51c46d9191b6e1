"""The real-tile collection: structure, provenance, coverage, and an independent reading of every verdict.

Nothing here imports the library: the file is data other tests rely on, so it is judged by plain arithmetic.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

PATH = Path(__file__).parents[2] / "layoutalg/cli/data/real_tiles.json"
FILE: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
TILES: list[dict[str, Any]] = FILE["tiles"]

SMEM_CAP_BYTES = 227 * 1024
BYTES = {
    "u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u32": 4, "s32": 4, "f32": 4, "tf32": 4, "u64": 8, "s64": 8, "f64": 8,
}  # fmt: skip
FLOATS = {"f16", "bf16", "f32", "tf32", "f64"}
# bits of the byte address: how many chunk bits are XORed, where they start, how far above their partner lies
SWIZZLES = {"NONE": (0, 4, 3), "32B": (1, 4, 3), "64B": (2, 4, 3), "128B": (3, 4, 3), "128B_ATOM_32B": (2, 5, 2)}
SPAN_BYTES = {"32B": 32, "64B": 64, "128B": 128, "128B_ATOM_32B": 128}

ENTRY_KEYS = {"name", "source", "note", "expect", "rule", "problem", "consumer"}
PROBLEM_KEYS = {"schema", "arch", "direction", "global", "tile", "smem"}
OPTIONAL_PROBLEM_KEYS = {"base_elem_offset", "bounds", "element_strides", "oob_fill"}
RULES = {
    "STRIDE_ALIGN", "INNER_CONTIGUOUS", "BASE_ALIGN", "SMEM_DENSE", "OOB_NAN", "ARCH_ATOM", "BOX_INNER_16B",
}  # fmt: skip

by_name = pytest.mark.parametrize("entry", TILES, ids=[entry["name"] for entry in TILES])


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def element_bytes(problem: dict[str, Any]) -> int:
    return BYTES[problem["global"]["dtype"]]


def smem_element_offsets(modes: list[list[list[int]]]) -> NDArray[np.int64]:
    """Element offset of every tile element before the swizzle, in the order of the tile's dimensions."""
    total = np.zeros(1, dtype=np.int64)
    for dimension in modes:
        line = np.zeros(1, dtype=np.int64)
        for extent, stride in dimension:  # fastest first
            line = (np.arange(extent, dtype=np.int64)[:, None] * stride + line[None, :]).reshape(-1)
        total = (total[:, None] + line[None, :]).reshape(-1)
    return total


def swizzle(addresses: NDArray[np.int64], mode: str) -> NDArray[np.int64]:
    bits, base, shift = SWIZZLES[mode]
    mask = ((1 << bits) - 1) << base
    flipped: NDArray[np.int64] = (addresses >> shift) & mask
    return np.bitwise_xor(addresses, flipped)


def walk(problem: dict[str, Any]) -> list[list[int]]:
    """The tile as ``[extent, shared stride, global stride]`` loops, shared-innermost first, merged where both agree."""
    steps = problem.get("element_strides", [1] * len(problem["tile"]))
    loops: list[list[int]] = []
    for dimension, stride, step in zip(problem["smem"]["modes"], problem["global"]["stride"], steps, strict=True):
        reach = stride * step
        for extent, shared in dimension:
            if extent > 1:
                loops.append([extent, shared, reach])
            reach *= extent
    loops.sort(key=lambda loop: loop[1])
    merged = [loops[0]]
    for extent, shared, reach in loops[1:]:
        last = merged[-1]
        if shared == last[0] * last[1] and reach == last[0] * last[2]:
            last[0] *= extent
        else:
            merged.append([extent, shared, reach])
    return merged


def findings(problem: dict[str, Any]) -> set[str]:
    """The rules the problem breaks in whatever way it is split into boxes, by a direct reading of each rule.

    Only the rules this collection uses. A fold can save a bad pitch, so pitches are read after merging.
    """
    size = element_bytes(problem)
    arrays = problem["global"]
    loops = walk(problem)
    contiguous = loops[0][1] == 1 and loops[0][2] == 1
    pitches = [reach for _, _, reach in loops[1:] if reach != 1]
    # a dimension the tile does not span still needs its own pitch, unless it holds a single element
    for count, stride, extent in zip(arrays["shape"], arrays["stride"], problem["tile"], strict=True):
        if extent == 1 and count > 1:
            pitches.append(stride)
    filled, dense = 1, True
    for extent, shared, _ in loops:
        dense &= shared == filled
        filled *= extent
    broken = {
        "STRIDE_ALIGN": any(pitch * size % 16 for pitch in pitches),
        "INNER_CONTIGUOUS": not contiguous,
        "BASE_ALIGN": problem.get("base_elem_offset", 0) * size % 16 or arrays["base_align_bytes"] % 16,
        "SMEM_DENSE": not dense,
        "OOB_NAN": problem.get("oob_fill") == "NAN" and arrays["dtype"] not in FLOATS,
        "ARCH_ATOM": "ATOM" in problem["smem"]["swizzle"],
        "BOX_INNER_16B": contiguous and loops[0][0] * size % 16,
    }
    assert set(broken) == RULES
    return {rule for rule, hit in broken.items() if hit}


# ---------------------------------------------------------------------------------------------- the file


def test_file_schema_and_size() -> None:
    assert set(FILE) == {"schema", "tiles"}
    assert FILE["schema"] == "layoutalg/real-tiles/1"
    assert len(TILES) >= 40
    assert sum(entry["expect"] == "inadmissible" for entry in TILES) >= 6


def test_names_are_unique_and_readable() -> None:
    counts = Counter(entry["name"] for entry in TILES)
    assert [name for name, count in counts.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z][a-z0-9_]+", name) for name in counts)


def test_problems_are_distinct() -> None:
    counts = Counter(json.dumps(entry["problem"], sort_keys=True) for entry in TILES)
    assert max(counts.values()) == 1


@by_name
def test_entry_fields(entry: dict[str, Any]) -> None:
    assert ENTRY_KEYS >= set(entry) >= {"name", "source", "note", "expect", "problem"}
    assert len(entry["source"]) >= 15, "provenance in words"
    assert entry["note"].endswith(".")
    assert entry["expect"] in {"admissible", "inadmissible"}
    assert (entry["expect"] == "inadmissible") == ("rule" in entry)
    assert entry.get("rule", "STRIDE_ALIGN") in RULES
    if "consumer" in entry:
        assert set(entry["consumer"]) == {"instruction", "operand", "major"}
        assert entry["consumer"]["instruction"] == "wgmma"
        assert entry["consumer"]["operand"] in {"A", "B"}
        assert entry["consumer"]["major"] in {"K", "MN"}


@by_name
def test_problem_fields(entry: dict[str, Any]) -> None:
    problem = entry["problem"]
    assert PROBLEM_KEYS <= set(problem) <= PROBLEM_KEYS | OPTIONAL_PROBLEM_KEYS
    assert problem["schema"] == "layoutalg/tensormap-problem/1"
    assert problem["arch"] == "sm_90a"
    assert problem["direction"] in {"load", "store"}
    arrays = problem["global"]
    assert set(arrays) == {"shape", "stride", "dtype", "base_align_bytes"}
    assert arrays["dtype"] in BYTES
    rank = len(arrays["shape"])
    assert len(arrays["stride"]) == len(problem["tile"]) == len(problem["smem"]["modes"]) == rank >= 1
    assert all(is_int(extent) and 1 <= extent <= 2**32 for extent in arrays["shape"])
    assert all(is_int(stride) and 0 <= stride * element_bytes(problem) < 2**40 for stride in arrays["stride"])
    assert all(is_int(extent) and extent >= 1 for extent in problem["tile"])
    assert set(problem["smem"]) == {"modes", "swizzle"}
    assert problem["smem"]["swizzle"] in SWIZZLES
    assert problem.get("oob_fill", "ZERO") in {"ZERO", "NAN"}
    offset = problem.get("base_elem_offset", 0)
    assert is_int(offset)
    assert offset >= 0
    for key, top in (("bounds", arrays["shape"]), ("element_strides", arrays["shape"])):
        values = problem.get(key, top)
        assert len(values) == rank
        assert all(is_int(value) and 1 <= value <= limit for value, limit in zip(values, top, strict=True))


@by_name
def test_tile_meets_its_shared_memory_layout(entry: dict[str, Any]) -> None:
    problem = entry["problem"]
    size = element_bytes(problem)
    for extent, dimension in zip(problem["tile"], problem["smem"]["modes"], strict=True):
        assert all(is_int(count) and is_int(stride) and count >= 1 and stride >= 1 for count, stride in dimension)
        assert prod(count for count, _ in dimension) == extent
    offsets = smem_element_offsets(problem["smem"]["modes"])
    assert offsets.size == prod(problem["tile"])
    assert np.unique(offsets).size == offsets.size, "two tile elements share one place"
    placed = swizzle(offsets * size, problem["smem"]["swizzle"])
    assert np.unique(placed).size == placed.size
    assert (int(offsets.max()) + 1) * size <= SMEM_CAP_BYTES
    assert int(placed.max()) + size <= SMEM_CAP_BYTES


@by_name
def test_verdict_agrees_with_a_direct_reading_of_the_rules(entry: dict[str, Any]) -> None:
    expected = {entry["rule"]} if entry["expect"] == "inadmissible" else set()
    assert findings(entry["problem"]) == expected


@pytest.mark.parametrize("entry", [e for e in TILES if "consumer" in e], ids=lambda e: e["name"])
def test_consumer_reads_a_two_dimensional_operand(entry: dict[str, Any]) -> None:
    """wgmma operands: two spanned tile dimensions, the last one along K or along MN, in whole instruction steps."""
    problem, consumer = entry["problem"], entry["consumer"]
    size = element_bytes(problem)
    spanned = [extent for extent in problem["tile"] if extent > 1]
    assert len(spanned) == 2
    assert problem["tile"][-1] > 1
    outer, inner = spanned
    k, mn = (inner, outer) if consumer["major"] == "K" else (outer, inner)
    assert k * size % 32 == 0, "one instruction reads 256 bits along K"
    assert mn % (64 if consumer["operand"] == "A" else 8) == 0
    assert mn <= 512
    assert problem["direction"] == "load"
    if consumer["major"] == "MN":
        assert size == 2, "only 16-bit operands can be MN-major"
    # column blocks one swizzle span wide (16 bytes without swizzle), rows one span apart: a canonical wgmma layout
    width = SPAN_BYTES.get(problem["smem"]["swizzle"], 16) // size
    rows, columns = (modes for modes in problem["smem"]["modes"] if prod(count for count, _ in modes) > 1)
    assert rows == [[outer, width]]
    assert columns == [[width, 1], [inner // width, width * outer]][: 1 if inner == width else 2]


# ---------------------------------------------------------------------------------------------- coverage


def ragged(entry: dict[str, Any]) -> bool:
    problem = entry["problem"]
    shape = problem.get("bounds", problem["global"]["shape"])
    return any(extent % tile for extent, tile in zip(shape, problem["tile"], strict=True))


def foldable_rank6(entry: dict[str, Any]) -> bool:
    arrays = entry["problem"]["global"]
    dense = [prod(arrays["shape"][d + 1 :]) for d in range(len(arrays["shape"]))]
    return len(arrays["shape"]) == 6 and arrays["stride"] == dense


def overlapping(entry: dict[str, Any]) -> bool:
    arrays = entry["problem"]["global"]
    pairs = sorted(zip(arrays["stride"], arrays["shape"], strict=True))
    return any(0 < outer < inner * count and extent > 1 for (inner, count), (outer, extent) in pairwise(pairs))


def mentions(text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda entry: text in (entry["name"] + " " + entry["source"] + " " + entry["note"]).lower()


def option(key: str) -> Callable[[dict[str, Any]], bool]:
    return lambda entry: key in entry["problem"]


def head_dim(columns: int) -> Callable[[dict[str, Any]], bool]:
    return lambda entry: entry["name"].startswith(("attn_", "store_fa3")) and entry["problem"]["tile"][-1] == columns


CATEGORIES: dict[str, tuple[int, Callable[[dict[str, Any]], bool]]] = {
    "gemm operands": (12, lambda e: e["name"].startswith("gemm_")),
    "attention": (12, lambda e: e["name"].startswith("attn_")),
    "paged cache": (5, lambda e: e["name"].startswith("paged_")),
    "latent attention": (5, lambda e: e["name"].startswith("mla_")),
    "mixture of experts": (5, lambda e: e["name"].startswith("moe_")),
    "convolution": (4, lambda e: e["name"].startswith("conv")),
    "images": (3, lambda e: e["name"].startswith("image_")),
    "llama 3": (4, mentions("llama")),
    "qwen": (4, mentions("qwen")),
    "deepseek v3": (4, mentions("deepseek-v3")),
    "mixtral": (2, mentions("mixtral")),
    "stores": (6, lambda e: e["problem"]["direction"] == "store"),
    "unswizzled stores": (
        2,
        lambda e: e["problem"]["direction"] == "store" and e["problem"]["smem"]["swizzle"] == "NONE",
    ),
    "fp8": (10, lambda e: e["problem"]["global"]["dtype"] == "u8" and mentions("fp8")(e)),
    "f32": (4, lambda e: e["problem"]["global"]["dtype"] == "f32"),
    "s32": (2, lambda e: e["problem"]["global"]["dtype"] == "s32"),
    "f16": (3, lambda e: e["problem"]["global"]["dtype"] == "f16"),
    "mn major": (4, lambda e: e.get("consumer", {}).get("major") == "MN"),
    "32-byte swizzle": (1, lambda e: e["problem"]["smem"]["swizzle"] == "32B"),
    "64-byte swizzle": (3, lambda e: e["problem"]["smem"]["swizzle"] == "64B"),
    "several column blocks": (
        8,
        lambda e: e["problem"]["smem"]["swizzle"] != "NONE" and len(e["problem"]["smem"]["modes"][-1]) == 2,
    ),
    "ragged tails": (10, ragged),
    "bounds": (2, option("bounds")),
    "element strides": (2, option("element_strides")),
    "base offsets": (6, option("base_elem_offset")),
    "nan fill allowed": (1, lambda e: e["expect"] == "admissible" and e["problem"].get("oob_fill") == "NAN"),
    "overlapping windows": (1, overlapping),
    "broadcast": (2, lambda e: 0 in e["problem"]["global"]["stride"]),
    "extent one": (3, lambda e: 1 in e["problem"]["global"]["shape"]),
    "box larger than the tensor": (
        3,
        lambda e: any(t > n for t, n in zip(e["problem"]["tile"], e["problem"]["global"]["shape"], strict=True)),
    ),
    "more than 256 in one dimension": (
        3,
        lambda e: any(n > 256 for n in e["problem"]["tile"]) and e["problem"]["smem"]["swizzle"] != "64B",
    ),
    "rank 1": (1, lambda e: len(e["problem"]["tile"]) == 1),
    "rank 4": (10, lambda e: len(e["problem"]["tile"]) == 4),
    "rank 5": (2, lambda e: len(e["problem"]["tile"]) == 5),
    "rank 6 that folds": (2, foldable_rank6),
    **{f"head dim {d}": (1, head_dim(d)) for d in (64, 96, 128, 192, 256)},
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_category_is_covered(category: str) -> None:
    least, holds = CATEGORIES[category]
    assert sum(holds(entry) for entry in TILES) >= least


@pytest.mark.parametrize("extent", [4097, 128256, 151936, 32000, 129280])
def test_ragged_extent_is_covered(extent: int) -> None:
    def extents(entry: dict[str, Any]) -> Iterator[tuple[int, int]]:
        problem = entry["problem"]
        yield from zip(problem.get("bounds", problem["global"]["shape"]), problem["tile"], strict=True)

    assert any(count == extent and count % tile for entry in TILES for count, tile in extents(entry))


@pytest.mark.parametrize("page", [16, 64])
def test_pages_are_covered(page: int) -> None:
    hits = [e for e in TILES if e["name"].startswith("paged_") and page in e["problem"]["tile"]]
    assert any(len(e["problem"]["tile"]) == 4 for e in hits)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_refusal_rule_is_covered(rule: str) -> None:
    assert any(entry.get("rule") == rule for entry in TILES)


# ------------------------------------------------------------------------------------- the judges themselves


def test_swizzle_matches_its_definition_bit_by_bit() -> None:
    pairs = {"32B": [(4, 7)], "64B": [(4, 7), (5, 8)], "128B": [(4, 7), (5, 8), (6, 9)]}
    addresses = np.arange(4096, dtype=np.int64)
    for mode, bits in pairs.items():
        expected = addresses.copy()
        for low, high in bits:
            expected ^= ((addresses >> high) & 1) << low
        assert np.array_equal(swizzle(addresses, mode), expected)


def test_offsets_follow_the_contract_example() -> None:
    offsets = smem_element_offsets([[[4, 2]], [[2, 1], [3, 8]]]).reshape(4, 6)
    assert offsets[3].tolist() == [6, 7, 14, 15, 22, 23]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_direct_reading_notices_each_rule(rule: str) -> None:
    # breaking one rule at a time in a clean problem must be noticed, and nothing else reported
    problem: dict[str, Any] = {
        "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        "tile": [64, 64],
        "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "NONE"},
    }
    assert findings(problem) == set()
    if rule == "STRIDE_ALIGN":
        problem["global"]["stride"] = [516, 1]
    elif rule == "INNER_CONTIGUOUS":
        problem["global"]["stride"] = [1, 1024]
    elif rule == "BASE_ALIGN":
        problem["base_elem_offset"] = 4
    elif rule == "SMEM_DENSE":
        problem["smem"]["modes"] = [[[64, 72]], [[64, 1]]]
    elif rule == "OOB_NAN":
        problem["global"]["dtype"], problem["oob_fill"] = "s32", "NAN"
    elif rule == "ARCH_ATOM":
        problem["smem"]["swizzle"] = "128B_ATOM_32B"
    else:
        problem["tile"], problem["smem"]["modes"] = [64, 4], [[[64, 4]], [[4, 1]]]
    assert findings(problem) == {rule}
