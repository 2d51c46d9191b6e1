"""Exports to MLIR, Gluon and CuTe DSL read back by small readers of their own, and by the systems where they are."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import layoutalg as la
from layoutalg.codegen import EXPORT_FORMS, export
from layoutalg.ground.errors import InfeasibleError, MalformedError, RepresentabilityError
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia.tensormap import DTYPES, TensorMap

ROOT = Path(__file__).parents[2]
PARSED = ROOT / "tests" / "data" / "mlir_texts.json.gz"
TILES = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
PLANS = [synthesize_tensormap(tile["problem"]) for tile in TILES if tile["expect"] == "admissible"]
OPERANDS = [
    synthesize_wgmma(canonical_operand(operand, (64, 64), major=major, dtype=dtype))
    for operand in "AB"
    for major in ("K", "MN")
    for dtype in ("f16", "bf16")
]
MLIR_TYPES = {"ui8": "u8", "ui16": "u16", "ui32": "u32", "ui64": "u64", "i32": "s32", "i64": "s64"}


def written(form: str) -> list[tuple[object, str]]:
    """Each plan that a form holds, with its text; refusals name a rule."""
    found = []
    for plan in PLANS:
        try:
            found.append((plan, export(plan, form)))
        except RepresentabilityError as error:
            assert error.diagnostic.code == "LA894"
            assert error.diagnostic.where[0].isupper()
    return found


def test_mlir_makes_the_map_and_the_issues():
    texts = written("mlir")
    assert len(texts) >= 20
    for plan, text in texts:
        tm, size = plan.tensor_map, DTYPES[plan.tensor_map.dtype].bits // 8
        shape, kind, strides = re.search(
            r"make_\w+\(%tensor: memref<([\dx]+)x(\w+), strided<\[(.*?)\]>>", text
        ).groups()
        assert tuple(map(int, reversed(shape.split("x")))) == tm.dims
        assert MLIR_TYPES.get(kind, kind) == tm.dtype
        inner, *pitches = map(int, reversed(strides.split(", ")))
        assert inner == 1
        assert tuple(pitch * size for pitch in pitches) == tm.strides_bytes
        names = re.search(r"box\[(.*?)\]", text)[1].split(", ")
        constants = dict(re.findall(r"(%\w+) = arith\.constant (-?\d+) : index", text.split("func.func")[1]))
        assert tuple(int(constants[name]) for name in reversed(names)) == tm.box
        fields = re.search(r"swizzle = (\w+), l2promo = (\w+), oob = (\w+), interleave = (\w+)>", text).groups()
        assert fields == (
            "none" if tm.swizzle == "NONE" else f"swizzle_{tm.swizzle.lower()}",
            "none" if tm.l2_promotion == "NONE" else f"l2promo_{tm.l2_promotion.lower()}",
            tm.oob_fill.lower(),
            "none",
        )
        for factor in (0, 1, 3):
            origin = [factor * step for step in plan.problem.origin_multiple]
            if not plan.expresses(origin):
                continue
            values = run(text.split("func.func")[2], origin)
            copies = re.findall(r"nvgpu\.tma\.async\.\w+ .*?%map\[(.*?)\]", text)
            assert tuple(tuple(values[name] for name in names.split(", ")) for names in copies) == plan.coordinates(
                origin
            )
            places = [values[name] for name in re.findall(r"memref\.view %tile\[(%\w+)\]", text)]
            assert places == [issue.smem_offset_bytes for issue in plan.issues]
            if plan.direction == "load":
                assert values["%bytes"] == plan.expect_tx_bytes


def run(body: str, origin: list[int]) -> dict[str, int]:
    """The integers that a function of constants, sums, products and quotients computes."""
    values = {f"%origin{dim}": value for dim, value in enumerate(origin)}
    do = {"addi": int.__add__, "muli": int.__mul__, "floordivsi": int.__floordiv__}
    for line in body.splitlines():
        if found := re.match(r"\s+(%\w+) = arith\.constant (-?\d+) : index", line):
            values[found[1]] = int(found[2])
        elif found := re.match(r"\s+(%\w+) = arith\.(\w+) (%\w+), (%\w+) : index", line):
            values[found[1]] = do[found[2]](values[found[3]], values[found[4]])
    return values


def test_nvvm_multiplies_with_the_descriptors_in_order():
    for plan in OPERANDS:
        text = export(plan, "mlir")
        bits = [int(value) % 2**64 for value in re.findall(r"%bits\d+ = llvm\.mlir\.constant\((-?\d+) : i64\)", text)]
        assert bits == [tile.encoded for tile in plan.tiles]
        is_a = plan.problem.operand == "A"
        layouts = re.findall(r"A \[<(\w+)>, .*?, <(\w+)>\], B \[<\w+>, .*?, <(\w+)>\]", text)
        # the instruction transposes A in columns and B in rows
        transposes = {(a == "col") if is_a else (b == "row") for _, a, b in layouts}
        assert transposes == {bool(plan.transpose)}
        assert {dtype for dtype, *_ in layouts} == {plan.problem.dtype}
    with pytest.raises(InfeasibleError, match="LA896"):
        export(synthesize_wgmma(canonical_operand("A", (128, 64))), "mlir")


def test_what_a_real_mlir_has_parsed():
    """The stored texts went through jaxlib's MLIR; an export that changes must go there again (``mlir_parse.py``)."""
    stored = json.loads(gzip.decompress(PARSED.read_bytes()))
    assert stored == [text for _, text in written("mlir")] + [export(plan, "mlir") for plan in OPERANDS]


