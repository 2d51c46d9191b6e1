"""Every public function and method of the CuTe family, called with everything that does not belong there.

An answer is one that the tables name, for a value that the contract allows; everything else is a ``LayoutError``. Only
an operator between a value and something foreign is Python's own TypeError.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg import cute
from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    E,
    Morphism,
    Swizzle,
    make_identity_layout,
    shift,
)
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError


class Rude:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


L = CuteLayout((4, 8), (8, 1))
T = CuteLayout(4, 1)
S = (4, 8)
SWZ = ComposedLayout(Swizzle(2, 0, 2), 0, L)
OFF = shift(L, 5)
IDL = make_identity_layout(S)
SYM = SymbolicLayout(("M", "N"), ("N", 1))
LIN = la.LinearLayout.from_bases({"x": [(1,), (2,)]}, {"y": 4})
INTG = la.IntegerLayout.from_strides({"i": 4}, (3,))
PW = la.parse("{ [i] -> [2i] : 0 <= i < 4 }")
PAR = la.parse("[N] -> { [i] -> [2i] : 0 <= i < N }")
HIER = la.parse("register 2:1, lane 8:2 -> x:16")
FM = Morphism(S, (8, 4), (1, 0))
NM = Morphism((4, (2, 4)), ((2, 4), (4,)), (2, 0, 1))
PM = Morphism((6, 2), (6, 2), (0, 1), (1, 10))

ODD: dict[str, Any] = {
    "text": "(4,8):(1,4)",
    "None": None,
    "float": 2.5,
    "nan": float("nan"),
    "bool": True,
    "np": np.int64(4),
    "list": [4, 8],
    "array": np.arange(4),
    "tuple_text": ("x",),
    "nested_odd": (4, (None, "y")),
    "huge": 2**80,
    "unwritable": 10**5000,
    "unwritable_inside": (4, -(10**5000)),
    "negative": -3,
    "zero": 0,
    "bytes": b"4:1",
    "dict": {},
    "object": object(),
    "rude": Rude(),
    "surrogate": "\ud800",
    "class": CuteLayout,
    "emptytuple": (),
    "cute": L,
    "empty": CuteLayout(0),
    "composed": SWZ,
    "offset": OFF,
    "identity": IDL,
    "symbolic": SYM,
    "linear": LIN,
    "integer": INTG,
    "piecewise": PW,
    "parametric": PAR,
    "hier": HIER,
    "flat_m": FM,
    "nest_m": NM,
    "padded_m": PM,
    "swizzle": Swizzle(2, 0, 2),
    "byte_swizzle": Swizzle(2, 0, 2, "byte"),
    "basis": E(0),
}

# arguments of a call that is right, and per argument what else may stand in its place
FUNCTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    "append": ((L, T, 3), "cute composed offset empty | None cute empty | None np"),
    "blocked_product": ((L, T), "cute composed offset | np zero cute empty"),
    "ceil_div": ((S, 4), "np zero emptytuple | np emptytuple"),
    "coalesce": ((L, (1, 1)), "cute composed offset identity | None np negative zero"),
    "compatible": ((S, S), "np zero emptytuple | np zero emptytuple"),
    "complement": ((T, 16), "cute composed | None np emptytuple"),
    "composition": (
        (L, T),
        "cute composed offset identity swizzle | None np zero cute composed identity swizzle empty",
    ),
    "cosize": ((L,), "cute composed offset empty"),
    "crd2crd": (((1, 2), S, 32), "np zero |  | "),
    "crd2idx": (((1, 2), S, (8, 1)), "np zero |  | None"),
    "depth": ((L,), "np negative zero cute composed offset identity empty emptytuple"),
    "dice": (((1, None), L), "None np zero | cute composed offset"),
    "domain_distribute": ((S, 4), "np | np"),
    "domain_offset": (((1, 2), L), "np zero | cute composed offset"),
    "downcast": ((CuteLayout((4, 8)), 2), "cute composed offset empty | np"),
    "filter": ((L,), "cute composed offset empty"),
    "filter_zeros": ((L,), "cute composed offset empty"),
    "find_isomorphism": ((S, (8, 4)), "np emptytuple | np emptytuple"),
    "flat_divide": ((L, T), "cute composed offset identity empty | None np cute emptytuple"),
    "flat_product": ((L, T), "cute composed offset | None np zero cute empty emptytuple"),
    "flatten": ((L,), "cute composed offset identity empty"),
    "group": ((L, 0, 1), "cute composed offset identity empty | zero | "),
    "idx2crd": ((5, S), "np zero | "),
    "is_tractable": ((L,), "cute empty"),
    "left_inverse": ((L,), "cute"),
    "local_partition": ((L, T, 1), "cute composed offset empty | cute | zero"),
    "local_tile": ((L, (2, 4), (1, 1), None), "cute composed offset | None emptytuple | None zero emptytuple | None"),
    "logical_divide": ((L, T), "cute composed offset identity empty | None np cute emptytuple"),
    "logical_product": ((L, T), "cute composed offset | None np zero cute empty emptytuple"),
    "make_identity_layout": ((S,), "np zero emptytuple"),
    "make_layout": ((L, L), "cute empty | cute empty"),
    "make_layout_like": ((L,), "cute composed offset empty"),
    "make_ordered_layout": ((S, (1, 0)), " | None np negative zero"),
    "max_alignment": ((L,), "cute composed offset"),
    "max_common_layout": ((L, L), "cute | cute"),
    "max_common_vector": ((L, L), "cute | cute"),
    "mutual_refinement": ((S, (8, 4)), "np emptytuple | np emptytuple"),
    "nullspace": ((L,), "cute composed offset"),
    "prepend": ((L, T, 3), "cute composed offset empty | None cute empty | None np"),
    "product_each": ((S,), "np zero emptytuple"),
    "raked_product": ((L, T), "cute composed offset | np zero cute empty"),
    "rank": ((L,), "np negative zero cute composed offset identity empty emptytuple"),
    "recast": ((CuteLayout((4, 8)), 16, 8), "cute composed offset empty | np | np"),
    "replace": ((L, 1, T), "cute composed offset | zero | cute empty"),
    "right_inverse": ((L,), "cute offset identity"),
    "select": ((L, 1, 0), "cute composed offset identity |  | zero"),
    "size": ((L,), "np zero cute composed offset identity empty emptytuple"),
    "slice": (((1, None), L), "None np zero | cute composed offset"),
    "slice_and_offset": (((1, None), L), "None np zero | cute composed offset"),
    "take": ((L, 0, 1), "cute composed offset identity empty | zero | "),
    "thread_value_partition": ((L, CuteLayout((4, 8)), 1, None), "cute composed offset | cute | zero | None cute"),
    "tile_to_shape": ((L, (8, 16), (1, 0)), "cute composed offset |  | None"),
    "tiled_divide": ((L, T), "cute composed offset identity empty | None np cute emptytuple"),
    "tiled_product": ((L, T), "cute composed offset | None np zero cute empty emptytuple"),
    "unflatten": ((L, (0, 0)), "cute composed offset identity | "),
    "upcast": ((CuteLayout((4, 8)), 2), "cute empty | np"),
    "weak_composite": ((FM, Morphism((8, 4), (4, 8), (1, 0))), "flat_m nest_m | flat_m nest_m"),
    "zipped_divide": ((L, T), "cute composed offset identity empty | None np cute emptytuple"),
    "zipped_product": ((L, T), "cute composed offset | None np zero cute empty emptytuple"),
    "make_layout_tv": ((CuteLayout((4, 8), (8, 1)), CuteLayout((2, 2), (2, 1))), "cute | cute"),
    "make_tiled_copy": ((CuteLayout((4, 8), (8, 1)), CuteLayout((1, 4)), None), "cute | cute | None"),
    "CopyAtom": ((CuteLayout((1, 4), (0, 1)), CuteLayout((1, 4), (0, 1)), None), "cute | cute | None cute"),
    "TiledCopy": (
        (CuteLayout((32, 4), (4, 1)), (4, 32), cute.CopyAtom.vector()),
        "cute | None np zero emptytuple cute empty | ",
    ),
    "E": ((0, 1), "np zero | np zero"),
    "Basis": (((((0,), 1),),), "emptytuple"),
    "ComposedLayout": ((Swizzle(2, 0, 2), 0, L), "swizzle | np negative zero | cute composed offset empty"),
    "CoordinateLayout": ((S, (E(0), E(1)), (0, 0)), " |  | None"),
    "CuteLayout": ((S, (8, 1)), " | None"),
    "Morphism": (((6, 2), (6, 2), (0, 1), (1, 10)), " |  |  | None"),
    "shift": ((L, 5), "cute composed offset empty | np negative zero"),
    "Swizzle": ((2, 0, 2, "element"), "zero | np zero | np negative | "),
    "MutualRefinement": (((4,), (4,)), "np emptytuple | np emptytuple"),
    "Tractability": ((L, "tractable", cute.is_tractable(L).morphism), "cute | | flat_m"),
}

METHODS: dict[str, tuple[Any, dict[str, tuple[tuple[Any, ...], str]]]] = {
    "cute": (
        L,
        {
            "at": ((1,), "np zero"),
            "__call__": ((1, 2), "zero | np zero"),
            "apply": ((5,), "np list array zero"),
            "__getitem__": ((0,), "zero"),
            "then": ((CuteLayout(32),), "cute composed offset identity symbolic swizzle"),
            "__matmul__": ((T,), "cute composed identity swizzle empty"),
        },
    ),
    "composed": (
        SWZ,
        {
            "at": ((1,), "np zero"),
            "__call__": ((1, 2), "zero | np zero"),
            "apply": ((5,), "np list array zero"),
            "__getitem__": ((0,), "zero"),
            "then": ((CuteLayout(32),), "cute composed offset swizzle"),
            "__matmul__": ((T,), "cute composed identity swizzle empty"),
            "rebase": ((L,), "cute empty"),
        },
    ),
    "identity": (
        IDL,
        {
            "at": ((1,), "np zero"),
            "__call__": ((1, 2), "zero | np zero"),
            "apply": ((5,), "np list array zero"),
            "__getitem__": ((0,), "zero"),
            "then": ((L,), "cute composed offset"),
            "__matmul__": ((T,), "cute empty"),
        },
    ),
    "swizzle": (
        Swizzle(2, 0, 2),
        {
            "__call__": ((1,), "np list array negative zero"),
            "apply": ((5,), "np list array negative zero"),
            "map": ((np.arange(4),), "array"),
            "then": ((Swizzle(2, 0, 2),), "cute composed offset swizzle empty"),
            "__matmul__": ((T,), "cute composed offset swizzle empty"),
            "matrix_columns": ((3,), "np zero"),
            "raised": ((2,), "np zero"),
            "recast_bytes": ((2,), "np"),
        },
    ),
    "basis": (
        E(0),
        {
            "__add__": ((E(1),), "basis"),
            "__sub__": ((E(1),), "basis"),
            "__mul__": ((2,), "np negative zero"),
            "scale": (((0,),), "emptytuple"),
        },
    ),
    "flat_m": (
        FM,
        {
            "__call__": ((1, 2), "zero | np zero"),
            "at": ((3,), "np zero"),
            "apply": ((5,), "np list array zero"),
            "carry": (((1, 2),), ""),
            "preimage": ((3,), "np zero"),
            "__getitem__": ((0,), "zero"),
            "then": ((Morphism.identity((8, 4)),), ""),
            "__matmul__": ((Morphism.identity((4, 8)),), ""),
            "sum": ((FM,), "flat_m nest_m"),
            "concat": ((Morphism((1,), (8, 4), (None,)),), ""),
            "restrict": (((1,),), "emptytuple"),
            "factorize": (((0, 1),), ""),
            "logical_divide": ((Morphism((4,), (4, 8), (0,)),), ""),
            "logical_product": ((Morphism((), (), ()),), ""),
            "flat_divide": ((Morphism((4,), (4, 8), (0,)),), ""),
            "flat_product": ((Morphism((), (), ()),), ""),
            "pullback": (((8, (2, 2)),), ""),
            "pushforward": (((4, (2, 4)),), ""),
            "extend": ((2, 40), "np | "),
            "from_layout": ((L,), "cute"),
            "identity": ((S,), "np emptytuple"),
            "inclusion": ((S, (1,)), " | emptytuple"),
            "reshape": ((S, (4, (8,))), "np emptytuple | "),
        },
    ),
    "padded_m": (
        PM,
        {
            "__call__": ((1, 1), "np zero | zero"),
            "at": ((3,), "np zero"),
            "apply": ((5,), "np list array zero"),
            "carry": (((1, 1),), ""),
            "preimage": ((3,), "np negative zero"),
            "__getitem__": ((0,), "zero"),
            "__matmul__": ((Morphism.identity((6, 2)),), ""),
            "concat": ((Morphism((1,), (6, 2), (None,), (1, 10)),), ""),
            "restrict": (((1,),), "emptytuple"),
            "logical_divide": ((Morphism((6,), (6, 2), (0,)),), ""),
            "logical_product": ((Morphism((), (), ()),), ""),
            "flat_divide": ((Morphism((6,), (6, 2), (0,)),), ""),
            "flat_product": ((Morphism((), (), ()),), ""),
            "pullback": ((((2, 3), 2),), ""),
            "pushforward": ((((2, 3), 2),), ""),
            "extend": ((2, 40), "np | "),
            "from_layout": ((L,), "cute"),
            "identity": ((S,), "np emptytuple"),
            "inclusion": ((S, (1,)), " | emptytuple"),
            "reshape": ((S, (4, (8,))), "np emptytuple | "),
        },
    ),
    "byte_swizzle": (Swizzle(2, 3, 2, "byte"), {"recast_elements": ((2,), "np")}),
}


NOT_OF_THIS_VALUE = {"padded_m": ("factorize", "sum", "then")}
"""Methods that refuse the value itself, whatever they are called with."""

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "__matmul__": lambda value, other: value @ other,
    "__add__": lambda value, other: value + other,
    "__sub__": lambda value, other: value - other,
    "__mul__": lambda value, other: value * other,
    "__getitem__": lambda value, other: value[other],
}


def probe(call: Callable[..., Any], good: tuple[Any, ...], answered: str, operator: bool) -> None:
    """Put each odd value in the place of each argument."""
    call(*good)
    wanted = [part.split() for part in answered.split("|")]
    assert len(wanted) == len(good)
    for position, kinds in enumerate(wanted):
        for kind, value in ODD.items():
            try:
                call(*good[:position], value, *good[position + 1 :])
            except LayoutError as error:
                assert kind not in kinds, (position, kind, str(error))
                assert len(str(error)) < 4000
                json.dumps(error.diagnostic.to_json())
                if kind == "text" and isinstance(error, MalformedError) and isinstance(good[position], CuteLayout):
                    assert "layoutalg.parse" in str(error)
            except TypeError as error:
                assert operator, (position, kind, error)
                assert "unsupported operand" in str(error) or "__array_ufunc__" in str(error)
            else:
                assert kind in kinds, (position, kind)


def test_the_table_names_every_public_name() -> None:
    assert set(FUNCTIONS) == {*cute.__all__, "filter", "slice"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    good, answered = FUNCTIONS[name]
    probe(getattr(cute, name), good, answered, False)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    value, methods = METHODS[name]
    known = {method for method in dir(type(value)) if not method.startswith("_")}
    if "to_text" in known and name != "byte_swizzle":
        methods = {"to_text": (("cute_dsl",), ""), **methods}
    argued = {method for method in known if takes_arguments(getattr(value, method))}
    argued -= {"recast_elements", *NOT_OF_THIS_VALUE.get(name, ())}
    assert name == "byte_swizzle" or argued <= set(methods), argued - set(methods)
    for method, (good, answered) in methods.items():
        operator = OPERATORS.get(method)
        call = getattr(value, method) if operator is None else lambda *at, run=operator: run(value, *at)
        probe(call, good, answered, method in ("__matmul__", "__add__", "__sub__"))


def takes_arguments(method: Callable[..., Any]) -> bool:
    code = getattr(method, "__code__", None)
    return code is not None and code.co_argcount > 1


def test_operands_that_answered_for_something_else() -> None:
    with pytest.raises(MalformedError, match=r"LA100 coarse is malformed\n.*its \.shape is one"):
        cute.compatible(L, L)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="must be an integer or a tuple"):
        cute.compatible(3, ("x",))  # type: ignore[arg-type]
    for value in (IDL, SYM):
        for refuses in (cute.nullspace, cute.make_layout_like, cute.complement):
            with pytest.raises(MalformedError, match="LA192"):
                refuses(value)  # type: ignore[operator]
    for refuses in (cute.complement, cute.make_layout):
        with pytest.raises(RepresentabilityError, match="LA136"):
            refuses(OFF)  # type: ignore[operator]
    for value in (IDL, SYM, LIN, INTG, PW, HIER, NM):
        with pytest.raises(MalformedError, match="LA192"):
            cute.max_alignment(value)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA103"):
        cute.size(-3)


@pytest.mark.parametrize("value", [L, SWZ, OFF, IDL, SYM, LIN, INTG, PW, PAR, HIER, FM, NM, Swizzle(2, 0, 2)])
def test_then_refuses_what_does_not_compose(value: Any) -> None:
    for other in (None, "4:1", 2.5, [4], np.arange(4), object(), Rude(), CuteLayout):
        with pytest.raises(LayoutError):
            value.then(other)
