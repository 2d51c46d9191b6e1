"""Every form of a layout is read as the same function, at every door; every access means the same in every call."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.affine_maps import evaluated

import layoutalg as la
from layoutalg.cli import main
from layoutalg.synth.named_accesses import name_of, named, read_name

EXTENTS = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)


@st.composite
def strided(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Extents, strides and an offset with values >= 0."""
    extents = draw(EXTENTS)
    strides = tuple(draw(st.lists(st.integers(0, 40), min_size=len(extents), max_size=len(extents))))
    return extents, strides, draw(st.integers(0, 9))


def values(extents: tuple[int, ...], function: Any) -> np.ndarray:
    """The offsets, indexed outermost dimension first, by enumeration."""
    table = np.empty(extents, dtype=np.int64)
    for point in itertools.product(*map(range, extents)):
        table[point] = function(*point)
    return table


def forms(extents: tuple[int, ...], strides: tuple[int, ...], offset: int) -> dict[str, Any]:
    """One strided function in every form."""
    names = [f"d{place}" for place in range(len(extents))]
    terms = " + ".join([*(f"{name} * {step}" for name, step in zip(names, strides, strict=True)), str(offset)])
    sizes = "".join(f"{extent}x" for extent in extents)
    plain = f"({','.join(map(str, extents))}):({','.join(map(str, strides))})"
    function = lambda *point: offset + sum(map(int.__mul__, point, strides))  # noqa: E731
    found = {
        "text": f"{offset} + {plain}" if offset else plain,
        "layout": la.parse(f"{offset} + {plain}" if offset else plain),
        "array": values(extents, function),
        "list": values(extents, function).tolist(),
        "JSON": str(values(extents, function).tolist()),
        "function": function,
        "memref": f"memref<{sizes}f16, strided<[{', '.join(map(str, strides))}], offset: {offset}>>",
        "map in memref": f"memref<{sizes}f16, affine_map<({', '.join(names)}) -> ({terms})>, 3>",
        "map": f"affine_map<({', '.join(names)}) -> ({terms})>",
    }
    if not offset:
        found["strides"] = SimpleNamespace(shape=extents, strides=strides)
    return found


@given(strided())
@settings(max_examples=40)
def test_every_form_is_the_same_function(case: tuple[tuple[int, ...], tuple[int, ...], int]) -> None:
    extents, strides, offset = case
    wanted = values(extents, lambda *point: offset + sum(map(int.__mul__, point, strides)))
    for name, form in forms(*case).items():
        found = la.layout(form, extents if name in ("function", "map") else None)
        assert found.table().reshape(extents, order="F").tolist() == wanted.tolist(), name
        assert la.equivalent(form, wanted), name
        assert la.equivalent(wanted, form), name


@given(st.data())
@settings(max_examples=60)
def test_affine_maps_mean_what_python_means(data: st.DataObject) -> None:
    names = ["i", "j"]

    def expression(depth: int) -> str:
        kind = data.draw(st.sampled_from(["name", "number", "+", "-", "*", "floordiv", "ceildiv", "mod", "neg"]))
        if depth == 0 or kind == "name":
            return data.draw(st.sampled_from(names))
        if kind == "number":
            return str(data.draw(st.integers(0, 20)))
        left = expression(depth - 1)
        if kind == "neg":
            return f"(-{left})" if not left.startswith("-") else left
        right = expression(depth - 1) if kind in "+-" else str(data.draw(st.integers(1, 9)))
        return f"({left} {kind} {right})"

    text = expression(3)
    extents = data.draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    found = la.layout(f"affine_map<(i, j) -> ({text})>", extents)
    assert (
        found.table().reshape(extents, order="F").tolist()
        == values(extents, lambda i, j: evaluated(text, i=i, j=j)).tolist()
    )
    parts = [text, *[expression(2) for _ in range(data.draw(st.integers(1, 2)))]]
    results = [values(extents, lambda i, j, part=part: evaluated(part, i=i, j=j)) for part in parts]
    memref = f"memref<{extents[0]}x{extents[1]}xf16, affine_map<(i, j) -> ({', '.join(parts)})>>"
    if min(int(result.min()) for result in results) < 0:
        with pytest.raises(la.MalformedError, match="LA993"):
            la.layout(memref)
        return
    dense = np.ravel_multi_index(results, [int(result.max()) + 1 for result in results])
    assert la.layout(memref).table().reshape(extents, order="F").tolist() == dense.tolist()


