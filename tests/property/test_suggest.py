"""``la.suggest`` against a brute force over layouts of small tiles: nothing that it missed is better."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import layoutalg as la
from layoutalg.proofs.tensormap import check
from layoutalg.proofs.wgmma import check as check_operand
from layoutalg.synth import InadmissibleError, InadmissibleOperandError
from layoutalg.targets.nvidia.banks import wavefronts
from tests.judges.bank_words import judged

SWIZZLES = ("", "Sw<1,4,3,byte> o 0 o ", "Sw<2,4,3,byte> o 0 o ", "Sw<3,4,3,byte> o 0 o ")


def orders(rows: int, columns: int, run: int) -> Iterator[str]:
    """Every order of the binary digits of a tile behind a run of neighbouring columns, as text."""
    digits = [(0, 2)] * (rows.bit_length() - 1) + [(1, 2)] * ((columns // run).bit_length() - 1)
    for order in set(itertools.permutations(digits)):
        modes: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [(run, 1)])
        reach = run
        for dim, extent in order:
            modes[dim].append((extent, reach))
            reach *= extent
        shape = ",".join("(" + ",".join(str(n) for n, _ in mode) + ")" for mode in modes)
        stride = ",".join("(" + ",".join(str(d) for _, d in mode) + ")" for mode in modes)
        yield f"({shape}):({stride})"


def turns_of_rows(layout: la.CuteLayout, rows: int, columns: int) -> int | None:
    """Turns of all 8 x 8 matrices of a bf16 tile, from addresses; None where rows of 16 bytes are not aligned."""
    total = 0
    for row, column in itertools.product(range(0, rows, 8), range(0, columns, 8)):
        starts = [2 * layout(row + i, column) for i in range(8)]
        if any(start % 16 for start in starts):
            return None
        total += max(Counter(chunk % 8 for chunk in {start // 16 for start in starts}).values())
    return total


def stored(table: np.ndarray, dimension: int) -> int:
    """Turns of the stores that fill a tile given by byte addresses of 2-byte elements: the best width, by the judge."""
    lines = table if dimension else table.T
    found = []
    for size, name in ((16, "v4.b32"), (8, "v2.b32"), (4, "b32"), (2, "b16")):
        runs = lines.reshape(-1, size // 2) if lines.shape[1] * 2 % size == 0 else np.empty((0, 1), dtype=np.int64)
        whole = len(runs) and len(runs) % 32 == 0 and not (runs[:, 0] % size).any()
        if whole and (runs == runs[:, :1] + 2 * np.arange(size // 2)).all():
            found.append(sum(judged("sm_90a", f"st.shared.{name}", lanes)[0] for lanes in runs[:, 0].reshape(-1, 32)))
    return min(found)


def bytes_of(layout: la.CuteLayout, rows: int, columns: int) -> np.ndarray:
    return 2 * np.array([[layout(row, column) for column in range(columns)] for row in range(rows)], dtype=np.int64)


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (8, 32), (32, 8)])
@pytest.mark.parametrize("stride", [(512, 1), (1, 512)])
def test_no_order_of_digits_is_better_where_threads_fill_the_tile(
    rows: int, columns: int, stride: tuple[int, int]
) -> None:
    """Reads and the stores along the tensor's contiguous dimension count together, for every order and swizzle."""
    along = 1 if stride[1] == 1 else 0
    found = la.suggest(((512, 512), stride, "bf16"), (rows, columns), ["ldmatrix.x2"], fill="threads")
    for choice in found:
        table = bytes_of(choice.smem, rows, columns)
        assert choice.turns == turns_of_rows(choice.smem, rows, columns) + stored(table, along)
        assert f"lanes along dimension {along}" in choice.why
    tried = 0
    for text, swizzle in itertools.product(orders(rows, columns, 8), SWIZZLES):
        smem = la.proofs.tile_map.layout_of(swizzle + text, (rows, columns), 2)
        turns = turns_of_rows(smem, rows, columns)
        if turns is not None:
            tried += 1
            assert turns + stored(bytes_of(smem, rows, columns), along) >= found.best.turns, swizzle + text
    assert tried


