"""A question about a text that states its element type is the one with that type about the layout alone."""

from itertools import product

import pytest

import layoutalg as la

TRITON = {"f32": "f32", "tf32": "tf32", "f16": "f16", "bf16": "bf16", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8",
          "i16": "s16", "i32": "s32", "f64": "f64"}  # fmt: skip
BITS = {"f32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "s16": 16, "s32": 32, "f64": 64}
WIDTHS = {8: "u8", 16: "bf16", 32: "f32", 64: "f64"}
OTHER = {8: "f16", 16: "f32", 32: "f16", 64: "u8"}
BLOCKED = (
    "#ttg.blocked<{{sizePerThread = [1, {0}], threadsPerWarp = [{1}, {2}], warpsPerCTA = [1, 1], order = [1, 0]}}>"
)


def _triton():
    """(text, type, text without type, shape) of shared layouts of Triton."""
    for (name, dtype), rows, span in product(TRITON.items(), (8, 64), (32, 64, 128)):
        bits = BITS[dtype]
        columns = 8 * span // bits
        attribute = f"#ttg.nvmma_shared<{{swizzlingByteWidth = {span}, transposed = false, elementBitWidth = {bits}}}>"
        yield f"!ttg.memdesc<{rows}x{columns}x{name}, {attribute}, #smem>", dtype, attribute, (rows, columns)
    for (name, dtype), turns in product(TRITON.items(), (1, 8)):
        vector = max(1, 128 // BITS[dtype])
        entries = f"vec = {vector}, perPhase = 1, maxPhase = {turns}, order = [1, 0]"
        attribute = f"#ttg.swizzled_shared<{{{entries}}}>"
        shape = (16, 8 * vector)
        yield f"!ttg.memdesc<16x{8 * vector}x{name}, {attribute}, #smem>", dtype, attribute, shape


def _cute():
    """(text, type, layout without type) of CuTe: a printed swizzle acts on bytes, offsets count elements."""
    for (bits, dtype), swizzle, rows in product(WIDTHS.items(), (1, 2, 3), (8, 64)):
        columns = (16 << swizzle) * 8 // bits
        low = 4 - (bits // 8).bit_length() + 1
        plain = f"Sw<{swizzle},{low},3> o 0 o ({rows},{columns}):({columns},1)"
        printed = f"(_{rows},_{columns}):(_{columns},_1)"
        yield f"Sw<{swizzle},4,3> o smem_ptr[{bits}b](unset) o {printed}", dtype, plain
        for name in [name for name in ("f16", "bf16", "f32", "f64") if BITS[name] == bits]:
            yield f"ptr<{name}, smem, align<1024>, S<{swizzle},4,3>> o {printed}", name, plain


CASES = [(text, dtype, la.parse(plain, shape)) for text, dtype, plain, shape in _triton()]
CASES += [(text, dtype, la.parse(plain)) for text, dtype, plain in _cute()]


def test_there_are_a_hundred_texts():
    assert len({text for text, _, _ in CASES}) >= 100


def _asked(ask):
    """The answer, or the code of the refusal."""
    try:
        found = ask()
    except la.LayoutError as error:
        return error.diagnostic.code
    if isinstance(found, la.Admitted):
        return "admitted", found.dtype, str(found.descriptor)
    return ("refused", found.dtype, found.rules) if isinstance(found, la.Refused) else str(found)


@pytest.mark.parametrize("consumer", ["tma", "wgmma.A", "ldmatrix.x4", "ld.shared.v4.b32"])
def test_admission_of_a_typed_text_is_that_of_the_layout_and_the_type(consumer):
    answers = set()
    for text, dtype, layout in CASES:
        answer = _asked(lambda text=text: la.admissible(text, consumer))
        explicit = _asked(lambda layout=layout, dtype=dtype: la.admissible(layout, consumer, dtype=dtype))
        assert answer == explicit, text
        assert answer == _asked(lambda text=text, dtype=dtype: la.admissible(text, consumer, dtype=dtype)), text
        answers.add(answer[0])
    assert answers == {"admitted", "refused"} or consumer in ("tma", "ld.shared.v4.b32")


def test_a_type_that_contradicts_the_text_is_refused_with_both_names():
    for text, dtype, _ in CASES:
        bits = BITS.get(dtype, 8)
        with pytest.raises(la.MalformedError) as caught:
            la.admissible(text, "tma", dtype=OTHER[bits])
        because = caught.value.diagnostic.because
        assert OTHER[bits] in because, text
        assert dtype in because or f"{bits} bits" in because, text
        for ask in (
            lambda text=text, bits=bits: la.banks("(32,1):(1,32)", text, 2 * bits if bits < 64 else 8),
            lambda text=text, bits=bits: la.tensormap(((512, 512), None, OTHER[bits]), (8, 8), text),
            lambda text=text, bits=bits: la.wgmma("A", OTHER[bits], None, text),
            lambda text=text, bits=bits: la.explain(text, OTHER[bits]),
        ):
            with pytest.raises(la.MalformedError):
                ask()


def test_maps_and_operands_take_the_type_of_the_text():
    for text, dtype, layout in CASES:
        tile = tuple(layout.out_dims.values()) if isinstance(layout, la.LinearLayout) else layout.shape
        shape = tuple(4 * extent for extent in tile)
        mine = _asked(lambda text=text, tile=tile, shape=shape: la.tensormap((shape, None, None), tile, text))
        args = ((shape, None, dtype), tile, layout)
        assert mine == _asked(lambda args=args: la.tensormap(*args)), text
        mine = _asked(lambda text=text: la.wgmma("A", None, None, text))
        assert mine == _asked(lambda layout=layout, dtype=dtype: la.wgmma("A", dtype, None, layout)), text


def _registers():
    for (name, dtype), (each, rows, columns) in product(TRITON.items(), ((4, 8, 4), (2, 4, 8))):
        attribute = BLOCKED.format(each, rows, columns)
        yield f"tensor<16x16x{name}, {attribute}>", BITS[dtype], la.parse(attribute, (16, 16))


@pytest.mark.parametrize(
    "ask",
    [
        lambda first, second, *bits: la.conversion(first, second, *bits),
        lambda first, _, *bits: la.banks(first, "(16,16):(16,1)", *bits),
        lambda first, second, *bits: la.swizzle([(first, "store"), (second, "load")], "sm_90a", *bits),
        lambda first, second, *bits: la.padding((16, 16), [(first, "store"), (second, "load")], "sm_90a", *bits),
    ],
    ids=["conversion", "banks", "swizzle", "padding"],
)
def test_registers_have_the_width_that_their_type_states(ask):
    cases = list(_registers())
    for one, other in zip(cases[::2], cases[1::2], strict=True):
        (first, bits, plain), (second, _, other_plain) = one, other
        asked = (first, second), (plain, other_plain, bits)
        typed, explicit = (_asked(lambda given=given: ask(*given)) for given in asked)
        assert typed == explicit, first
        with pytest.raises(la.MalformedError, match=str(bits)):
            ask(first, second, 64 if bits != 64 else 8)
    with pytest.raises(la.MalformedError, match=r"(?s)f32.*f16|f16.*f32"):
        la.conversion(cases[0][0], cases[4][0])


def test_opposite_directions_are_compared_by_the_inverse_and_it_is_said():
    swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    shared = la.parse(swizzled, shape=(64, 64))
    same, other = la.parse("Sw<3,3,3> o 0 o (64,64):(64,1)"), la.parse("(64,64):(64,1)")
    for verdict in (la.equivalent(shared, same), la.equivalent(same, shared)):
        assert verdict
        assert "maps offsets to coordinates" in verdict.certificate["direction"]
    refuted = la.equivalent(shared, other)
    assert not refuted
    assert "maps offsets to coordinates" in refuted.witness["direction"]
    assert refuted.witness["f"] == same(1, 0) == 72
    assert str(la.convert.to_cute(shared)) == str(same)
    assert la.certify.equality(shared, same).kind == "equality"
    assert la.explain(shared)["as_CuTe"] == str(same)
    assert "offset to coordinates" in la.explain(shared)["direction"]


def test_an_array_of_offsets_is_a_layout_where_layouts_are_compared_and_converted():
    layout = la.parse("(4,8):(8,1)")
    array = layout.table().reshape((4, 8), order="F")
    assert la.equivalent(array, layout)
    assert not la.equivalent(array + 1, layout)
    assert la.convert.to_cute(array) == layout
    assert la.convert.to_integer(array).at(9) == layout(9)
