"""Matrix instructions on the CPU: the models against published tables, and our fragments through the models."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.fragment_product import fragment_kernel, fragment_text, parameters
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.matrix_calls import MatrixCall, callable_instructions, matrix_call
from layoutalg.codegen.portable import portable_prelude
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.targets.registry import lookup

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
ARCHS = ("sm_90a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
TABLES = Path(__file__).parents[1] / "data" / "amd_matrix_fragments.json"
BYTES = {"f16": 2, "bf16": 2, "s8": 1, "u8": 1, "f32": 4, "s32": 4}


@functools.cache
def unit(arch: str) -> tuple[list[MatrixCall], KernelSource]:
    """Every callable instruction of a target in one text: ``which`` says which of them runs.

    Through our fragments, or with 100 more on words as they come, lane after lane.
    """
    calls = [matrix_call(arch, name) for name in callable_instructions(arch)]
    text = portable_prelude(arch) + "".join(call.text for call in calls)
    cases = []
    for number, call in enumerate(calls):
        text += fragment_text(call, f"k{number}")
        casts = ", ".join(f"({kind}){name}" for kind, name in parameters(call))
        cases.append(f"    if (which == {number}) k{number}({casts});\n    if (which == {100 + number}) {{\n")
        for side, to, many in zip("abc", "xyz", call.words, strict=True):
            cases.append(f"        la_u32 {to}[{many}];\n")
            cases.append(f"        for (int i = 0; i < {many}; ++i) {to}[i] = {side}[{many} * threadIdx.x + i];\n")
        last = call.words[2]
        cases.append(f"        {call.name}(z, x, y, z);\n")
        cases.append(f"        for (int i = 0; i < {last}; ++i) d[{last} * threadIdx.x + i] = z[i];\n    }}\n")
    head = "int which, const la_u32* a, const la_u32* b, const la_u32* c, la_u32* d"
    text += f'extern "C" __global__ void all({head})\n{{\n{"".join(cases)}}}\n'
    params = (("int", "which"), *((f"{'const ' * (name != 'd')}la_u32*", name) for name in "abcd"))
    return calls, KernelSource("all", text, arch, lookup(arch).lanes, 0, params)


def encoded(kind: str, values: np.ndarray) -> np.ndarray:
    """The elements' bits, as unsigned integers."""
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    numpy_type = {"f16": "f2", "f32": "f4", "s8": "i1", "u8": "u1", "s32": "i4"}[kind]
    return values.astype(numpy_type).view(f"u{BYTES[kind]}")


def decoded(kind: str, raw: np.ndarray) -> np.ndarray:
    if kind == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.view({"f16": "f2", "f32": "f4", "s32": "i4"}[kind])


def operands(call: MatrixCall, seed: int) -> list[np.ndarray]:
    """A (matrix, m, k), B (matrix, k, n) and C (matrix, m, n): small integers, so that every sum is exact."""
    rng = np.random.default_rng(seed)
    m, n, k, many = call.shape
    limits = {"s8": (-128, 128), "u8": (0, 256)}
    low, high = zip(*(limits.get(kind, (-3, 4)) for kind in call.types), strict=True)
    shapes = ((many, m, k), (many, k, n), (many, m, n))
    return [rng.integers(low[i], high[i], shape) for i, shape in enumerate(shapes)]


@needs_compiler
@pytest.mark.parametrize("arch", ARCHS)
def test_fragments_through_every_instruction(arch):
    """Our tables say what each lane loads and stores; the model, written from the manuals, says what it means."""
    calls, kernel = unit(arch)
    assert len(calls) >= 5
    for number, call in enumerate(calls):
        a, b, c = operands(call, number)
        given = [encoded(call.types[0], a), encoded(call.types[1], np.ascontiguousarray(b.swapaxes(1, 2)))]
        given.append(encoded(call.types[2], c))
        found = np.zeros_like(given[2])
        assert hostsim.FAULTS[hostsim.run(kernel, [number, *given, found])] == "none", call
        assert (decoded(call.types[2], found) == a @ b + c).all(), call


def published() -> dict[tuple[str, str], dict[str, np.ndarray]]:
    document = json.loads(TABLES.read_text(encoding="utf-8"))
    found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for arch, name, operand, table in document["cases"]:
        found.setdefault((arch, name), {})[operand] = np.array(document["tables"][table])
    return found


