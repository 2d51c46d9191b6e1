"""Wrong arguments to every public function of the F2 part: refused by name, never by accident and never accepted.

Each function has one valid call; one argument at a time is replaced by values that its kind does not allow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from layoutalg import f2
from layoutalg.f2 import LinearLayout, SolutionSet, Subspace
from layoutalg.ground.errors import LayoutError

HUGE = 10**5000
"""More digits than Python prints."""
LONG = 1 << 14000
"""A power of two beyond the widest axis."""


class Silent:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


NEVER: list[Any] = [True, 1.5, math.nan, Silent(), object, np.array(1.5), (None,), {1}, range(1 << 70)]
"""No kind accepts any of these."""
BAD: dict[str, list[Any]] = {
    "layout": [*NEVER, None, 3, "lane", ()],
    "size": [None, *(SIZES := [*NEVER, "4", 0, -1, 3, HUGE, LONG, np.int64(3), np.uint8(0), [2]])],
    "size or None": SIZES,
    "index": [*NEVER, None, "", -1, 99, HUGE, np.int64(-1)],
    "name": [*NEVER, None, 0, "", "nowhere", b"lane", ["lane"]],
    "new name": [*NEVER, 0, "", "no name", b"lane", "1st", ["lane"], "\ud800"],
    "names": [*NEVER, 0, "nowhere", {"lane": 1}, ("lane", "lane"), ["nowhere"], itertools.repeat("lane")],
    "point": [*NEVER, None, "lane", {"nowhere": 1}, *({"x": value} for value in (-1, 8, HUGE, 1.0, True, None))],
    "dims": [*NEVER, None, 4, "nowhere", *({"x": size} for size in (3, 0, 2.0, True, LONG, HUGE)), {"no name": 2},
             [("x", 2), ("x", 2)], [("x",)], ["x"]],
    "shape": [*NEVER, None, 4, "nowhere", {"nowhere": 1}, *({"row": size} for size in (3, 0, 2.0, True, LONG))],
    "bases": [*NEVER, None, 4, "nowhere", {"i": 1}, {"i": "ab"}, {"i": [1]}, {"i": [{"row": 1}]},
              *({"i": [image]} for image in ((1,), (1, 0, 0), (-1, 0), (0.5, 0), (True, 0), (None, 0), (HUGE, 0))),
              {"no name": []}, [("i", []), ("i", [])], [("i",)]],
    "offset": [*NEVER, 1, "nowhere", {"nowhere": 1}, (1,), (-1, 0), (0, True), (0.5, 0), {"row": -1}, {"row": HUGE}],
    "objective": [*NEVER, None, 0, "", "cheapest", ["nowhere"], {"lane"}, {"lane": 1}, ("lane", "lane")],
    "flag": [1, 0, None, "yes", np.bool_(True), 1.0],
    "axes": [*NEVER, None, "x", [("x", 3)], *((axis,) for axis in (("x", -1), (1, 1), ("x", True), ("x", 3, 1), "x")),
             (("x", 1), ("x", 1)), (("x", 10**30),), (("no name", 1),)],
    "packed": [*NEVER, None, 3, "x", [3, 5], (True,), (-1,), (0,), (HUGE,), (5, 3), (3, 3), (9,), (1.0,)],
    "vectors": [None, 3, "x", {"x": 3}, [8], [-1], [1.5], [True], [None], [{"x": 8}], [{"y": 1}], [HUGE]],
    "renames": [*NEVER, None, 3, *({"lane": name} for name in ("no name", None, 1, "register")), {"nowhere": "x"}],
    "text": [*NEVER, None, 3, "", "F2[", "F2[i=(1) -> o:3]", "F2[i=(2) -> o:2]", f"F2[i=({'9' * 5000}) -> o:2]"],
    "subspace": [*NEVER, None, 3, (), Subspace.spanned((("y", 3),), [1])],
}  # fmt: skip

A = LinearLayout.from_bases({"register": [(1, 0), (2, 0)], "lane": [(0, 1), (0, 2)]}, {"row": 4, "col": 4}, (1, 0))
LINE = LinearLayout.from_bases({"register": [(1,), (2,)], "lane": [(4,)]}, {"offset": 8})
BOTH = LinearLayout.identity({"lane": 4, "warp": 2})
OUT = LinearLayout.identity({"register": 2, "lane": 2})
THIN = LinearLayout.from_bases({"lane": [(1, 0)], "one": []}, {"row": 2, "unit": 1})
X = LinearLayout.from_bases({"x": [(1,), (2,), (3,)]}, {"o": 4})
CTA = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,)]}, {"row": 4})
CGA = LinearLayout.from_bases({"block": [(1,)]}, {"row": 2})
PART = LinearLayout.from_bases({"i": [(1,)]}, {"o": 2})
PLANE = Subspace.spanned((("x", 3),), [3, 5])
SWAP = LinearLayout.from_bases({"register": [(2,), (1,)]}, {"register": 4})
FOUND = f2.solve(LinearLayout.from_bases({"lane": [(1,)], "warp": [(1,)]}, {"o": 2}), PART)
PAIR = f2.identity_1d(2, "register", "offset")

# the function, the valid arguments by name, the kind of each
CALLS: list[tuple[Callable[..., object], dict[str, tuple[str, Any]]]] = [
    (
        LinearLayout.from_bases,
        {"bases": ("bases", {"i": [(1, 0), (0, 1)]}), "out_dims": ("dims", {"row": 2, "col": 2})},
    ),
    (
        LinearLayout.from_bases,
        {"bases": ("", {"i": [(1, 0)]}), "out_dims": ("", {"row": 2, "col": 2}), "offset": ("offset", {"row": 1})},
    ),
    (LinearLayout.identity, {"dims": ("dims", {"i": 4})}),
    (f2.identity_1d, {"size": ("size", 4), "in_dim": ("new name", "i"), "out_dim": ("new name", "o")}),
    (
        f2.strided_1d,
        {"size": ("size", 4), "stride": ("size", 2), "in_dim": ("new name", "i"), "out_dim": ("new name", "o")},
    ),
    (
        f2.zeros_1d,
        {"size": ("size", 4), "in_dim": ("new name", "i"), "out_dim": ("new name", "o"), "out_size": ("size", 2)},
    ),
    (f2.from_bases_minimal, {"bases": ("bases", {"i": [(1, 0), (0, 1)]}), "out_names": ("", ("row", "col"))}),
    (
        f2.from_bases_minimal,
        {
            "bases": ("", {"i": [(1, 0), (0, 1)]}),
            "out_names": ("", ("row", "col")),
            "offset": ("offset", {"row": 0}),
            "require_surjective": ("flag", True),
        },
    ),
    (f2.direct_sum, {"inner": ("layout", LINE), "outer": ("layout", LINE)}),
    (f2.divide_left, {"layout": ("layout", LINE), "tile": ("layout", PAIR)}),
    (f2.divide_right, {"layout": ("layout", LINE), "tile": ("layout", f2.identity_1d(2, "lane", "offset"))}),
    (f2.is_trivial_over, {"layout": ("layout", BOTH), "names": ("names", "warp")}),
    (f2.is_identity_on, {"layout": ("layout", BOTH), "name": ("name", "warp")}),
    (f2.quotient, {"layout": ("layout", BOTH), "names": ("names", ("warp",))}),
    (f2.repetitions, {"layout": ("layout", LINE), "tile": ("layout", PAIR)}),
    (f2.num_consecutive, {"layout": ("layout", LINE)}),
    (f2.right_inverse, {"layout": ("layout", BOTH), "objective": ("objective", "local")}),
    (f2.left_inverse, {"layout": ("layout", BOTH)}),
    (f2.free_variable_masks, {"layout": ("layout", X)}),
    (f2.parse_linear, {"text": ("text", "F2[i=(1) -> o:2]")}),
    (f2.xor_in, {"layout": ("layout", X), "offset": ("point", {"x": 1})}),
    (f2.xor_out, {"layout": ("layout", f2.rename_outs(X, {"o": "x"})), "offset": ("point", {"x": 1})}),
    (f2.fix_in, {"layout": ("layout", X), "point": ("point", {"x": 1})}),
    (f2.flip_in, {"layout": ("layout", A), "names": ("names", "lane")}),
    (f2.flip_out, {"layout": ("layout", BOTH), "names": ("names", ("lane",))}),
    (f2.slice_in, {"layout": ("layout", A), "name": ("name", "lane"), "start": ("index", 2), "size": ("size", 2)}),
    (f2.reshape_ins, {"layout": ("layout", A), "dims": ("dims", {"x": 16})}),
    (f2.reshape_outs, {"layout": ("layout", A), "dims": ("dims", [("x", 8), ("y", 2)])}),
    (f2.flatten_ins, {"layout": ("layout", A), "name": ("new name", "x")}),
    (f2.flatten_outs, {"layout": ("layout", A), "name": ("new name", "x")}),
    (f2.transpose_ins, {"layout": ("layout", A), "names": ("names", ("lane", "register"))}),
    (f2.transpose_outs, {"layout": ("layout", BOTH), "names": ("names", ("warp", "lane"))}),
    (f2.rename_ins, {"layout": ("layout", A), "names": ("renames", {"lane": "x"})}),
    (f2.rename_outs, {"layout": ("layout", OUT), "names": ("renames", {"register": "x", "lane": "register"})}),
    (f2.squeeze_ins, {"layout": ("layout", THIN), "names": ("names", ("one",))}),
    (f2.squeeze_outs, {"layout": ("layout", THIN), "names": ("names", ("unit",))}),
    (f2.concat_ins, {"left": ("layout", PART), "right": ("layout", f2.rename_ins(PART, {"i": "j"}))}),
    (f2.concat_outs, {"left": ("layout", PART), "right": ("layout", f2.rename_outs(PART, {"o": "p"}))}),
    (f2.sublayout, {"layout": ("layout", BOTH), "ins": ("names", ("lane",)), "outs": ("names", ("lane",))}),
    (f2.sublayout_is_zero, {"layout": ("layout", BOTH), "ins": ("names", ("lane",)), "outs": ("names", ("lane",))}),
    (f2.resize_in, {"layout": ("layout", A), "name": ("name", "lane"), "size": ("size", 2)}),
    (f2.broadcast_in, {"layout": ("layout", A), "name": ("name", "lane"), "size": ("size", 8)}),
    (f2.resize_out, {"layout": ("layout", A), "name": ("name", "row"), "size": ("size", 8)}),
    (f2.mask_out, {"layout": ("layout", A), "name": ("name", "row"), "size": ("size", 2)}),
    (f2.zero_out, {"layout": ("layout", A), "name": ("name", "row"), "size": ("size", 2)}),
    (f2.remove_zero_bases, {"layout": ("layout", A), "name": ("name", "lane")}),
    (
        f2.ensure_not_larger,
        {
            "layout": ("layout", A),
            "shape": ("shape", {"row": 2}),
            "broadcast": ("flag", False),
            "register": ("name", "register"),
        },
    ),
    (f2.ensure_not_smaller, {"layout": ("layout", A), "shape": ("shape", {"row": 8}), "name": ("new name", "lane")}),
    (f2.ensure_not_smaller, {"layout": ("layout", A), "shape": ("", {"row": 2}), "name": ("new name", "lane")}),
    (f2.combine_cta_cga, {"cta": ("layout", CTA), "cga": ("layout", CGA), "shape": ("shape", {"row": 16})}),
    (f2.solve, {"outer": ("layout", X), "target": ("layout", PART)}),
    (f2.solve_outer, {"inner": ("layout", X), "target": ("layout", X)}),
    (f2.invert_and_compose, {"target": ("layout", PART), "outer": ("layout", X), "objective": ("objective", "local")}),
    (f2.preimages, {"layout": ("layout", f2.rename_outs(X, {"o": "x"})), "point": ("point", {"x": 1})}),
    (f2.minimal_conversion, {"source": ("layout", BOTH), "destination": ("layout", BOTH)}),
    (SolutionSet, {"particular": ("layout", FOUND.particular), "kernel": ("packed", FOUND.kernel)}),
    (FOUND.contains, {"candidate": ("layout", FOUND.particular)}),
    (FOUND.choose, {"objective": ("objective", ("lane",))}),
    (Subspace, {"axes": ("axes", (("x", 3),)), "basis": ("packed", (3, 5))}),
    (Subspace.spanned, {"axes": ("axes", (("x", 3),)), "vectors": ("vectors", [{"x": 3}, 5])}),
    (PLANE.contains, {"point": ("point", {"x": 3})}),
    (PLANE.coordinates, {"point": ("point", {"x": 3})}),
    *(
        (method, {"other": ("subspace", PLANE)})
        for method in (PLANE.includes, PLANE.intersection, PLANE.sum, PLANE.common_complement)
    ),
    (PLANE.image, {"layout": ("layout", X)}),
    (PLANE.preimage, {"layout": ("layout", LinearLayout.from_bases({"i": [(1,)]}, {"x": 8}))}),
    (PLANE.as_layout, {"name": ("new name", "i")}),
    (f2.kernel_of, {"layout": ("layout", X)}),
    (f2.image_of, {"layout": ("layout", X)}),
    (f2.map_in, {"layout": ("layout", A), "inner": ("layout", SWAP)}),
    (
        f2.permutation_for_divide,
        {
            "layout": ("layout", LINE),
            "tile": ("layout", PAIR),
            "left": ("flag", True),
            "register": ("name", "register"),
        },
    ),
    (f2.drop_broadcast, {"layout": ("layout", A), "axis": ("name", "register")}),
    (
        f2.largest_vectorisation,
        {
            "layout": ("layout", LINE),
            "element_bits": ("size", 32),
            "register": ("name", "register"),
            "offset": ("name", "offset"),
        },
    ),
    (f2.largest_vectorisation, {"layout": ("", LINE), "element_bits": ("", 32), "max_elements": ("size or None", 4)}),
    (f2.additive_strides, {"layout": ("layout", LINE), "register": ("name", "register")}),
    (
        f2.conflict_degree,
        {"access": ("layout", LINE), "element_bits": ("size", 32), "banks": ("size", 32), "bank_bits": ("size", 32)},
    ),
    (
        f2.bank_conflict,
        {"access": ("layout", LINE), "element_bits": ("size", 32), "banks": ("size", 32), "bank_bits": ("size", 32)},
    ),
    (X.apply, {"coords": ("point", {"x": 1})}),
    (LINE.at, {"index": ("index", 1)}),
    (PART.then, {"outer": ("layout", LinearLayout.identity({"o": 2}))}),
]


@pytest.mark.parametrize(("call", "arguments"), CALLS, ids=lambda value: getattr(value, "__qualname__", ""))
def test_one_wrong_argument_is_refused_by_name(
    call: Callable[..., object], arguments: dict[str, tuple[str, Any]]
) -> None:
    valid = {name: value for name, (_, value) in arguments.items()}
    call(**valid)
    for name, (kind, _) in arguments.items():
        for bad in BAD.get(kind, ()):
            with pytest.raises(LayoutError) as caught:
                call(**{**valid, name: bad})
            diagnostic = caught.value.diagnostic
            assert diagnostic.because
            # the reader of text says the place in the text
            if call is not f2.parse_linear and diagnostic.code not in ("LA192", "LA204"):  # the two values, the axis
                assert name in " ".join((*diagnostic.where, diagnostic.because)), str(caught.value)
                assert diagnostic.witness
            assert str(caught.value)


def test_no_function_is_missed() -> None:
    tried = {getattr(call, "__self__", call) for call, _ in CALLS} | {call for call, _ in CALLS}
    functions = {getattr(f2, name) for name in f2.__all__} - {f2.empty}
    assert functions <= tried


def test_no_axis_grows_beyond_what_can_be_printed() -> None:
    half = f2.zeros_1d(2, "i", "o", 1 << 7000)
    for call in (
        lambda: half * half,
        lambda: half * f2.rename_ins(half, {"i": "j"}),
        lambda: f2.flatten_outs(half * f2.rename_outs(half, {"o": "p"})),
        lambda: f2.ensure_not_smaller(half, {"o": 1 << 14000}),
        lambda: f2.strided_1d(1 << 7000, 1 << 7000, "i", "o"),
    ):
        with pytest.raises(LayoutError, match="at most 13000 bits"):
            call()
    assert f2.parse_linear(str(half)) == half


def test_objectives_have_an_order() -> None:
    with pytest.raises(LayoutError, match="must be ordered"):
        FOUND.choose({"lane", "warp"})  # type: ignore[arg-type]