def test_a_product_is_whole_before_its_remainder() -> None:
    assert la.layout("affine_map<(i, j) -> (((i floordiv 1) * 2) mod 2 + j)>", (4, 2)).table().max() == 1


@given(st.sampled_from(["function", "array", "map", "memref", "strides", "text"]), st.integers(0, 3))
@settings(max_examples=12)
def test_every_door_takes_every_form(name: str, pad: int) -> None:
    shape, strides = (16, 32), (32 + 8 * pad, 1)
    form, text = forms(shape, strides, 0)[name], f"(16,32):({strides[0]},1)"
    whole = la.layout(form, shape) if name in ("function", "map") else form
    assert la.banks("ldmatrix", form, 16, tile=shape).turns == la.banks("ldmatrix", text).turns
    assert bool(la.admissible(form, "ldmatrix", dtype="f16", tile=shape)) is True
    assert la.explain(form, "f16", shape=shape if name in ("function", "map") else None)["size"]
    assert la.convert.to_cute(whole) == la.parse(text)
    assert la.compose(whole, "(4):(1)").table().tolist() == la.compose(text, "4:1").table().tolist()
    assert la.certify.equality(form, text).kind == "equality"
    assert la.certify.inverse(whole).kind == "inverse"
    assert la.draw.svg(whole).startswith("<svg")