def test_gluon_places_every_element():
    texts = written("gluon")
    assert len(texts) >= 8
    for plan, text in texts:
        made: dict[str, object] = {}
        scope = SimpleNamespace(NVMMASharedLayout=lambda **fields: fields)
        exec(text, {"gl": scope, "TensorDescriptor": lambda *_, made=made, **fields: made.update(fields), "base": None})
        problem = plan.problem
        assert (made["shape"], made["strides"], made["block_shape"]) == tuple(
            list(value) for value in (problem.global_shape, problem.global_strides, problem.tile)
        )
        layout = la.parse(re.search(r"gl\.NVMMA\w+\(.*?\)", text)[0], shape=problem.tile)
        addresses = problem.addresses()
        for offset in np.random.default_rng(0).integers(0, addresses.size, 50):
            place = layout(offset=int(offset), block=0)
            place = tuple(place.values()) if isinstance(place, dict) else tuple(place)
            assert addresses[place] == offset * problem.element_bytes
        assert made["padding"] == problem.oob_fill.replace("NAN", "nan").replace("ZERO", "zero")


@pytest.mark.parametrize(("swizzle", "width"), [("NONE", 0), ("32B", 32), ("64B", 64), ("128B", 128)])
def test_gluon_says_the_width_of_every_swizzle(swizzle, width):
    inner = (width or 64) // 2
    text = export(
        la.tensormap(la.Tensor((256, 128)), (64, inner), f"(64,{inner}):({inner},1)", swizzle=swizzle), "gluon"
    )
    assert f"gl.NVMMASharedLayout(swizzle_byte_width={width}, element_bitwidth=16, rank=2)" in text


class Cute:
    """As much of the DSL as the texts use: layouts as tables of offsets."""

    @staticmethod
    def make_layout(shape, stride):
        def table(extent, step):
            if isinstance(extent, int):
                return np.arange(extent) * step
            found = np.zeros(1, dtype=int)
            for n, s in zip(extent, step, strict=True):
                found = (found[None, :] + np.arange(n)[:, None] * s).ravel()
            return found

        axes = [table(n, s) for n, s in zip(shape, stride, strict=True)]
        return sum(axis.reshape([-1 if i == j else 1 for j in range(len(axes))]) for i, axis in enumerate(axes))

    @staticmethod
    def make_swizzle(bits, base, shift):
        return lambda x: x ^ (x >> shift & ((1 << bits) - 1) << base)

    @staticmethod
    def make_composed_layout(outer, offset, inner):
        return outer(inner + offset)


