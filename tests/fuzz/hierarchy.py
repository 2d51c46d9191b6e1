"""The notation of hierarchical layouts."""

from __future__ import annotations

from fuzz.drive import contract, text_of

from layoutalg.ground.errors import RepresentabilityError
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.notation import parse_hierarchical

SEEDS = [
    b"lane 4:1, register 2:4 -> lane:4, register:2", b"col 4:1, row (2,3):(4^1,8) ^ (4) -> x:24",
    b"[a:2, b:3] (3,2):(2,1) -> x:6", b"[x:3] table 1,2,0 -> x:3", b"x 8:1 -> x_in:4, x_out:2 | x<5", b"x 6:-1 -> x:6",
    b"[] 1:0 -> []", b"[x:4] (2,2):(2,1) -> y:4 | y<3", b"x 6:1 -> x:6 | z<2 and w<3 where (3,2):(2,1) -> z:2, w:3",
    b"register (2,2):(1,8), lane (4,2):(2,16) ^ (1) -> row:4, col:8",
]  # fmt: skip
WORDS = ["->", "table ", " | ", " where ", " and ", "<", "^", "...", "[]", "(2,2):(2,1)", "lane ", "register ", "warp "]


def written(layout: HierarchicalLayout) -> str:
    return str(layout)


def target(data: bytes) -> None:
    try:
        contract(parse_hierarchical, written, text_of(data))
    except RepresentabilityError as error:  # a long table is abbreviated, and says so
        assert error.diagnostic.code == "LA762"