@pytest.mark.parametrize(
    ("value", "shape", "words"),
    [
        (lambda i, j: i / 2 + j, (4, 4), r"must return an integer, the element offset, not 0.0 at \(0, 0\)"),
        (lambda i, j: i > j, (4, 4), r"must return an integer, .*not False at \(0, 0\)"),
        (lambda i, j: (i, j), (4, 4), r"must return an integer, .*not \(0, 0\) at \(0, 0\)"),
        (lambda i, j: j // (i - 2), (4, 4), r"at \(2, 0\) it raises, not 'ZeroDivisionError"),
        (lambda i, j: None if (i, j) == (1, 3) else 0, (4, 4), r"not None at \(1, 3\)"),
        (lambda i: i, (4, 4), "must take 2 coordinates, one per dimension"),
        (lambda i: i, (2**21,), "must have 1 to 1048576 points for a function"),
        (lambda i: i, None, "a function has no extents: give a shape"),
        (lambda i: i + 2**70, (2,), "must return an offset in"),
        (lambda i, seen=[]: seen.append(i) or len(seen), (4,), "must return the same value every time"),
        (memoryview(b"abc"), None, "those of a memoryview count bytes"),
        (SimpleNamespace(shape=(4, 8), strides=(8,)), None, "must have 2 entries"),
        (3, None, "must be a layout, its text, an array"),
        ("memref<?x8xf16>", None, "the extent of dimension 0 is dynamic: give a number"),
        ("memref<4x8xf16, strided<[?, 1]>>", None, "the stride of dimension 0 is dynamic: give a number"),
        ("memref<4x8xf16, strided<[8, 1], offset: ?>>", None, "the offset is dynamic: give a number"),
        ("memref<4x8xf16, strided<[8]>>", None, "it has 2 dimensions and 1 strides"),
        ("memref<4x8xf16, affine_map<(i, j) -> (j, i - j)>>", None, "its result 1 is -7 somewhere"),
        ("memref<4x8xf16, affine_map<(i) -> (i, i mod 2)>>", None, "the shape must have 1 dimensions like the map"),
        ("memref<4000x8000xf16, affine_map<(i, j) -> (i mod 9, j)>>", None, "not linear need a shape of at most"),
        ("affine_map<(i)[s, t] -> (s * i)>", (4,), "it has the symbols s, t: put numbers in their place"),
        ("affine_map<(i, j) -> (i * j)>", (4, 4), "is not affine: one side must be a constant"),
        ("affine_map<(i) -> (i floordiv 0)>", (4,), "floordiv needs a positive constant"),
        ("affine_map<(i) -> (k)>", (4,), "'k' is none of its dimensions i"),
        ("affine_map<(i) -> (i)>", None, "an affine map has no extents: give shape="),
        ("affine_map<(i) -> (i)>", (4, 4), "the shape must have 1 dimensions like the map"),
    ],
)  # fmt: skip
def test_what_is_no_layout(value: object, shape: Any, words: str) -> None:
    with pytest.raises(la.MalformedError, match=f"(?s)LA99[23].*{words}"):
        la.layout(value, shape)


def test_a_verdict_says_how_a_function_was_read() -> None:
    assert la.equivalent(lambda i, j: 9 * i + j, "(4,8):(9,1)").certificate["read f"] == "the function is (4,8):(9,1)"
    assert la.equivalent("(5):(1)", lambda i: i * i).witness["read g"] == "the function was tabulated"
    assert la.layout(lambda i, j: 8 * i + (j ^ i), (8, 8)) == la.parse("Sw<3,0,3> o 0 o (8,8):(8,1)")


def test_the_type_of_a_tensor_is_counted() -> None:
    single = SimpleNamespace(shape=(64, 64), strides=(64, 1), dtype="torch.float32")
    assert la.banks("rows", single).accesses == la.banks("rows", "(64,64):(64,1)", 32).accesses
    assert la.banks("rows", "memref<64x64xf32>").accesses == la.banks("rows", "(64,64):(64,1)", 32).accesses
    with pytest.raises(la.MalformedError, match="must be 32, as in the SimpleNamespace"):
        la.banks("rows", single, 16)


# ---------------------------------------------------------------- names of accesses

NVIDIA = (
    "ldmatrix", "ldmatrix.x2", "ldmatrix.x1.trans", "stmatrix.trans", "ld.shared.v4", "ld.shared.b32",
    "st.shared.v2.b32", "mma.A", "mma.B", "mma.D", "wgmma.D:store", "rows", "rows:2", "rows:store", "columns",
    "columns:8", "columns:1:store",
)  # fmt: skip
AMD = ("ds_read_b128", "ds_load_b64", "ds_write_b128", "mfma.A", "mfma.B", "rows", "rows:store")


@given(
    st.sampled_from([("sm_80", each) for each in NVIDIA if not each.startswith(("st", "wgmma"))]
                    + [("sm_90a", each) for each in NVIDIA] + [("gfx942", each) for each in AMD]),
    st.sampled_from([0, 8, 16]),
)  # fmt: skip
@settings(max_examples=24)
def test_an_access_takes_the_same_turns_in_every_call(case: tuple[str, str], pad: int) -> None:
    """One layout, counted by banks, padding, swizzle, suggest and admissible."""
    target, name = case
    layout = la.CuteLayout((64, 64), (64 + pad, 1))
    report = la.banks(name, layout, 16, target=target)
    padded = la.padding((64, 64), [name], target, 16)
    assert la.banks(name, la.CuteLayout((64, 64), padded.pitches), 16, target=target).turns == padded.turns
    plan = la.swizzle([name], target, 16, "xor", tile=(64, 64))
    kind = None if read_name(name).kind else "store"  # the first access of a swizzle is a store
    assert la.banks(name, la.parse(plan.cute), 16, kind, target=target).turns == plan.turns if plan.cute else True
    found = la.admissible(layout, name, target, "f16")
    if name != "wgmma.D:store" and found:
        assert found.descriptor.turns == report.turns
    chosen = la.suggest(la.Tensor((64, 64), dtype="f16"), (64, 64), [name], target, fill="threads")
    assert len(chosen)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ldmatrx", "nothing is called 'ldmatrx'; near: ldmatrix"),
        ("mfma.E", "lanes do not move what mfma.E reads or writes|near: mfma"),
        ("operand:16", "nothing is called 'operand:16'; use mma.A or ldmatrix"),
        ("chunk", "nothing is called 'chunk'; use rows"),
        ("rows:store:4:2", "says more than rows"),
        ("ldmatrix:store", "says more than ldmatrix"),
        ("wgmma.A", "ask layoutalg.admissible"),
        ("ld.global.v4.b32", "moves global memory, which has sectors"),
        ("cp.async", "cp.async has several widths: name one of cp.async.ca.4"),
        ("cp.async.cg.16", "the bank turns of cp.async.cg.16 are not known"),
    ],
)
def test_one_error_for_a_wrong_name(name: str, words: str) -> None:
    calls = [
        lambda: la.banks(name, "(64,64):(64,1)"),
        lambda: la.swizzle([name], tile=(64, 64)),
        lambda: la.padding((64, 64), [name]),
    ]
    if not name.startswith(("wgmma", "cp.async", "mfma")):
        calls.append(lambda: la.admissible("(64,64):(64,1)", name))
        calls.append(lambda: la.suggest(la.Tensor((64, 64)), (64, 64), [name], fill="threads"))
    for call in calls:
        with pytest.raises(la.MalformedError, match=f"(?s)LA990.*(?:{words})"):
            call()


