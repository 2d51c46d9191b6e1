"""Exports read back: C++ compiled and run, patch lists run on the bytes, PTX compiled to machine code."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from layoutalg.codegen import EXPORT_FORMS, export
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.exports import EXPORT_RULES, patches
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia.tensormap import TensorMap, encode, violations

ROOT = Path(__file__).parents[2]
STUB = ROOT / "tests" / "data" / "stub"
EXAMPLE = json.loads((ROOT / "tests/data/examples/problem.json").read_text(encoding="utf-8"))
PLAN = synthesize_tensormap(EXAMPLE)
OPERANDS = [
    synthesize_wgmma(canonical_operand(operand, shape, major=major, dtype="bf16"))
    for operand, major, shape in itertools.product("AB", ("K", "MN"), ((128, 64), (64, 128)))
]


def random_map(random: random.Random) -> TensorMap:
    """A map that the driver accepts, of any rank, type and pattern of sm_90a."""
    while True:
        rank = random.randint(1, 5)
        swizzle = random.choice(("NONE", "32B", "64B", "128B"))
        dtype, size = random.choice(
            (("u8", 1), ("u16", 2), ("s32", 4), ("f16", 2), ("bf16", 2), ("f32", 4), ("f64", 8), ("f32_ftz", 4),
             ("tf32", 4), ("tf32_ftz", 4), ("u64", 8))
        )  # fmt: skip
        box = [16 // size * random.choice((1, 2, 4))] + [random.choice((1, 2, 4, 8)) for _ in range(rank - 1)]
        tm = TensorMap(
            dtype,
            tuple(random.choice((64, 100, 4096, 2**32)) for _ in range(rank)),
            tuple(16 * random.choice((4, 77, 2**20, 2**33 + 5)) for _ in range(rank - 1)),
            tuple(box),
            tuple(random.choice((1, 1, 1, 2, 7)) for _ in range(rank)),
            interleave=random.choice(("NONE", "NONE", "16B")),
            swizzle=swizzle,
            l2_promotion=random.choice(("NONE", "NONE", "NONE", "256B")),
            oob_fill=random.choice(("ZERO", "NAN")),
            base_address=16 * random.randrange(2**40),
        )
        if not violations(tm, evidence="enforced"):
            return tm


TYPES = {8: (8, None), 9: (9, None), 10: (10, None), 11: (7, 1), 12: (8, 1)}


def patched(raw: bytes, text: str) -> bytes:
    """Run the instructions of a text on 128 bytes, by the machine code that ptxas makes of them."""
    words = list(struct.unpack("<32I", raw))

    def put(word: int, low: int, width: int, value: int) -> None:
        assert 0 <= value < 1 << width
        words[word] = words[word] & ~(((1 << width) - 1) << low) | value << low

    form = r"tensormap\.replace\.tile\.(\w+)\.global\.b1024\.b(32|64) \[map\], (?:(\d), )?(\w+);"
    lines = [line for line in text.splitlines() if line and not line.startswith("//")]
    for line in lines:
        field, width, ordinal, number = re.fullmatch(form, line).groups()
        mode, value = int(ordinal or 0), int(number, 0)
        assert (width == "64") == (field in ("global_address", "global_stride"))
        if field == "global_address":
            put(0, 0, 32, value & 0xFFFFFFFF)
            put(1, 0, 32, value >> 32)
        elif field == "global_stride":
            assert value % 16 == 0
            put(3 + mode, 0, 32, value >> 4 & 0xFFFFFFFF)
            put(7, 4 * mode, 4, value >> 36)
        elif field == "global_dim":
            put(8 + mode, 0, 32, value - 1)
        elif field == "element_stride":
            put(13, 3 * mode, 3, value - 1)
        elif field == "box_dim":
            put(*((13, 24) if mode == 0 else (14, 8 * mode - 8)), 8, value - 1)
        elif field == "elemtype":
            number_there, rounds = TYPES.get(value, (value, None))
            put(2, 7, 4, number_there)
            if rounds is not None:
                put(2, 16, 1, rounds)
        else:
            put(
                2,
                *{"rank": (4, 3), "interleave_layout": (11, 2), "swizzle_mode": (13, 2), "fill_mode": (15, 1)}[field],
                value,
            )
    return struct.pack("<32I", *words)


def changed(random: random.Random, tm: TensorMap) -> TensorMap:
    """Another map, often near the first."""
    if random.random() < 0.3:
        return random_map(random)
    other = random_map(random)
    names = ("dims", "strides_bytes", "element_strides", "base_address", "oob_fill")
    fields: dict[str, object] = {}
    for name in names:
        value = getattr(other, name)
        if random.random() < 0.5 and (not isinstance(value, tuple) or len(value) == len(getattr(tm, name))):
            fields[name] = value
    found = replace(tm, **fields)
    return tm if violations(found, evidence="enforced") else found


def test_a_patch_list_leads_to_the_bytes():
    chance, done, refused = random.Random(7), 0, set()
    while done < 300:
        base = random_map(chance)
        wanted = changed(chance, base)
        try:
            text = export(wanted, "ptx", base=base)
        except RepresentabilityError as error:
            assert error.diagnostic.code == "LA894"
            refused.update(error.diagnostic.where)
            # no list leads there: the bits that differ belong to no field, or to one that cannot be cleared
            a, b = encode(base), encode(wanted)
            stuck = (a[10] ^ b[10]) & 0b110 or (a[10] & ~b[10] & 1) or a[64:] != b[64:]
            assert stuck
            continue
        assert patched(encode(base), text) == encode(wanted)
        count = len(patches(base, wanted))
        assert count == sum(line.startswith("tensormap") for line in text.splitlines())
        done += 1
    assert refused == {"PTX_L2_PROMOTION", "PTX_TF32", "PTX_BOX_BYTES"}


def test_the_map_of_a_plan_as_a_base():
    far = TensorMap(
        **{**{n: getattr(PLAN.tensor_map, n) for n in TensorMap.__dataclass_fields__}, "base_address": 4096}
    )
    assert patched(PLAN.raw, export(far, "ptx", base=PLAN)) == encode(far)
    assert patches(far, far) == ()


@pytest.mark.compile
def test_fragments_compile():
    chance, lines = random.Random(3), set()
    while len(lines) < 120:
        base = random_map(chance)
        try:
            lines |= {patch.text() for patch in patches(base, changed(chance, base))}
        except RepresentabilityError:
            continue
    body = "\n".join(f"{line}\\n" for line in ["{.reg .b64 map;", "mov.b64 map, %0;", *sorted(lines), "}"])
    quoted = "".join(f'"{line}"\n' for line in body.splitlines())
    operand = export(OPERANDS[0], "ptx")
    code = [line.split("//")[0].strip() for line in operand.splitlines() if not line.startswith("//")]
    code = ["{.reg .b64 tile;", "mov.b64 tile, %1;", *code, "st.global.b64 [%0], descriptor1;", "}"]
    second = "".join(f'"{line}\\n"\n' for line in code)
    text = (
        'extern "C" __global__ void patch(unsigned long long map, unsigned long long tile) {\n'
        f'asm volatile({quoted} :: "l"(map) : "memory");\n'
        f'asm volatile({second} :: "l"(map), "l"(tile) : "memory");\n}}\n'
    )
    assert to_cubin(text)[:4] == b"\x7fELF"


def test_constants_of_ptx():
    text = export(PLAN, "ptx", name="weights")
    numbers = re.search(r"\.b8 weights\[128\] = \{(.*)\};", text)[1]
    assert bytes(map(int, numbers.split(", "))) == PLAN.raw
    for plan in OPERANDS:
        found = re.findall(r"mov\.b64 descriptor(\d+), (0x[0-9a-f]{16});  // row (\d+), K (\d+)", export(plan, "ptx"))
        assert [int(number) for number, *_ in found] == list(range(len(plan.tiles)))
        assert [(int(bits, 16), int(row), int(k)) for _, bits, row, k in found] == [
            (tile.encoded, tile.mn, tile.k) for tile in plan.tiles
        ]


def test_headers_hold_the_bytes_and_the_steps(tmp_path):
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on the PATH")
    chance = random.Random(5)
    maps = [random_map(chance) for _ in range(20)]
    headers = [export(tm, "cpp", f"map{i}") for i, tm in enumerate(maps)] + [export(PLAN, "cpp", "plan")]
    headers += [export(plan, "cpp", f"operand{i}") for i, plan in enumerate(OPERANDS)]
    for i, header in enumerate(headers):
        (tmp_path / f"h{i}.h").write_text(header, encoding="utf-8")
    names = [f"map{i}" for i in range(len(maps))] + ["plan"]
    body = [f'for (unsigned char b : {name}_bytes.bytes) std::printf("%02x", b);\nstd::puts("");' for name in names]
    for i in range(len(OPERANDS)):
        body.append(
            f'for (unsigned long long d : operand{i}::table) std::printf("%llu ", d);\n'
            f'std::printf("%d %llu\\n", operand{i}::transpose, operand{i}::align_bytes);'
        )
    text = "".join(f'#include "h{i}.h"\n' for i in range(len(headers)))
    text += "#include <cstdio>\nint main() {\n" + "\n".join(body) + "\n}\n"
    (tmp_path / "main.cpp").write_text(text, encoding="utf-8")
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-isystem", str(STUB)]
    done = subprocess.run(
        [compiler, *strict, "main.cpp", "-o", "main"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    out = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True, timeout=20).stdout
    assert [bytes.fromhex(line) for line in out.splitlines()[: len(names)]] == [*[encode(tm) for tm in maps], PLAN.raw]
    for line, plan in zip(out.splitlines()[len(names) :], OPERANDS, strict=True):
        assert [int(word) for word in line.split()] == [
            *[tile.encoded for tile in plan.tiles], plan.transpose, plan.align_bytes
        ]  # fmt: skip


def test_what_is_no_export():
    for wrong in ((PLAN, "fortran"), (3, "cpp"), (PLAN, ["cpp"])):
        with pytest.raises(MalformedError, match="LA893"):
            export(*wrong)
    with pytest.raises(MalformedError, match="LA893"):
        export(PLAN, "cpp", base=PLAN)
    with pytest.raises(MalformedError, match="LA893"):
        export(PLAN, "ptx", base=3)
    with pytest.raises(MalformedError, match="LA506"):
        export(PLAN, "cpp", name="1x")
    assert set(EXPORT_FORMS) >= {"cpp", "ptx"}
    assert all(rule.isupper() and says for rule, says in EXPORT_RULES.items())