def manual(call: MatrixCall, operand: str) -> np.ndarray:
    """[lane][element] -> first index + extent * second, by the equations of the PTX manual."""
    m, n, k, _ = call.shape
    bits = 8 * BYTES[call.types["ABD".index(operand)]]
    table = []
    for lane in range(32):
        group, q = divmod(lane, 4)
        row = []
        if operand == "D":
            row = [(group + 8 * (i >= 2)) + m * (2 * q + (i & 1)) for i in range(m * n // 32)]
        elif operand == "A" and bits == 16:
            row = [group + 8 * ((i >> 1) & 1) + m * (2 * q + (i & 1) + 8 * (i >= 4)) for i in range(m * k // 32)]
        elif operand == "A":
            second = [(4 <= i < 8 or i >= 12) and m == 16 for i in range(m * k // 32)]
            row = [group + 8 * second[i] + m * (4 * q + (i & 3) + 16 * (i >= 8)) for i in range(m * k // 32)]
        elif bits == 16:
            row = [2 * q + (i & 1) + 8 * (i >= 2) + k * group for i in range(n * k // 32)]
        else:
            row = [4 * q + (i & 3) + 16 * (i >= 4) + k * group for i in range(n * k // 32)]
        table.append(row)
    return np.array(table)


def laid(call: MatrixCall, side: int, table: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """The words of all lanes that hold elements by a table; a result of 16 bits may have a register for each."""
    raw = encoded(call.types[side], flat)[table]
    if raw.shape[1] == call.words[side]:
        return np.ascontiguousarray(raw.astype(np.uint32))
    return np.ascontiguousarray(raw).view(np.uint32)


@needs_compiler
@pytest.mark.parametrize("arch", ["sm_90a", "gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_models_are_those_that_the_vendors_publish(arch):
    """Words in and words out by AMD's calculator and by the equations of PTX; no table of ours takes part."""
    calls, kernel = unit(arch)
    tables = published()
    ran = 0
    for number, call in enumerate(calls):
        by = tables.get((arch, call.instruction.partition(".")[2]))
        if arch == "sm_90a":
            by = {operand: manual(call, operand) for operand in "ABD"}
        if by is None:
            continue
        a, b, c = operands(call, 100 + number)
        # flat position: first index + extent * (second index + extent * matrix)
        flat = [np.ascontiguousarray(values.transpose(0, 2, 1)).reshape(-1) for values in (a, b, c)]
        given = [laid(call, side, by["ABD"[side]], flat[side]) for side in range(3)]
        found = np.zeros_like(given[2])
        assert hostsim.FAULTS[hostsim.run(kernel, [100 + number, *given, found])] == "none", call
        wanted = np.ascontiguousarray((a @ b + c).transpose(0, 2, 1)).reshape(-1)
        assert (found == laid(call, 2, by["D"], wanted)).all(), call
        ran += 1
    assert ran >= 5


@needs_compiler
def test_copies_of_an_operand_must_agree():
    calls, kernel = unit("gfx1100")
    call = calls[0]
    given = [np.zeros((32, many), np.uint32) for many in call.words]
    assert hostsim.run(kernel, [100, *given, np.zeros_like(given[2])]) == 0
    given[1][20, 3] = 1
    assert "copies" in hostsim.FAULTS[hostsim.run(kernel, [100, *given, np.zeros_like(given[2])])]


@needs_compiler
@pytest.mark.parametrize(("kind", "bits"), [("f16", 5), ("bf16", 8)])
def test_results_of_16_bits_are_rounded_to_nearest_even(kind, bits):
    """D = C with zero operands: every value of 16 bits comes back, and sums in between are rounded."""
    calls, kernel = unit("gfx1201")
    number, call = next((i, call) for i, call in enumerate(calls) if call.types[2] == kind)
    every = np.arange(2**16, dtype=np.uint32)
    exponent = every >> (15 - bits) & ((1 << bits) - 1)
    every = every[exponent != (1 << bits) - 1].astype(np.uint16)  # neither infinite nor a NaN
    zero = [np.zeros((32, many), np.uint32) for many in call.words[:2]]
    for part in np.resize(every, (-(-len(every) // 256), 256))[:: 1 if kind == "f16" else 3]:
        c = np.ascontiguousarray(part).view(np.uint32)
        found = np.zeros_like(c)
        assert hostsim.run(kernel, [100 + number, *zero, c, found]) == 0
        assert (decoded(kind, found.view(np.uint16)) == decoded(kind, part)).all()


@needs_compiler
def test_a_warp_that_is_not_whole_multiplies_nothing():
    calls, kernel = unit("sm_90a")
    given = [np.zeros((32, many), np.uint32) for many in (*calls[0].words, calls[0].words[2])]
    fewer = KernelSource(kernel.name, kernel.text, kernel.arch, 31, 0, kernel.parameters)
    assert "misses a lane" in hostsim.FAULTS[hostsim.run(fewer, [100, *given])]


def test_texts_read_well_and_wide_fragments_are_vectors():
    text = fragment_kernel("gfx950", "mfma.v_mfma_f32_16x16x32_bf16").text
    assert "const la_words4 a0 = *(const la_words4*)(a + a_first + 0);" in text
    assert "const la_u32 a_first = (t & 15) * 32 + (t >> 4 & 3) * 8;" in text
    text = fragment_kernel("gfx1100", "wmma.v_wmma_f32_16x16x16_f16").text
    assert "const la_u32 a_first = (t & 15) * 16;" in text


def test_what_is_no_instruction_is_refused():
    for arch, name in (("gfx942", "mfma.v_mfma_f32_16x16x32_f16"), ("gfx950", 7), ("sm_80", "wgmma"), ("sm_90a", "")):
        with pytest.raises(MalformedError, match="LA965"):
            matrix_call(arch, name)
    for arch, name in (("gfx942", "mfma.v_mfma_f64_16x16x4_f64"), ("sm_90a", "mma.m16n8k8.f32.tf32")):
        with pytest.raises(RepresentabilityError, match="LA966"):
            fragment_kernel(arch, name)
    with pytest.raises(MalformedError, match="LA340"):
        matrix_call("gfx9", "x")
    with pytest.raises(MalformedError, match="LA506"):
        fragment_kernel("gfx942", "mfma.v_mfma_f32_16x16x16_f16", "no name")
    with pytest.raises(MalformedError, match="LA965"):
        matrix_call("gfx942", "mfma.v_mfma_f32_16x16x16_f16").fragment("E")