def test_the_fill_of_a_tile_decides_among_layouts_that_the_reads_like_alike() -> None:
    found = la.suggest(((4096, 4096), None, "f16"), (128, 32), ["ldmatrix.x4"], fill="threads")
    assert (str(found.best.smem), found.best.turns) == ("Sw<2,3,3> o 0 o (128,32):(32,1)", 64 + 64)
    blocks = next(choice for choice in found if str(choice.smem) == "(128,(8,4)):(8,(1,1024))")
    assert blocks.turns == 64 + stored(bytes_of(blocks.smem, 128, 32), 1) == 64 + 256
    assert str(found).splitlines()[0].endswith("for ldmatrix.x4, filled by threads along dimension 1")
    assert "filled by st.shared.v4.b32: 16 accesses, lanes along dimension 1, 64 turns" in found.best.why
    assert "no bank conflicts" in found.proof


def test_a_fill_that_transposes_says_where_else_to_search() -> None:
    found = la.suggest(((512, 512), (1, 512), "f16"), (64, 64), ["ldmatrix.x4"], fill="threads")
    assert found.proof.startswith("at least 128 turns are needed; layoutalg.swizzle")
    assert found.best.turns > la.swizzle(["columns:store", "ldmatrix"], tile=(64, 64), form="xor").turns == 192


def test_a_consumer_that_writes_the_tile_is_its_fill() -> None:
    for store in ("st.shared.v4.b32", "stmatrix.x4"):
        found = la.suggest(((4096, 4096), None, "f16"), (128, 32), ["ldmatrix.x4", store], fill="threads")
        assert "filled" not in str(found)
        assert found.best.turns == 64 + 64


def test_stores_of_which_no_turns_are_known_are_not_counted_and_said_so() -> None:
    best = la.suggest(((512, 512), None, "f16"), (64, 64), ["ds_read_b128"], "gfx1201", fill="threads").best
    assert "the stores that fill it are not counted: " in best.why
    assert best.turns == la.admissible(best.smem, "ds_read_b128", "gfx1201", "f16").descriptor.turns


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (8, 32), (32, 8)])
def test_no_order_of_digits_is_better_for_ldmatrix(rows: int, columns: int) -> None:
    tensor = ((512, 512), None, "bf16")
    best = la.suggest(tensor, (rows, columns), ["ldmatrix.x2"]).best
    assert best.plan is not None
    reached = (len(best.plan.issues), best.turns, best.bytes)
    assert turns_of_rows(best.smem, rows, columns) == best.turns
    tried = 0
    for text in orders(rows, columns, 8):
        for swizzle in SWIZZLES:
            smem = la.proofs.tile_map.layout_of(swizzle + text, (rows, columns), 2)
            turns = turns_of_rows(smem, rows, columns)
            if turns is None or turns > best.turns:
                continue
            try:
                plan = la.tensormap(tensor, (rows, columns), smem, repair=False)
            except (InadmissibleError, la.RepresentabilityError):
                continue
            tried += 1
            assert (len(plan.issues), turns, plan.smem_bytes) >= reached, str(smem)
    assert tried


def test_no_order_of_digits_is_better_for_wgmma() -> None:
    tensor, tile = ((512, 512), None, "f16"), (64, 32)
    best = la.suggest(tensor, tile, ["wgmma.A"]).best
    reached = (len(best.plan.issues), best.bytes)
    tried = 0
    splits = [[(0, 64)], [(0, 8), (0, 8)]], [[(1, 32)], [(1, 16), (1, 2)], [(1, 8), (1, 4)], [(1, 8), (1, 2), (1, 2)]]
    for rows, columns in itertools.product(*splits):
        for order in set(itertools.permutations(rows + columns)):
            modes: tuple[list[str], list[str]] = ([], [])
            strides: tuple[list[str], list[str]] = ([], [])
            reach = 1
            for dim, extent in order:
                modes[dim].append(str(extent))
                strides[dim].append(str(reach))
                reach *= extent
            shape, stride = (
                "(" + ",".join(f"({','.join(part)})" for part in parts) + ")" for parts in (modes, strides)
            )
            for swizzle in SWIZZLES:
                text = f"{swizzle}{shape}:{stride}"
                try:
                    la.wgmma("A", "f16", tile, text)
                    plan = la.tensormap(tensor, tile, text, repair=False)
                except (InadmissibleOperandError, InadmissibleError, la.RepresentabilityError):
                    continue
                tried += 1
                assert (len(plan.issues), plan.smem_bytes) >= reached, text
    assert tried


