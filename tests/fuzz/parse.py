"""``la.parse``: every notation."""

from __future__ import annotations

from fuzz.drive import contract, text_of

import layoutalg as la
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
]

LIMIT = 1.5 * limits.ISL_SECONDS  # the usual time of a question to ISL


def target(data: bytes) -> None:
    contract(la.parse, str, text_of(data))
