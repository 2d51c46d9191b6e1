"""Every format of a dump reads back to the map that it shows; a printed tiling has the elements that it says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.codegen.host import host_map, map_bytes
from layoutalg.cute import CuteLayout, MmaAtom, TiledMMA
from layoutalg.ground.errors import LayoutError
from layoutalg.notation.tiled import PrintedTiling, read_tiled
from layoutalg.targets.nvidia import tensormap
from layoutalg.testing.strategies import tensor_maps

WIDTHS = {1: "uint8_t", 2: "unsigned short", 4: "uint32_t", 8: "unsigned long long"}


@st.composite
def maps(draw: st.DrawFn) -> tuple[tensormap.TensorMap, bytes]:
    """Maps that a driver accepts, with their bytes."""
    tm = draw(tensor_maps())
    assume(not tensormap.violations(tm))
    return tm, tensormap.encode(tm)


@st.composite
def shown(draw: st.DrawFn, raw: bytes) -> str:
    """A text that shows bytes."""
    width = draw(st.sampled_from(tuple(WIDTHS)))
    order = draw(st.sampled_from(("little", "big")))
    numbers = [int.from_bytes(raw[at : at + width], order) for at in range(0, len(raw), width)]
    digits = [f"{number:0{2 * width}x}" for number in numbers]
    step = draw(st.sampled_from((8, 16, 32)))
    per = step // width
    rows = [digits[at : at + per] for at in range(0, len(digits), per)]
    kind = draw(st.sampled_from(("digits", "prefixed", "array", "xxd", "hexdump", "gdb", "python", "print")))
    if kind == "digits":
        memory = raw.hex()
        cuts = sorted(draw(st.sets(st.integers(1, 255), max_size=40)))
        parts = [memory[a:b] for a, b in itertools.pairwise([0, *cuts, 256])]
        text = "".join(part + draw(st.sampled_from((" ", ",", ":", "_", "\n", "\t;"))) for part in parts)
        return draw(st.sampled_from(("", "0x"))) + text
    if kind == "prefixed":
        return draw(st.sampled_from((", ", "\n"))).join(f"0x{each}" for each in digits)
    if kind == "array":
        written = [draw(st.sampled_from((f"0x{n:x}", str(n), f"0X{n:X}", f"{n:#b}"))) for n in numbers]
        end = draw(st.sampled_from(("", "u"))) if width < 8 else draw(st.sampled_from(("ull", "")))
        body = f"{end}, /* a {{ */ ".join(written)
        return f"// the map\nstatic const {WIDTHS[width]} map[{len(numbers)}] = {{\n{body}{end} }};  // 3 rows"
    if kind == "xxd":
        ends = draw(st.sampled_from(("  |{}//", "  ff ff", "")))
        return "\n".join(f"{0x40 + step * n:08x}: {' '.join(row)}{ends}" for n, row in enumerate(rows))
    if kind == "hexdump":
        assume(width == 1 or order == "little")
        lines, before = [], None
        for n, row in enumerate(rows):
            if row == before:
                lines += ["*"] * (lines[-1] != "*")
            else:
                lines.append(f"{step * n:07x} {' '.join(row)}")
            before = row
        return "\n".join([*lines, f"{step * len(rows):07x}"])
    if kind == "gdb":
        return "\n".join(
            f"0x7fff{step * n:04x} <map+{step * n}>:\t" + "\t".join(f"0x{each}" for each in row)
            for n, row in enumerate(rows)
        )
    if kind == "print":
        runs = [(number, len(list(same))) for number, same in itertools.groupby(numbers)]
        parts = [
            f"{n:#x} <repeats {count} times>" if count > 3 else ", ".join([f"{n:#x}"] * count) for n, count in runs
        ]
        return "$2 = {opaque = {" + ", ".join(parts) + "}}"
    return draw(st.sampled_from((repr, lambda raw: repr(bytearray(raw)))))(raw)


@given(st.data())
def test_every_format_reads_back(data):
    tm, raw = data.draw(maps())
    text = data.draw(shown(raw))
    found = tensormap.read_map(text)
    assert found.raw == raw
    assert "in no byte order" not in found.form
    assert tensormap.diagnose(text).tensor_map == tm
    assert tensormap.read_map(map_bytes(tm)).raw == raw
    explained = la.explain(text)
    assert (explained["dims"], explained["base_address"]) == (list(tm.dims), tm.base_address)


@given(maps())
def test_a_call_written_for_a_map_reads_back(drawn):
    tm, _ = drawn
    text = host_map(tm).replace("tensor_map, address", "").replace(f"+ {tm.base_address}ull", "")
    assert tensormap.diagnose(text).tensor_map == tensormap.TensorMap(
        **{name: getattr(tm, name) for name in tm.__dataclass_fields__ if name != "base_address"}
    )


PLAN = la.tensormap(((256, 64), None, "bf16"), (64, 64))


@given(st.integers(0, (1 << 53) - 1))
def test_an_address_moves_the_map_alone(units):
    found = PLAN.encode(16 * units)
    assert tensormap.decode(found).base_address == 16 * units
    assert found[8:] == PLAN.raw[8:]


# --- printed tilings --------------------------------------------------------------------------------------------------

M16N8K16 = MmaAtom(
    (16, 8, 16),
    CuteLayout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))),
    CuteLayout(((4, 8), (2, 2)), ((16, 1), (8, 64))),
    CuteLayout(((4, 8), (2, 2)), ((32, 1), (16, 8))),
)
M64N16K16 = MmaAtom(
    (64, 16, 16),
    CuteLayout((128, (64, 16)), (0, (1, 64))),
    CuteLayout((128, (16, 16)), (0, (1, 16))),
    CuteLayout(((4, 8, 4), (2, 2, 2)), ((128, 1, 16), (64, 8, 512))),
)


@st.composite
def tilings(draw: st.DrawFn) -> TiledMMA:
    """Tiled instructions, with instructions along M, N and K, and tiles that are reordered or repeated."""
    atom = draw(st.sampled_from((M16N8K16, M64N16K16)))
    counts = [draw(st.sampled_from((1, 2, 4))) for _ in range(3)]
    order, strides, reach = draw(st.permutations(range(3))), [0, 0, 0], atom.threads
    for dim in order:
        strides[dim] = reach if counts[dim] > 1 else 0
        reach *= counts[dim]
    permutation = []
    for dim in range(3):
        whole = atom.shape[dim] * counts[dim]
        inner = draw(st.sampled_from((2, 4, 8)))
        turned = CuteLayout((inner, whole // inner), (whole // inner, 1))
        permutation.append(draw(st.sampled_from((None, whole, 2 * whole, turned))))
    return TiledMMA(CuteLayout((atom.threads, *counts), (1, *strides)), tuple(permutation), atom)


def places(mma: TiledMMA) -> dict[int, tuple[int, ...]]:
    """Thread numbers -> thread of the instruction and its place along M, N and K."""
    counts = [range(int(mma.threads[mode].size)) for mode in range(4)]
    return {int(mma.threads(at)): at for at in itertools.product(*counts)}


def owner(mma: TiledMMA, name: str, place: tuple[int, ...], value: int) -> int:
    """The element of an operand, by counting: no algebra of layouts."""
    dims = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}[name]
    counts = [int(mma.threads[dim + 1].size) for dim in range(3)]
    layout = getattr(mma.atom, name)
    inside, repeat = value % layout[1].size, value // layout[1].size
    flat = int(layout((place[0], inside)))
    coordinate = []
    for number, dim in enumerate(dims):
        extent = mma.atom.shape[dim]
        within = flat % extent if number == 0 else flat // mma.atom.shape[dims[0]]
        rest = mma.tile[dim] // (extent * counts[dim])
        round_, repeat = repeat % rest, repeat // rest
        at = within + extent * (place[1 + dim] + counts[dim] * round_)
        turned = mma.permutation[dim]
        if isinstance(turned, CuteLayout):
            at = int(turned(at % turned.size)) + at // turned.size * turned.size
        coordinate.append(at)
    return coordinate[0] + mma.tile[dims[0]] * coordinate[1]


@given(tilings(), st.integers(0, 1 << 20))
def test_a_tiled_instruction_is_what_counting_says(mma, seed):
    known = places(mma)
    assert sorted(known) == list(range(mma.size))
    for name in "ABC":
        found = mma.operand(name)
        assert found[0].size == mma.size
        for step in range(6):
            thread, value = (seed + 37 * step) % mma.size, (seed // 7 + 5 * step) % found[1].size
            assert found((thread, value)) == owner(mma, name, known[thread], value)


def printed(mma: TiledMMA, dsl: bool) -> str:
    """The text of CuTe C++ or of the DSL."""
    tilers = ",".join("_" if entry is None else str(entry) for entry in mma.permutation)
    a, b, c = (str(getattr(mma.atom, name)) for name in "ABC")
    shape = ",".join(map(str, mma.atom.shape))
    if dsl:
        return (
            f"Tiled MMA\n  Thr Layout VMNK: {mma.threads}\n  Permutation MNK: ({tilers})\nMMA Atom\n"
            f"  ThrID:           {mma.atom.threads}:1\n  Shape MNK:       ({shape})\n  TV Layout A:     {a}\n"
            f"  TV Layout B:     {b}\n  TV Layout C:     {c}"
        )
    return (
        f"TiledMMA\n  ThrLayoutVMNK:  {mma.threads}\n  PermutationMNK: ({tilers})\nMMA_Atom\n  ThrID:      "
        f"{mma.atom.threads}:1\n  Shape_MNK:  ({shape})\n  LayoutA_TV: {a}\n  LayoutB_TV: {b}\n  LayoutC_TV: {c}\n"
    )


@given(tilings(), st.booleans())
def test_printed_instructions_read_back(mma, dsl):
    found = la.parse(printed(mma, dsl))
    assert isinstance(found, PrintedTiling)
    assert found.value == mma
    assert found.tile == mma.tile
    assert found.layouts == {name: mma.operand(name) for name in "ABC"}
    assert la.parse(str(found)) == found == read_tiled(printed(mma, not dsl))


def test_tilings_that_others_printed():
    """A tiled copy made for operand A of a tiled instruction has its (thread, value) layout: printed by CUTLASS."""
    peer = la.parse(
        "TiledCopy\n  Tiler_MN:       (_32,_16)\n  TiledLayout_TV: ((_4,_8,_2,_4),((_2,_2,_2),(_1,_1))):"
        "((_64,_1,_16,_0),((_32,_8,_256),(_0,_0)))\nCopy_Atom\n  ThrID:        _1:_0\n  ValLayoutSrc: (_1,_1):(_0,_0)\n"
        "  ValLayoutDst: (_1,_1):(_0,_0)\n  ValLayoutRef: (_1,_1):(_0,_0)\n  ValueType:    16b"
    )
    mma = TiledMMA(CuteLayout((32, 2, 4, 1), (1, 32, 64, 0)), (None, None, None), M16N8K16)
    assert peer.layouts["tiled"] == mma.operand("A")
    assert peer.tile == (32, 16)
    assert la.equivalent(peer.layouts["source"], peer.layouts["destination"])
    assert la.convert.to_linear(mma.operand("C")).size == 32 * 32
    assert la.conversion(mma.operand("C"), "(256,4):(1,256)", 16).mechanism
    assert la.banks(mma.operand("C"), "(32,32):(32,1)", 32).turns


def copy_of(source: str, destination: str, tiled: str, tiler: str, rest: str = "") -> PrintedTiling:
    """A tiled copy as the DSL prints it."""
    return read_tiled(
        f"copy: Tiled Copy\n  Tiler MN: {tiler}\n  TV Layout tiled: {tiled}\nCopy Atom\n  ThrID: 32:1\n"
        f"  TV Layout Src: {source}\n  TV Layout Dst: {destination}\n{rest}"
    )


@given(tilings().filter(lambda mma: mma.size * mma.tile[0] * mma.tile[2] <= 1 << 18), st.booleans())
@settings(max_examples=12)
def test_the_banks_of_an_operand_are_those_of_its_elements(mma, dsl):
    """Each operand by counting, as a table of (thread, value), in place of the print and a name."""
    known = places(mma)
    for name, dims in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        values = range(mma.operand(name).size // mma.size)
        table = [[owner(mma, name, known[thread], value) for value in values] for thread in range(mma.size)]
        rows, columns = (mma.tile[dim] for dim in dims)
        shared = f"({rows},{columns}):({columns},1)"
        assert la.banks(printed(mma, dsl), shared, operand=name) == la.banks(table, shared)
        assert la.layout(printed(mma, dsl), operand=name) == mma.operand(name)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix"])
def test_matrices_of_any_elements_count_in_the_order_of_their_registers(kind, count, bits):
    """Lane l of matrix i has word l of it, with 32 / bits elements; rows of 16 bytes in the order of the lanes."""
    row, word = 128 // bits, 32 // bits
    lanes = f"({8 * count},{4 // count}):({row},0)" if count < 4 else f"32:{row}"
    memory = f"({lanes.split(':')[0]},{row}):({lanes.split(':')[1]},1)"
    registers = f"(32,({word},{count})):({word},(1,{32 * word}))"
    sides = (memory, registers) if kind == "ldmatrix" else (registers, memory)
    size = 32 * word * count
    found = copy_of(*sides, f"(32,({word},{count})):(1,(32,{32 * word}))", f"({size}:1)", f"  Value type: f{bits}")
    assert found.atom == f"{kind}.x{count}"
    ours = found.layouts["destination" if kind == "ldmatrix" else "source"]
    assert la.equivalent(ours, found.layouts["tiled"])


@pytest.mark.parametrize(
    ("source", "destination", "tiled"),
    [
        ("(1,(4,8,4)):(0,(1,4,0))", "(1,128):(0,1)", "(1,(32,4)):(0,(1,32))"),  # tcgen05.cp, 4 copies
        ("(32,64):(0,1)", "(32,2):(2,1)", "(32,(32,2)):(0,(2,1))"),  # tcgen05.ld
        ("(32,2):(2,1)", "(32,64):(0,1)", "(32,(32,2)):(0,(2,1))"),  # tcgen05.st
    ],
)
def test_tensor_memory_is_the_order_of_its_copies(source, destination, tiled):
    """Values of both sides are the same place of the tile exactly if they are the same element of the instruction."""
    found = copy_of(source, destination, tiled, f"({la.parse(tiled).cosize}:1)")
    sides = [la.parse(text).table() for text in (source, destination)]
    tiles = [found.layouts[name].table() for name in ("source", "destination")]
    whole = next(place for place, text in enumerate((source, destination)) if text.endswith(":(0,1)"))
    known = dict(zip(sides[whole].tolist(), tiles[whole].tolist(), strict=True))
    assert len(set(known.values())) == len(known)
    for side, tile in zip(sides, tiles, strict=True):
        assert [known[element] for element in side.tolist()] == tile.tolist()


def test_a_printed_type_is_the_type_of_the_elements():
    each = "(1,8):(0,1)"
    texts = [str(copy_of(each, each, "((4,32),8):((256,1),32)", "(32,32)", f"  Value type: {name}")) for name in
             ("f32", "16b", "f8E4M3FN")]  # fmt: skip
    assert [la.banks(text, "(32,32):(32,1)").turns for text in texts] == [
        la.banks("((4,32),8):((256,1),32)", "(32,32):(32,1)", bits).turns for bits in (32, 16, 8)
    ]
    with pytest.raises(la.MalformedError, match="must be 32"):
        la.banks(texts[0], "(32,32):(32,1)", 16)


@pytest.mark.parametrize(("text", "name", "rule"), [
    ("TiledMMA", "D", "must be one of A, B, C"), ("ldmatrix", "A", "must be omitted"), ("(32,4):(4,1)", "A", "omitted"),
])  # fmt: skip
def test_only_printed_tilings_have_operands(text, name, rule):
    mma = TiledMMA(CuteLayout((32, 1, 1, 1), (1, 0, 0, 0)), (None, None, None), M16N8K16)
    with pytest.raises(la.MalformedError, match=rule):
        la.banks(printed(mma, False) if text == "TiledMMA" else text, "(16,16):(16,1)", operand=name)


def test_the_order_of_a_copy_is_known_or_not_guessed():
    rows, pairs, tiled = "(32,8):(8,1)", "(32,(2,4)):(2,(1,64))", "((4,8,8),(2,2,2)):((128,1,8),(512,64,1024))"
    tiler = "((8,8,2):(1,16,8),(4,2,2):(2,1,8))"
    stored, loaded = copy_of(pairs, rows, tiled, tiler), copy_of(rows, pairs, tiled, tiler)
    assert (stored.atom, loaded.atom, stored.tile) == ("stmatrix.x4", "ldmatrix.x4", (128, 16))
    # registers are where the printed layout says, on the side of the fragment
    assert la.equivalent(stored.layouts["source"], stored.layouts["tiled"])
    assert la.equivalent(loaded.layouts["destination"], loaded.layouts["tiled"])
    assert not la.equivalent(stored.layouts["destination"], stored.layouts["tiled"])
    other = copy_of("(32,8):(1,32)", "(32,8):(8,1)", tiled, tiler)
    assert list(other.layouts) == ["tiled"]
    assert other.atom.startswith("unknown copy of 32 threads")
    assert "not known" in str(la.explain(str(other)))
    with pytest.raises(LayoutError, match="ValLayoutRef"):
        _ = other.value
    assert copy_of("(32,8):(1,32)", "(32,8):(8,1)", tiled, tiler, "  ValLayoutRef: (32,8):(8,1)").layouts.keys() >= {
        "source"
    }
    with pytest.raises(LayoutError, match="several"):
        la.banks(str(loaded), "(128,16):(16,1)")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Shape_MNK", "Shape_NMK", "'Shape_NMK' is no field"),
        ("(16,8,16)", "(16,8)", "extents M, N and K"),
        ("(16,8,16)", "(16,8,_)", "Shape_MNK must be extents in parentheses"),
        ("(_,_,_)", "(_,(_,_)", "the parentheses do not match"),
        ("(_,_,_)", "(_,x,_)", "'x' is no tiler"),
        ("(_,_,_)", "_", "PermutationMNK must be tilers in parentheses"),
        ("(32,1,1,1):(1,0,0,0)", "(32,1,1):(1,0,0)", "ThrLayoutVMNK must have 4 modes"),
        ("(32,1,1,1):(1,0,0,0)", "(64,1,1,1):(1,0,0,0)", "must have 32 threads in mode 0"),
        ("  LayoutC_TV", "  LayoutB_TV", "LayoutB_TV was given before"),
        ("((4,8),(2,2)):((16,1),(8,64))", "((4,8),(2,2)):((16,1),(8,64)", "expected ')'"),
        (
            "((4,8),(2,2)):((16,1),(8,64))",
            "((4,8),(2,2)):((16,1),(8,6400))",
            "must map 32 threads to elements below 128",
        ),
        ("((4,8),(2,2)):((16,1),(8,64))", "Sw<1,0,1> o 0 o (4,8):(8,1)", "must be a layout of numbers"),
        ("MMA_Atom", "MMA_Atom\n  ValueType: 16b", "either a copy or a matrix instruction"),
    ],
)
def test_texts_that_are_no_tiling_say_what_is_wrong(old, new, words):
    text = printed(TiledMMA(CuteLayout((32, 1, 1, 1), (1, 0, 0, 0)), (None, None, None), M16N8K16), False)
    assert old in text
    with pytest.raises(LayoutError) as caught:
        la.parse(text.replace(old, new, 1))
    assert words in caught.value.diagnostic.because