@pytest.mark.parametrize("extents", [(32, 32), (16, 64), (64, 8), (32, 12)])
def test_no_swizzle_or_padding_is_better_for_rows_and_columns(extents: tuple[int, int]) -> None:
    rows, columns = extents
    by_columns = la.CuteLayout((32, rows * columns // 32), (1, 32))  # thread t holds element t of a column
    best = la.suggest(((512, 512), None, "f32"), extents, ["st.shared.b32", ("ld.shared.b32", by_columns)],
                      fill="threads").best  # fmt: skip
    tried = [f"({rows},{columns}):({columns + pad},1)" for pad in range(9)]
    tried += [f"({rows},{columns}):(1,{rows + pad})" for pad in range(9)]
    if rows * columns & (rows * columns - 1) == 0:
        boxes = [f"({rows},{columns}):({columns},1)", f"({rows},{columns}):(1,{rows})"]
        xors = itertools.product(range(1, 6), range(3), range(1, 8))
        tried += [f"Sw<{b},{m},{s}> o 0 o {box}" for b, m, s in xors if s >= b for box in boxes]
    for text in tried:
        smem = la.parse(text)
        table = smem.table()
        in_rows = [4 * smem(row, column) for row in range(rows) for column in range(columns)]
        warps = [in_rows[first : first + 32] for first in range(0, len(in_rows), 32)]
        stored = sum(wavefronts(lanes, 32, "store") for lanes in warps)
        loaded = la.banks(by_columns, smem, 32, "ld.shared.b32").turns
        assert (stored + loaded, 4 * int(table.max()) + 4) >= (best.turns, best.bytes), text


@pytest.mark.parametrize(
    ("tensor", "tile", "consumers"),
    [
        (((4096, 4096), None, "bf16"), (128, 64), ["wgmma.A"]),
        (((4096, 4096), (1, 4096), "f16"), (128, 64), ["wgmma.B", "tma.store"]),
        (((8, 512, 96), None, "f16"), (1, 64, 96), ["wgmma.A", "ldmatrix.x4"]),
        (((512, 512), None, "u8"), (64, 64), ["ldmatrix.x4"]),
        (((512, 512), None, "bf16"), (64, 64), ["ldmatrix.x4.trans", "tma"]),
    ],
)
def test_what_is_shown_is_proved_ranked_and_the_same_twice(tensor: object, tile: tuple[int, ...], consumers: list[str]):
    found = la.suggest(tensor, tile, consumers)
    again = la.suggest(tensor, tile, consumers)
    assert [str(each) for each in found] == [str(each) for each in again]
    assert found.losers == again.losers
    assert found.best is found[0]
    for place, choice in enumerate(found):
        assert check(choice.plan)
        assert la.tensormap(tensor, tile, choice.smem, repair=False).tensor_map == choice.plan.tensor_map
        assert all(check_operand(operand) for operand in choice.operands)
        assert len(choice.operands) == sum(name.startswith("wgmma") for name in consumers)
        assert bool(choice.behind) == bool(place)
    issues = [len(choice.plan.issues) for choice in found]
    assert issues == sorted(issues)
    document = found.to_json()
    assert document["schema"] == "layoutalg/suggestion/1"
    assert len(document["choices"]) == len(found)
    for loser in found.losers[:6]:
        assert loser.reason
        assert loser.consumer in (*consumers, "tma")


def test_nothing_to_suggest_says_why() -> None:
    found = la.suggest(((512, 500), None, "bf16"), (64, 64), ["ldmatrix.x4"])
    assert not found
    with pytest.raises(la.InfeasibleError, match="STRIDE_ALIGN"):
        _ = found.best
    assert la.suggest(((512, 500), None, "bf16"), (64, 64), ["ldmatrix.x4"], fill="threads").best.turns == 64 + 64


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"consumers": ["mma"]}, "wgmma.A"),
        ({"consumers": "wgmma.A"}, "list"),
        ({"consumers": []}, "at least one"),
        ({"consumers": [("ldmatrix.x4", 3)]}, "register layout"),
        ({"tile": (1024, 1024)}, "232448"),
        ({"tile": (64,)}, "entries"),
        ({"tile": (0, 64)}, "at least 1"),
        ({"target": "sm_70"}, "target"),
        ({"target": "sm_100a"}, "sm_90a"),
        ({"fill": "cp.async"}, "threads"),
        ({"tensor": ((512, 512), None, "f32")}, "f16, bf16, tf32, e4m3, e5m2, s8, u8"),
        ({"tensor": ((4, 4, 512), None, "f16"), "tile": (2, 4, 64)}, "matrix"),
    ],
)
def test_bad_questions(change: dict[str, object], says: str) -> None:
    question: dict[str, object] = {"tensor": ((512, 512), None, "bf16"), "tile": (64, 64), "consumers": ["wgmma.A"]}
    with pytest.raises(la.MalformedError) as caught:
        la.suggest(**(question | change))
    assert says in str(caught.value)


