"""Layout families against Triton: stored answers always, a live comparison where Triton is installed."""

import json
import pickle
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from instruments.triton_peer import triton_python

import layoutalg
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.interop import triton as interop
from layoutalg.targets.layouts import amd, blocked, nvidia, padding, scales, shared, tile, tmem

DATA = json.loads((Path(__file__).parents[1] / "data" / "triton_families.json").read_text())
STORED = DATA["cases"]
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
    "rotating_shared": shared.rotating_shared,
    "nvmma_shared": shared.nvmma_shared,
    "mfma_scale": scales.mfma_scale,
    "wmma_scale": scales.wmma_scale,
    "mma_scale": scales.mma_scale,
    "tensor_memory_scales": scales.tensor_memory_scales,
    "tensor_memory": tmem.tensor_memory,
}
FAMILIES = (*CONSTRUCTORS, "slice_of", "partitioned_shared", "padded_shared", "cluster_bases", "tmem_registers")


def build(family, args):
    if family == "slice_of":
        return blocked.slice_of(blocked.blocked(**args["parent"]), args["dim"])
    if family == "partitioned_shared":
        return shared.partitioned_shared(**{**args, "piece": shared.swizzled_shared(**args["piece"])})
    if family == "padded_shared":
        return padding.padded_shared(**args).linear
    if family == "cluster_bases":
        one = LinearLayout.from_bases({}, dict.fromkeys(tile.dims(len(args["split"])), 1))
        return blocked.across_blocks(one, blocked.cluster_bases(**args))
    if family == "tmem_registers":
        scaled = "scales" in args
        memory = scales.tensor_memory_scales(**args["scales"]) if scaled else tmem.tensor_memory(**args["memory"])
        return tmem.tmem_registers(memory, args["atom"], args["warps"], args["element_bits"])
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
        sizes = list(layout.out_dims.values())
        if case["family"] == "cluster_bases":
            sizes = []
        if case.get("refused") or bases != case["bases"] or sizes != case["shape"]:
            found.append((case, str(layout)))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_stored_answers(family):
    cases = [case for case in STORED if case["family"] == family]
    assert len(cases) == 32
    assert differences(cases) == []


def test_the_comparison_sees_a_single_changed_bit():
    changed = 0
    for family in CONSTRUCTORS:
        cases = [case for case in STORED if case["family"] == family and not case.get("refused")]
        case = json.loads(json.dumps(next(case for case in cases if "[1" in str(case["bases"]))))
        image = next(image for images in case["bases"].values() for image in images if any(image))
        image[next(index for index, part in enumerate(image) if part)] ^= 1
        assert len(differences([case])) == 1
        changed += 1
    assert changed == len(CONSTRUCTORS) == 18


def ours_alone(family, args):
    """Whether the arguments are ones that only this library takes: padding is wider here than Triton's encoding."""
    bases = args.get("offset_bases", [])
    return family == "padded_shared" and (
        not args["pairs"] or any(isinstance(basis, list) and sum(map(bool, basis)) > 1 for basis in bases)
    )


def accepted(refusals):
    """Return what Triton refuses and this library does not; anything but a LayoutError escapes."""
    found = []
    for family, args in refusals:
        try:
            layout = build(family, args)
        except LayoutError:
            continue
        found.append((family, args, str(layout)))
    return found


def test_stored_refusals():
    assert len(DATA["refusals"]) > 200
    assert {family for family, _ in DATA["refusals"]} == set(FAMILIES)
    assert accepted(DATA["refusals"]) == []


def test_stored_answers_read_back_through_the_text_forms():
    kinds = Counter()
    for case in STORED:
        axes = set(case.get("bases", {}))
        if not axes & {"register", "offset"} or "partition" in axes:
            continue
        layout = build(case["family"], case["args"])
        moving = sum(any(image) for images in layout.bases.values() for image in images)
        if not layout.is_surjective or ("offset" in axes and moving > layout.rank):
            continue
        kinds["offset" in axes] += 1
        if layout.out_bits:
            assert interop.from_attribute(interop.to_attribute(layout), case["shape"]) == layout
        assert interop.from_gluon(interop.to_gluon(layout), case["shape"]) == layout
    assert kinds[True] > 60
    assert kinds[False] > 350


@pytest.mark.peer
def test_live_answers():
    triton_python()
    command = [sys.executable, str(WORKER), "9", "25"]
    cases = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    assert {case["family"] for case in cases} == set(FAMILIES)
    assert differences(cases) == []