def test_a_target_without_the_instruction_is_refused_alike() -> None:
    for call in (
        lambda: la.banks("stmatrix", "(64,64):(64,1)", target="sm_80"),
        lambda: la.swizzle(["stmatrix"], "sm_80", tile=(64, 64)),
        lambda: la.padding((64, 64), ["stmatrix"], "sm_80"),
    ):
        with pytest.raises(la.AdmissibilityError, match=r"LA991(?s:.)*sm_80 has no stmatrix, which needs sm_90"):
            call()
    assert "sm_80 has no stmatrix" in la.admissible("(64,64):(64,1)", "stmatrix", "sm_80").reasons[0]
    with pytest.raises(la.MalformedError, match=r"LA340"):
        la.suggest(la.Tensor((64, 64)), (64, 64), ["ldmatrix"], "sm_75")


@given(st.sampled_from(NVIDIA), st.sampled_from([(64, 64), (64, 128), (128, 64)]))
@settings(max_examples=20)
def test_a_named_access_moves_every_element_once(name: str, tile: tuple[int, int]) -> None:
    layout = named(name_of(name), tile, 16, "sm_90a")
    table = layout.table()
    assert sorted(map(tuple, table.tolist()) if table.ndim == 2 else table.tolist()) == sorted(
        set(map(tuple, table.tolist())) if table.ndim == 2 else range(tile[0] * tile[1])
    )


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> tuple[int, str]:
        code = main(list(words))
        found = capsys.readouterr()
        return code, found.out + found.err

    assert run("equal", "affine_map<(i, j) -> (72 * i + j)>", "(64,64):(72,1)")[0] == 0
    code, text = run("equivalent", "(4,8):(8,1)", "(4,8):(1,4)")
    assert (code, "coordinate=1" in text) == (1, True)
    assert run("compose", "(6,8):(1,10)", "2:4") == (0, "2:4\n")
    assert run("divide", "(6,2):(1,7)", "3:1") == (0, "(3,(2,2)):(1,(3,7))\n")
    assert run("divide", "(6,2):(1,7)", "4:1")[0] == 2
    assert run("divide", "(6,2):(1,7)", "4:1", "--widen")[0] == 0
    assert run("inverse", "(4,8):(8,1)") == (0, "(8,4):(4,1)\n")
    assert run("inverse", "(4,8):(1,8)", "--right") == (0, "4:1\n")
    assert run("inverse", "4:1", "--right", "--left")[0] == 64
    assert run("compose", "[3,1,2]", "2:1") == (0, "[3, 1]\n")
    assert run("convert", "(8,8):(8,1)", "linear")[1].startswith("F2[i=(8)")
    assert run("convert", "memref<4x8xf16>", "cute_cpp") == (0, "(_4,_8):(_8,_1)\n")
    code, text = run("convert", "(32,2):(2,1)", "(32,2):(1,32)")
    assert (code, "layoutalg conversion" in text) == (64, True)
    assert "LA990" in run("banks", "ldmatrx", "(64,64):(64,1)")[1]