def test_cute_dsl_places_every_element():
    texts = written("cute_dsl")
    assert len(texts) >= 8
    for plan, text in texts:
        scope = {"cute": Cute}
        exec(text.splitlines()[2], scope)
        assert (scope["smem_layout"] * plan.problem.element_bytes == plan.problem.addresses()).all()
        shape, stride = re.search(r"gmem_layout = cute\.make_layout\((\(.*?\)), stride=(\(.*?\))\)", text).groups()
        assert tuple(map(int, re.findall(r"\d+", shape))) == plan.problem.global_shape
        assert tuple(map(int, re.findall(r"\d+", stride))) == plan.problem.global_strides


def test_what_no_form_says():
    tm = TensorMap("f16", (64, 8, 2), (128, 2048), (64, 8, 2), swizzle="128B")
    for change, rule in (
        ({"interleave": "16B", "swizzle": "NONE"}, "NVGPU_INTERLEAVE"),
        ({"element_strides": (1, 2, 1)}, "NVGPU_ELEMENT_STRIDES"),
        ({"box": (32, 8, 2)}, "NVGPU_ROW"),
        ({"dtype": "tf32", "box": (32, 8, 2)}, "NVGPU_DTYPE"),
        ({"base_address": 256}, "NVGPU_OFFSET"),
        ({"swizzle": "128B_ATOM_32B"}, "NVGPU_SWIZZLE"),
    ):
        fields = {name: getattr(tm, name) for name in TensorMap.__dataclass_fields__}
        with pytest.raises(RepresentabilityError, match=rule):
            export(TensorMap(**{**fields, **change}), "mlir")
    for form in ("gluon", "cute_dsl"):
        with pytest.raises(RepresentabilityError, match="KIND"):
            export(OPERANDS[0], form)
        with pytest.raises(MalformedError, match="LA893"):
            export(tm, form)
    assert set(EXPORT_FORMS) == {"cpp", "ptx", "mlir", "gluon", "cute_dsl"}


def asked(variable: str, script: str, values: object) -> list[object]:
    """What a script of the other system says, where an interpreter is named that has it."""
    python = os.environ.get(variable)
    if python is None:
        pytest.skip(f"{variable} names no interpreter that has the system")
    done = subprocess.run(
        [python, str(ROOT / "tests/differential" / script)],
        input=json.dumps(values), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.peer
def test_a_real_mlir_parses_and_verifies():
    texts = [text for _, text in written("mlir")] + [export(plan, "mlir") for plan in OPERANDS]
    assert asked("LAYOUTALG_MLIR_PYTHON", "mlir_parse.py", texts) == [""] * len(texts)
    assert asked("LAYOUTALG_MLIR_PYTHON", "mlir_parse.py", [texts[0].replace("oob = zero", "oob = one")]) != [""]


@pytest.mark.peer
def test_triton_takes_the_descriptor():
    texts = written("gluon")
    given = [[re.search(r"torch\.(\w+)", text)[1], text] for _, text in texts]
    for (plan, _), made in zip(texts, asked("LAYOUTALG_TRITON_PYTHON", "gluon_descriptors.py", given), strict=True):
        assert isinstance(made, list), made
        assert made[2] == list(plan.problem.tile)


@pytest.mark.peer
def test_cute_dsl_takes_the_atom():
    texts = written("cute_dsl")
    given = [[re.search(r"cutlass\.(\w+)", text)[1], text] for _, text in texts]
    for (plan, _), said in zip(texts, asked("LAYOUTALG_CUTE_PYTHON", "cute_dsl_atoms.py", given), strict=True):
        layout = la.parse(said)
        found = np.array([layout(i) for i in range(min(256, layout.size))])
        wanted = plan.problem.addresses().ravel(order="F")[: len(found)] // plan.problem.element_bytes
        assert (found == wanted).all()