@pytest.mark.peer
def test_live_answers_to_changed_arguments():
    """Where Triton refuses, this library refuses; where both answer, they agree."""
    triton_python()
    command = [sys.executable, str(WORKER), "9", "40", "mutants"]
    cases = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    refused = [case for case in cases if case.get("aborted") or case.get("refused")]
    pairs = [(case["family"], case["args"]) for case in refused]
    assert len(pairs) > 400
    assert accepted([pair for pair in pairs if not ours_alone(*pair)]) == []
    both = []
    for case in cases:
        family, args = case["family"], case["args"]
        # a rotating layout that blocks split leaves offsets unused in Triton
        if "bases" in case and not (family == "rotating_shared" and any(map(any, args["cga"]))):
            with suppress(LayoutError):
                build(family, args)
                both.append(case)
    assert len(both) > 250
    assert differences(both) == []


LIVE_TEXTS = """
import json, sys, tempfile
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon import language as gl
context = ir.context()
ir.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)
answers = []
for attribute, constructor, shape in json.load(sys.stdin):
    sizes = "x".join(map(str, shape))
    if "shared" in attribute:
        use = f"%0 = ttg.local_alloc : () -> !ttg.memdesc<{sizes}xf16, #e, #ttg.shared_memory, mutable>"
    else:
        use = f"%0 = arith.constant dense<0.0> : tensor<{sizes}xf16, #e>"
    settings = {"ttg.num-warps": "4 : i32", "ttg.num-ctas": "1 : i32", "ttg.threads-per-warp": "32 : i32"}
    settings = ", ".join(f'"{name}" = {value}' for name, value in settings.items())
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        print(f"#e = {attribute}", f"module attributes {{{settings}}} {{", sep=chr(10), file=file)
        print(f"tt.func public @f() {{ {use} tt.return }} }}", file=file)
        file.flush()
        printed = ir.parse_mlir_module(file.name, context).str().splitlines()[0]
    shown = ""
    if constructor:
        shown = repr(builder.to_linear_layout(eval(constructor)._to_ir(builder), shape))
    answers.append([printed, shown])
print(json.dumps(answers))
"""


@pytest.mark.peer
def test_live_texts():
    """Triton parses the attribute text and takes the Gluon constructor; what it prints for them is read back."""
    triton_python()
    threads = {"register": [(0, 1)], "lane": [(0, 2), (1, 0), (2, 0), (4, 0), (8, 0)], "warp": [(16, 0), (32, 0)]}
    mixed = {**threads, "lane": [(0, 3), (1, 0), (3, 0), (4, 0), (8, 0)], "warp": [(16, 1), (48, 0)], "block": []}
    layouts = [
        LinearLayout.from_bases({**threads, "block": []}, {"dim0": 64, "dim1": 4}),
        LinearLayout.from_bases(mixed, {"dim0": 64, "dim1": 4}),
        nvidia.mma_accumulator((64, 16), (2, 2)),
        scales.mma_scale("A", (64, 4), (2, 2)),
        shared.nvmma_shared((8, 64), 128, 16),
        shared.swizzled_shared((16, 16), 2, 1, 4, (0, 1)),
    ]
    asked = []
    for layout in layouts:
        attribute = interop.to_attribute(layout)
        constructor = "" if "generic" in attribute else interop.to_gluon(layout)
        asked.append([attribute, constructor, list(layout.out_dims.values())])
    assert [bool(constructor) for _, constructor, _ in asked] == [True, False, True, True, True, True]
    command = [sys.executable, "-c", LIVE_TEXTS]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for layout, (printed, shown) in zip(layouts, json.loads(done.stdout), strict=True):
        assert interop.from_attribute(printed, list(layout.out_dims.values())) == layout
        if shown:
            assert interop.from_gluon(shown, list(layout.out_dims.values())) == layout


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
        for axis, bits in ours.in_axes:
            coords[axis], rest = rest & ((1 << bits) - 1), rest >> bits
        assert live.apply(coords) == ours.apply(coords)
print("equal")
"""


@pytest.mark.peer
def test_live_objects():
    triton_python()
    layouts = [
        LinearLayout.from_bases({"a": [(1, 0), (3, 1), (0, 1)], "b": [(0, 0)]}, {"x": 4, "y": 2}),
        nvidia.mma_accumulator((32, 16), (2, 1)),
        shared.nvmma_shared((8, 64), 128, 16),
        amd.wmma_operand("A", (16, 16), 1, [], 16),
    ]
    text = json.dumps([interop.to_bases(layout) for layout in layouts])
    done = subprocess.run([sys.executable, "-c", LIVE_OBJECTS], input=text, capture_output=True, text=True, timeout=300)
    assert done.stdout == "equal\n", done.stderr


def test_values_survive_text_and_pickle():
    axes = set()
    for case in STORED:
        if case.get("refused"):
            continue
        layout = build(case["family"], case["args"])
        axes |= set(layout.in_dims)
        assert layoutalg.parse(str(layout)) == layout
        assert eval(repr(layout), {"LinearLayout": LinearLayout}) == layout
        assert pickle.loads(pickle.dumps(layout)) == layout
        assert interop.from_bases(*interop.to_bases(layout)) == layout
    assert axes == {"register", "lane", "warp", "block", "offset", "partition", "row", "col"}
