"""Layout families against Triton: stored answers always, a live comparison where Triton is installed."""

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from layoutalg.errors import LayoutError
from layoutalg.f2 import LinearLayout
from layoutalg.interop import triton as interop
from layoutalg.targets.layouts import amd, blocked, nvidia, shared, tmem

STORED = json.loads((Path(__file__).parents[1] / "data" / "triton_families.json").read_text())["cases"]
WORKER = Path(__file__).with_name("triton_families.py")
CONSTRUCTORS = {
    "blocked": blocked.blocked,
    "blocked_operand": blocked.blocked_operand,
    "mma_accumulator": nvidia.mma_accumulator,
    "mma_operand": nvidia.mma_operand,
    "wgmma_accumulator": nvidia.wgmma_accumulator,
    "wgmma_operand": nvidia.wgmma_operand,
    "mfma_accumulator": amd.mfma_accumulator,
    "mfma_operand": amd.mfma_operand,
    "wmma_accumulator": amd.wmma_accumulator,
    "wmma_operand": amd.wmma_operand,
    "swizzled_shared": shared.swizzled_shared,
    "nvmma_shared": shared.nvmma_shared,
    "tensor_memory": tmem.tensor_memory,
}
FAMILIES = (*CONSTRUCTORS, "slice_of", "tmem_registers")


def build(family, args):
    if family == "slice_of":
        return blocked.slice_of(blocked.blocked(**args["parent"]), args["dim"])
    if family == "tmem_registers":
        return tmem.tmem_registers(**{**args, "memory": tmem.tensor_memory(**args["memory"])})
    return CONSTRUCTORS[family](**args)


def differences(cases):
    """Return what does not agree, in full."""
    found = []
    for case in cases:
        try:
            layout = build(case["family"], case["args"])
        except LayoutError as error:
            if not case.get("refused"):
                found.append((case, str(error)))
            continue
        bases = {axis: [list(image) for image in images] for axis, images in layout.bases.items()}
        if "block" not in case.get("bases", {}):
            # Triton prints tensor memory without its blocks
            bases.pop("block")
        if case.get("refused") or bases != case["bases"] or list(layout.out_dims.values()) != case["shape"]:
            found.append((case, str(layout)))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_stored_answers(family):
    cases = [case for case in STORED if case["family"] == family]
    assert len(cases) == 75
    assert differences(cases) == []


def test_the_comparison_sees_a_single_changed_bit():
    changed = 0
    for family in CONSTRUCTORS:
        cases = [case for case in STORED if case["family"] == family]
        case = json.loads(json.dumps(next(case for case in cases if "[1" in str(case["bases"]))))
        image = next(image for images in case["bases"].values() for image in images if any(image))
        image[next(index for index, part in enumerate(image) if part)] ^= 1
        assert len(differences([case])) == 1
        changed += 1
    assert changed == 13


def test_stored_answers_read_back_through_the_text_forms():
    kinds = Counter()
    for case in STORED:
        axes = set(case.get("bases", {}))
        if not axes or "row" in axes:
            continue
        layout = build(case["family"], case["args"])
        if not layout.is_surjective:
            continue
        kinds["offset" in axes] += 1
        if layout.out_bits:
            assert interop.from_attribute(interop.to_attribute(layout), case["shape"]) == layout
        assert interop.from_gluon(interop.to_gluon(layout), case["shape"]) == layout
    assert kinds[True] > 100
    assert kinds[False] > 500


@pytest.mark.peer
def test_live_answers():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    command = [sys.executable, str(WORKER), "9", "25"]
    cases = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    assert {case["family"] for case in cases} == set(FAMILIES)
    assert differences(cases) == []


LIVE_OBJECTS = """
import json, sys
from triton.tools import LinearLayout as Theirs
from layoutalg.f2 import LinearLayout
from layoutalg.interop.triton import from_object, to_object
for bases, dims in json.load(sys.stdin):
    ours = LinearLayout.from_bases(bases, dims)
    live = to_object(ours, Theirs)
    assert from_object(live) == ours
    for index in range(ours.size):
        coords, rest = {}, index
        for axis, bits in ours.inputs:
            coords[axis], rest = rest & ((1 << bits) - 1), rest >> bits
        assert live.apply(coords) == ours.apply(coords)
print("equal")
"""


@pytest.mark.peer
def test_live_objects():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    layouts = [
        LinearLayout.from_bases({"a": [(1, 0), (3, 1), (0, 1)], "b": [(0, 0)]}, {"x": 4, "y": 2}),
        nvidia.mma_accumulator((32, 16), (2, 1)),
        shared.nvmma_shared((8, 64), 128, 16),
        amd.wmma_operand("A", (16, 16), 1, [], 16),
    ]
    text = json.dumps([interop.to_bases(layout) for layout in layouts])
    done = subprocess.run([sys.executable, "-c", LIVE_OBJECTS], input=text, capture_output=True, text=True, timeout=300)
    assert done.stdout == "equal\n", done.stderr
