"""``la.explain`` of whole kernels in TTGIR."""

from __future__ import annotations

import json

from fuzz.drive import refused, text_of

import layoutalg as la
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError

_HEAD = b"""#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [0, 1]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#mem = #ttg.shared_memory
#p = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [8, 32]}>
#q = #ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#l = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], \
[16, 0]], warp = [[32, 0], [64, 0]], block = []}>
module attributes {ttg.target = "cuda:100"} {
tt.func @f(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32) {
%c = arith.constant 8 : i32
%0 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #b}>>
%1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x32xi32, #b>
%2 = tt.broadcast %1 : tensor<1x32xi32, #b> -> tensor<8x32xi32, #b>
%3 = tt.splat %p : !tt.ptr<f16> -> tensor<8x32x!tt.ptr<f16>, #b>
%4 = tt.addptr %3, %2 : tensor<8x32x!tt.ptr<f16>, #b>, tensor<8x32xi32, #b>
"""
_LINES = (
    b"%5 = tt.load %4, %m : tensor<8x32x!tt.ptr<f16>, #b>",
    b"%5 = ttg.convert_layout %4 : tensor<8x32xf16, #b> -> tensor<8x32xf16, #c>",
    b"%5 = ttg.local_alloc %4 : (tensor<8x32xf16, #c>) -> !ttg.memdesc<8x32xf16, #s, #mem>",
    b"%5 = ttg.local_alloc : () -> !ttg.memdesc<2x8x32xf16, #p, #mem, mutable>",
    b"%5 = ttg.convert_layout %4 : tensor<8x32xf16, #b> -> tensor<8x32xf16, #q>",
    b"%5 = ttg.async_copy_global_to_local %4, %6 : tensor<8x32x!tt.ptr<f16>, #b> -> <8x32xf16, #s, #mem, mutable>",
    b"%5 = tt.trans %4 {order = array<i32: 1, 0>} : tensor<8x32xf32, #b> -> tensor<32x8xf32, #c>",
    b"%5 = tt.reshape %4 : tensor<8x32xf32, #b> -> tensor<16x16xf32, #c>",
    b"%5 = tt.gather %4[%3] {axis = 1 : i32} : (tensor<8x32xf32, #b>, tensor<8x32xi32, #b>) ",
    b'%5 = "tt.reduce"(%4) <{axis = 1 : i32}> ({\n}) : (tensor<8x32xf32, #b>) -> tensor<8xf32, #b>',
    b"ttng.async_tma_copy_local_to_global %o[%c] %4 : !tt.tensordesc<8x32xf16, #s>, !ttg.memdesc<8x32xf16, #s, #mem>",
    b"%5 = ttng.warp_group_dot %4, %3, %2 : !ttg.memdesc<64x64xf16, #s, #mem> * !ttg.memdesc<64x64xf16, #s, #mem>",
    b"%5 = tt.dot %4, %3, %2 : tensor<8x32xf16, #b> * tensor<32x8xf16, #b> -> tensor<8x8xf32, #b>",
    b"%5 = scf.for %i = %c to %n step %c iter_args(%q = %4) -> (tensor<8x32x!tt.ptr<f16>, #b>) : i32 {\n"
    b"%6 = tt.load %q : tensor<8x32x!tt.ptr<f16>, #b>\nscf.yield %q : i32\n}",
    b"%5 = tt.atomic_rmw fadd, acq_rel, gpu, %4, %3, %2 : (tensor<8x32x!tt.ptr<f16>, #b>, tensor<8x32xf16, #b>)",
    b'%5 = "tt.scan"(%4) <{axis = 1 : i32, reverse = false}> ({\n}) : (tensor<8x32xf32, #b>) -> tensor<8x32xf32, #b>',
    b"%5 = tt.histogram %2 : tensor<8x32xi32, #b> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>",
    b"%5 = arith.cmpi slt, %2, %2 : tensor<8x32xi32, #b>\n%6 = tt.load %4, %5 : tensor<8x32x!tt.ptr<f16>, #b>",
    b"ttng.async_tma_gather %p[%2, %n] %3, %4, %m : !tt.tensordesc<1x32xf16, #s>, !ttg.memdesc<8x32xf16, #s, #mem>",
    b"ttng.async_tma_reduce add, %p[%n, %n] %3 : !tt.tensordesc<8x32xf16, #s>, !ttg.memdesc<8x32xf16, #s, #mem>",
    b"%5 = ttng.tmem_load %3 : !ttg.memdesc<128x32xf32, #t, #ttng.tensor_memory> -> tensor<128x32xf32, #l>",
    b"%5 = amdg.buffer_load %p[%2], %m, %3 : !tt.ptr<f16> -> tensor<8x32xf16, #b>",
    b"%5 = tt.make_tensor_ptr %p, [%n, %n], [%n, %c], [%c, %c] {order = array<i32: 1, 0>} : <tensor<8x32xf16, #b>>\n"
    b"%6 = tt.load %5 : !tt.ptr<tensor<8x32xf16, #b>>",
)
SEEDS = [_HEAD + line + b"\n}\n}" for line in _LINES]
LIMIT = 6.0  # each text has 5 seconds, and searches for repairs take what is left of theirs
WORDS = [
    "tt.load",
    "tt.store",
    "8x32",
    "#b",
    "#c",
    "#s",
    "%4",
    "%p",
    "dense<",
    "arith.muli",
    " -> ",
    "!tt.ptr<",
    "-1",
    "0",
]


def target(data: bytes) -> None:
    try:
        with clock.within(5):
            found = la.explain(text_of(data))
    except LayoutError as error:
        refused(error)
        return
    assert str(found)
    json.dumps(found.to_json(), allow_nan=False)