def test_a_budget_ends_the_search() -> None:
    with pytest.raises(la.BudgetError):
        la.suggest(((512, 512), None, "bf16"), (64, 64), seconds=0)


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize(("consumer", "dtype"), [("tcgen05.A", "bf16"), ("tcgen05.B", "u8")])
def test_operands_of_tensor_memory_are_served_where_they_exist(target: str, consumer: str, dtype: str) -> None:
    found = la.suggest(((512, 512), None, dtype), (64, 32), [consumer], target, fill="threads")
    assert found.choices
    for choice in found:
        assert isinstance(la.admissible(choice.smem, consumer, target, dtype), la.Admitted)
        assert choice.operands[0].table().tolist() == (
            8 * np.dtype({"bf16": "u2", "u8": "u1"}[dtype]).itemsize
            * np.asarray(choice.smem.table(), dtype=np.int64).reshape((64, 32), order="F")
        ).tolist()  # fmt: skip
    for loser in found.losers[:8]:
        assert not isinstance(la.admissible(loser.smem, consumer, target, dtype), la.Admitted)


def test_operands_of_other_types_are_suggested() -> None:
    for dtype, k in (("u8", 32), ("tf32", 8)):
        best = la.suggest(((512, 512), None, dtype), (64, 64), ["wgmma.A"]).best
        assert len(best.operands[0].tiles) == 64 // k


def test_a_consumer_that_the_target_has_not_is_refused_with_what_it_has() -> None:
    with pytest.raises(la.MalformedError, match=r"(?s)LA412.*gfx942 has no wgmma.*it has mfma"):
        la.suggest(((512, 512), None, "bf16"), (64, 64), ["wgmma.A"], "gfx942", fill="threads")


@pytest.mark.parametrize(
    ("dtype", "carrier"), [("e4m3", "u8"), ("torch.float8_e5m2", "u8"), ("int8", "u8"), ("u8", "u8")]
)
def test_the_answer_names_the_type_that_was_asked(dtype: str, carrier: str) -> None:
    tensor = la.Tensor((512, 512), dtype=dtype)
    name = {"e4m3": "e4m3", "torch.float8_e5m2": "e5m2", "int8": "s8", "u8": "u8"}[dtype]
    assert (tensor.element, tensor.dtype) == (name, carrier)
    assert tensor == la.Tensor((512, 512), dtype=carrier)
    assert f"dtype='{name}'" in repr(tensor)
    found = la.suggest(tensor, (64, 64), ["wgmma.A"])
    assert found.question.startswith(f"tile [64, 64] of {name} (512,512):(512,1)")
    assert ("of u8; " in found.best.why) == (name != "u8")
    assert found.best.plan.tensor_map.dtype == carrier
    assert found.best.operands[0].problem.dtype == name
    assert [choice.smem for choice in found] == [
        choice.smem for choice in la.suggest(((512, 512), None, carrier), (64, 64), ["wgmma.A"])
    ]
    (operand,) = la.suggest(tensor, (64, 64), ["tcgen05.A"], "sm_100a", fill="threads").best.operands
    assert name in str(operand)


def test_a_type_that_is_no_operand_is_refused() -> None:
    with pytest.raises(la.MalformedError, match="not 'e4m3fnuz'"):
        la.suggest(((512, 512), None, "e4m3fnuz"), (64, 64), ["wgmma.A"])
