"""Host text: golden, and compiled against a stand-in for the driver's header that prints what it is called with."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutalg.codegen.host import descriptor_table, host_map, map_bytes
from layoutalg.ground.errors import MalformedError
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap import DTYPES, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, TensorMap, encode

ROOT = Path(__file__).parents[2]
STUB = ROOT / "tests" / "data" / "stub"
TILES = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
EXAMPLE = json.loads((ROOT / "tests/data/examples/problem.json").read_text(encoding="utf-8"))
PLAN = synthesize_tensormap(EXAMPLE)
OPERAND = synthesize_wgmma(canonical_operand("A", (128, 64), major="MN", dtype="bf16"))
BASE = 0x7F0000001000


def maps() -> list[TensorMap]:
    """Maps of every name that a field takes, of ranks 1 to 5, and those of real tiles."""
    found = [TensorMap(dtype, (512, 64), (1024,), (64, 8)) for dtype in DTYPES]
    found += [TensorMap("f32", (512,), (), (64,), swizzle=name, base_address=2**40) for name in SWIZZLE_TABLE]
    found += [TensorMap("f16", (64, 8, 2), (128, 2048), (8, 8, 2), (1, 2, 1), interleave=name) for name in INTERLEAVES]
    found += [TensorMap("u8", (64, 8, 2, 2), (64, 512, 4096), (16, 8, 2, 1), l2_promotion=n) for n in L2_PROMOTIONS]
    found += [TensorMap("bf16", (64, 8, 2, 2, 3), (128, 1024, 2**36, 16), (8,) * 5, oob_fill=n) for n in OOB_FILLS]
    plans = [synthesize_tensormap(t["problem"]) for t in TILES[::8] if t["expect"] == "admissible"]
    return found + [plan.tensor_map for plan in plans]


def arguments(tm: TensorMap) -> list[object]:
    """What the driver is to be called with; the enumerators by their place in the header."""
    names = (INTERLEAVES.index(tm.interleave), list(SWIZZLE_TABLE).index(tm.swizzle))
    names += (L2_PROMOTIONS.index(tm.l2_promotion), OOB_FILLS.index(tm.oob_fill))
    lists = [list(values) for values in (tm.dims, tm.strides_bytes, tm.box, tm.element_strides)]
    return [list(DTYPES).index(tm.dtype), BASE + tm.base_address, *lists, *names]


def ran(tmp_path: Path, text: str) -> list[object]:
    """Compile a program strictly and return the JSON values that it prints, one a line."""
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on the PATH")
    source, program = tmp_path / "main.cpp", tmp_path / "main"
    source.write_text(text, encoding="utf-8")
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    done = subprocess.run(
        [compiler, *strict, "-isystem", str(STUB), str(source), "-o", str(program)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    out = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=20).stdout
    return [json.loads(line) for line in out.splitlines()]


def test_the_driver_is_called_with_the_fields_of_the_map(tmp_path):
    wanted = maps()
    functions = [host_map(tm, f"make_{index}") for index, tm in enumerate(wanted)]
    calls = [f"make_{index}(&map, reinterpret_cast<void*>({BASE}ull));" for index in range(len(wanted))]
    body = "\n    ".join(calls)
    found = ran(tmp_path, "\n".join([*functions, "int main() {\n    CUtensorMap map;", f"    {body}", "}", ""]))
    assert found == [arguments(tm) for tm in wanted]


def test_arrays_hold_the_bytes(tmp_path):
    text = f"""#include <cstdio>
#include <initializer_list>
{map_bytes(PLAN, "of_plan")}
{map_bytes(PLAN.tensor_map, "of_map")}
{descriptor_table(OPERAND, "operand_a")}
int main() {{
    for (const unsigned char* bytes : {{of_plan, of_map}}) {{
        for (int i = 0; i < 128; ++i) std::printf("%s%d", i ? ", " : "[", bytes[i]);
        std::printf("]\\n");
    }}
    for (unsigned long long one : operand_a) std::printf("%llu\\n", one);
}}
"""
    first, second, *descriptors = ran(tmp_path, text)
    assert bytes(first) == bytes(second) == PLAN.raw == encode(PLAN.tensor_map)
    assert descriptors == [tile.encoded for tile in OPERAND.tiles]


def test_texts(golden: Callable[[str, str], None]):
    store = synthesize_tensormap(EXAMPLE | {"direction": "store"})
    golden("host/make_map.h", host_map(PLAN))
    golden("host/make_store_map.h", host_map(store, "make_store_map"))
    golden("host/map_bytes.h", map_bytes(PLAN))
    golden("host/descriptors.h", descriptor_table(OPERAND))


@pytest.mark.parametrize("name", ["", "9x", "a b", "x;system(0)", "main", "a\nb", None, 3])
def test_names_that_are_no_identifiers_are_refused(name):
    for write, value in ((host_map, PLAN), (map_bytes, PLAN), (descriptor_table, OPERAND)):
        with pytest.raises(MalformedError, match="LA506"):
            write(value, name)


@pytest.mark.parametrize("value", [None, "plan", EXAMPLE, OPERAND])
def test_what_is_no_map_is_refused(value):
    for write in (host_map, map_bytes):
        with pytest.raises(MalformedError, match="LA503"):
            write(value)
    with pytest.raises(MalformedError, match="LA503"):
        descriptor_table(PLAN)
