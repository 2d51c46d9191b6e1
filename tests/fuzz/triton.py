"""Triton's attributes, Gluon's constructors and bases."""

from __future__ import annotations

from fuzz.drive import contract, json_of, refused, text_of

from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.interop import triton

SEEDS = [
    b"#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>",
    b"#blocked = #ttg.generic_linear<{register = [[0, 1], [0, 3]], lane = [], warp = [[1, 1]], block = []}>",
    b"#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>",
    b"SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)",
    b"gl.DistributedLinearLayout(reg_bases=[[0, 1]], lane_bases=[[1, 0]], warp_bases=[], block_bases=[], shape=[2, 2])",
    b"_TensorMemoryLinearLayout(rows=[[1, 0]], cols=[[0, 1]], shape=[2, 2])",
    b'[["lane", [[1, 0], [0, 1]]], ["register", []]]', b'{"lane": [[1], [2], [4]]}',
]  # fmt: skip
WORDS = [
    "linear<{",
    "shared_linear<{",
    "}>",
    "[[",
    "]]",
    "lane = ",
    "register = ",
    "alignment = ",
    "shape=",
    "rows=",
    "None",
]


def again(read, write, text):
    """What was read is written in the same notation, or Triton cannot hold it; sizes are not part of an attribute."""
    try:
        value = read(text)
    except LayoutError as error:
        refused(error)
        return
    try:
        written = write(value)
    except RepresentabilityError as error:
        refused(error)
        return
    assert read(written) == value, written


def target(data: bytes) -> None:
    text = text_of(data)
    again(triton.from_attribute, triton.to_attribute, text)
    again(triton.from_gluon, triton.to_gluon, text)
    bases = json_of(data)
    for names in (["dim0"], ["dim0", "dim1"], {"dim0": 8}, bases):
        try:
            value = triton.from_bases(bases, names)
        except LayoutError as error:
            refused(error)
            continue
        try:
            triton.to_bases(value)
        except RepresentabilityError as error:
            refused(error)
            continue
        contract(lambda pair: triton.from_bases(*pair), triton.to_bases, (bases, names))
