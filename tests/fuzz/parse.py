"""``la.parse``: every notation."""

from __future__ import annotations

from fuzz.drive import contract, text_of

import layoutalg as la
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground import limits

SEEDS = [
    b"(4,8):(1,4)", b"4:1", b"((2,2),8):((1,16),2)", b"Sw<3,4,3>", b"Sw<3,4,3,byte>", b"Sw<3,4,3> o 0 o (64,64):(64,1)",
    b"Sw<2,0,3> o 0 o Sw<1,4,3> o 5 o (8,8):(8,1)", b"(0,3):(1,1)", b"(2,(3,4)):(-1,(0,7))",
    b"F2[lane=(1,0)(0,1) -> dim0:2, dim1:2]", b"F2[i=(2)(1) -> offset:4] ^ (1)",
    b"Z[i:7=(1,2,2), j:2=(0,2,8) -> p%8, q%3, r] + (1,1,0)", b"Z[i:4=(1) -> y]",
    b"lane 4:1, register 2:4 -> lane:4, register:2", b"col 4:1, row (2,3):(4^1,8) ^ (4) -> x:24",
    b"[a:2, b:3] (3,2):(2,1) -> x:6", b"[x:3] table 1,2,0 -> x:3", b"x 8:1 -> x_in:4, x_out:2 | x<5",
    b"{ [i, j] -> [8i + j] : 0 <= i < 4 and 0 <= j < 8 }", b"[N] -> { [i] -> [2i] : 0 <= i < N }",
    b"given N >= 1 [N] -> { [i] -> [i mod 4] : 0 <= i < N }",
    b"#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>",
    b"#ttg.shared_linear<{offset = [[0, 1], [1, 1]]}, alignment = 16>",
    b"Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))", b"(_4,_8):(1@0,_2@1@0)",
    b"tA: Sw<3,4,3>_smem_ptr[16b](0x7f8800000410) o (_8,_64):(_64,_1)", b"ArithTuple(0,0) o (4,8):(1@0,1@1)",
    b"ComposedLayout<Swizzle<3,4,3>,smem_ptr_flag_bits<16>,Layout<Shape<_8,Int<64>>,Stride<C<64>,_1>>>", b"(4)",
    b"tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o (8,64):(64,1)>", b"raw_ptr(0x10: f16, gmem, align<16>) o 4:1",
    b'!cute.memref<f16, smem, align<16>, "((8,1),4,2):((1,0),1024,?{div=16})">', b"(M/4,4):(4,1) where M % 4 == 0",
    b"(?,?{i64 div=8}):(?{i64},1)", b"tensor<64x64xf16, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = "
    b"[1, 1, 1], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 1, 4], order = [2, 1, 0]}>}>>",
    b"#m = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>\n"
    b"tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #m, kWidth = 2}>>",
    b"!ttg.memdesc<32x32xf16, #ttg.amd_wmma<{version = 2, ctaLayout = {warp = [[1, 0]]}}>, #smem, mutable>",
    b"gl.SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)",
    b"[[ T0:0, T0:1]\n[ T1:0, T1:1]]", b"Warp0:\n( 0,0), ( 1,0)\n( 0,1), ( 1,1)",
    b"memref<64x64xf16, strided<[72, 1], offset: 8>, #gpu.address_space<workgroup>>", b"memref<4x8xf32>",
    b"memref<4x8xf16, affine_map<(i, j) -> (i * 8 + (j + 3 * (i floordiv 2)) mod 8)>, 3>",
    b"memref<7xi8, affine_map<(d0) -> (-d0 + (d0 ceildiv 3) * 2 - 1)>>",
    b"memref<8x6xf32, affine_map<(i, j) -> (j floordiv 2, i, j mod 2)>>",
]  # fmt: skip
WORDS = [
    "Sw<",
    " o ",
    "F2[",
    "Z[",
    "->",
    "{ [",
    "] -> [",
    " : ",
    "table ",
    "given ",
    "where ",
    " and ",
    "mod ",
    "%",
    "_",
    "smem_ptr[16b](",
    "?{div=",
    "Shape<_",
    "@0",
    "tensor<",
    "parent = #",
    "ctaLayout = {",
    "T0:",
    "Warp1:",
    "memref<",
    "strided<[",
    " floordiv ",
]

LIMIT = 1.5 * limits.ISL_SECONDS  # the usual time of a question to ISL


def read(text):
    """A symbolic layout stands for its shape and stride: its text does not hold what is assumed."""
    value = la.parse(text)
    return str(value).partition(" where")[0] if isinstance(value, SymbolicLayout) else value


def target(data: bytes) -> None:
    contract(read, str, text_of(data))
