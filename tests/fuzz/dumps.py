"""Texts that show a tensor map: dumps of every tool, arrays, calls of the driver; and printed tiled copies and MMAs."""

from __future__ import annotations

from fuzz.drive import contract, refused, text_of

import layoutalg as la
from layoutalg.ground.errors import LayoutError
from layoutalg.notation.printout import TILED_AHEAD
from layoutalg.targets.dumps import is_dump
from layoutalg.targets.nvidia import tensormap

RAW = tensormap.encode(
    tensormap.TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=0x7F0000001000)
)


def words(size: int, order: str) -> list[int]:
    return [int.from_bytes(RAW[at : at + size], order) for at in range(0, 128, size)]


def rows(step: int, row: str) -> str:
    return "\n".join(row.format(at, RAW[at : at + step].hex(" "), RAW[at : at + step]) for at in range(0, 128, step))


CALL = """cuuint64_t dims[2] = {512, 1024}, strides[1] = {512 * 2}; // innermost first
cuuint32_t box[] = {64, 64}, steps[2] = {1, 1};
CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void*)0x1000, dims, strides, box, steps,
    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, 0);"""
COPY = """TiledCopy
  Tiler_MN:       (_32,_16)
  TiledLayout_TV: ((_4,_8,_2,_4),((_2,_2,_2),(_1,_1))):((_64,_1,_16,_0),((_32,_8,_256),(_0,_0)))
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_1):(_0,_0)
  ValLayoutDst: (_1,_1):(_0,_0)
  ValLayoutRef: (_1,_1):(_0,_0)
  ValueType:    16b"""
MMA = """tiled_mma: Tiled MMA
  Thr Layout VMNK: (128,1,2,1):(1,0,128,0)
  Permutation MNK: (_,(8,32,2):(1,16,8),_)
MMA Atom
  ThrID:           128:1
  Shape MNK:       (64,256,16)
  TV Layout A:     (128,(64,16)):(0,(1,64))
  TV Layout B:     (128,(256,16)):(0,(1,256))
  TV Layout C:     ((4,8,4),(2,2,32)):((128,1,16),(64,8,512))"""
SEEDS = [
    text.encode()
    for text in (
        RAW.hex(), RAW.hex(":", 4), "0x" + RAW.hex("_", 8), RAW[:64].hex(" ", 2), repr(RAW),
        rows(16, "{0:08x}: {1}  ................"), rows(16, "{0:08x}  {1}  |................|") + "\n00000080",
        rows(16, "{0:07x} {1}").partition("\n0000060")[0] + "\n*\n0000080\n", rows(8, "{0:07o} {1}"),
        "\n".join(f"0x7ffe{16 * n:04x} <map+{16 * n}>:\t{a:#018x}\t{b:#018x}" for n, (a, b) in
                  enumerate(zip(words(8, "little")[::2], words(8, "little")[1::2], strict=True))),
        "(gdb) x/32wx &map\n" + "\n".join(
            f"0x{16 * n:x}: " + " ".join(f"{w:#010x}" for w in words(4, "little")[4 * n : 4 * n + 4]) for n in range(8)
        ),
        f"uint32_t map[] = {{{', '.join(map(hex, words(4, 'big')))}}};",
        "$1 = {opaque = {" + ", ".join(map(hex, words(8, "little")[:10])) + ", 0x0 <repeats 6 times>}}",
        "// a map\nalignas(64) static const unsigned char m[128] = {" + ", ".join(map(str, RAW)) + ",};",
        CALL, COPY, MMA,
    )
]  # fmt: skip
WORDS = ["0x", "{", "}", "*\n", "<repeats 8 times>", "uint64_t ", "ull", "//", "/*", "*/", "  |", "\n00000080", "g",
         "b'", "\\x00", "(_4,_8)", "_:_", "cuTensorMapEncodeTiled(", "CU_TENSOR_MAP_SWIZZLE_64B", "(void*)", "1 << 40",
         "TiledMMA\n", "ThrID: ", "PermutationMNK: (_,_,_)", "ValLayoutRef: (32,1):(0,1)"]  # fmt: skip


def bytes_of(text: str) -> bytes:
    return tensormap.read_map(text, sizes=(128, 64)).raw


def target(data: bytes) -> None:
    text = text_of(data)
    assert is_dump(text) in (True, False)
    if TILED_AHEAD.match(text):
        contract(la.parse, str, text)
    else:
        contract(bytes_of, bytes.hex, text)
    for ask in (tensormap.diagnose, la.explain):
        try:
            str(ask(text))
        except LayoutError as error:
            refused(error)
