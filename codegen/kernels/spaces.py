"""Spaces of the choices of products and attentions: legal is what their builders build, by the same checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final, TypedDict

from layoutalg.codegen.kernels.attention import checked_attention, checked_schedule
from layoutalg.codegen.kernels.gemm import checked_form, checked_product
from layoutalg.codegen.kernels.gemm_forms import CLUSTERS, GROUP_ROWS, SPANS, WARPS, Form
from layoutalg.synth.search.roofline import CHECK, Work
from layoutalg.synth.search.space import Choice, Space
from layoutalg.targets.global_memory import LINE_BYTES
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES
from layoutalg.targets.pipeline_costs import pipeline_costs
from layoutalg.targets.roofs import roofs

FORMS: Final[dict[str, tuple[Any, ...]]] = {
    "rows": (64, 128, 192, 256), "columns": (64, 96, 128, 192, 256), "consumers": (1, 2, 3), "leaving": (32, 64, 128),
    "cluster": (1, 2), "behind": (0, 1), "depth": (64, 128, 256), "swizzle": tuple(SPANS),
    "split": (1, 2, 4),
}  # fmt: skip
"""Fields of ``Form``; see ``form_of`` for the others."""
TOGETHER: Final = 16
"""Rows of tiles that are taken together."""
EXCHANGE: Final = 2.4
"""Microseconds in which blocks exchange partial sums: of forms with and without in ``gemm_forms.TIMES``."""
SCHEDULES: Final[dict[str, tuple[Any, ...]]] = {
    "queries": (64, 128, 192), "keys": (64, 80, 96, 112, 128, 160, 176, 192, 256), "stages": (1, 2, 3, 4),
    "ahead": (False, True), "alternate": (False, True),
}  # fmt: skip


def gemm_space(
    shape: Sequence[int],
    dtype: str = "bf16",
    target: str = "sm_90a",
    *,
    result: str = "bf16",
    major_a: str = "K",
    major_b: str = "K",
    choices: Mapping[str, Sequence[object]] | None = None,
) -> Space:
    """Return the space of the forms of ``gemm_kernel``; ``form_of`` is the form of a choice.

    Args:
        shape: (M, N, K).
        dtype: Type of A and B.
        target: Architecture.
        result: Type of D.
        major_a: As of ``gemm_kernel``.
        major_b: As of ``gemm_kernel``.
        choices: Values of fields of ``Form`` that replace the usual ones.

    Raises: MalformedError: LA945, LA886, e.g. rows that the copy engine does not copy.

    Example:
        >>> some = {"depth": (128,), "swizzle": ("128B",), "leaving": (128,)}
        >>> best = gemm_space((8192, 8192, 8192), choices=some).ranked()[0][0]
        >>> best.choice["rows"], best.choice["columns"], best.bound
        (256, 128, 'mma')
    """
    extents, kind = checked_product(shape, dtype, target, result, major_a, major_b)
    size, majors = kind.bits // 8, (major_a, major_b)
    m, n, k = extents
    rows = [(k if major == "K" else whole) * size for major, whole in zip(majors, (m, n), strict=True)]
    if any(length % CHUNK_BYTES for length in (*rows, 2 * n)):
        raise CHECK.malformed("shape", f"must have rows of A, B and D of multiples of {CHUNK_BYTES} bytes", extents)

    def legal(choice: Choice) -> None:
        checked_form(form_of(choice), extents, size, target, *majors)

    def work(choice: Choice) -> Work:
        return form_work(
            checked_form(form_of(choice), extents, size, target, *majors), extents, kind.name, target, majors
        )

    what = f"gemm {m} {n} {k} {kind.name} {result} {major_a} {major_b}"
    guard = f"M == {m}, N == {n}, K == {k}"
    return Space(what, _replaced(FORMS, choices, Form.__slots__), legal, work, target, kind.name, guard)


def form_of(choice: Choice) -> Form:
    """Return the form of a choice of ``gemm_space``: as many stages as fit, 16 rows of tiles together.

    Example:
        >>> form_of({"rows": 128, "columns": 128, "cluster": 2}).together
        8
    """
    given = dict(CHECK.pairs(choice, "choice"))
    for name in given:
        CHECK.choice(name, "choice", Form.__slots__)
    if missing := [name for name in ("rows", "columns") if name not in given]:
        raise CHECK.malformed("choice", f"must have {' and '.join(missing)}", choice)
    cluster = CHECK.integer(given.get("cluster", 1), "cluster", 1, 9)
    return Form(**({"together": max(1, TOGETHER // cluster)} | given))


def _replaced(
    usual: Mapping[str, tuple[Any, ...]], choices: Mapping[str, Sequence[object]] | None, names: Sequence[str]
) -> dict[str, tuple[Any, ...]]:
    given = {} if choices is None else dict(CHECK.pairs(choices, "choices"))
    for name in given:
        CHECK.choice(name, "choices", names)
    return dict(usual) | given


def form_work(
    form: Form, shape: tuple[int, int, int], dtype: str, target: str, majors: tuple[str, str] = ("K", "K")
) -> Work:
    """Return what a product of a form does, a block for each tile.

    Args:
        form: The form, with its stages.
        shape: (M, N, K).
        dtype: Type of A and B.
        target: Architecture.
        majors: Contiguous dimensions of A and B.
    """
    (m, n, k), costs, chip = shape, pipeline_costs(target), roofs(target)
    size = 1 if costs.macs[dtype] > costs.macs["bf16"] else 2
    depth = form.step_bytes // size
    steps = ceil(k / (depth * form.split))
    lines = [
        _lines(extent, form.step_bytes, size, major, (k if major == "K" else whole) * size)
        for extent, major, whole in zip((form.rows, form.columns / form.cluster), majors, (m, n), strict=True)
    ]
    kib = (form.rows + form.columns) * form.step_bytes / 1024
    issues = 2 * ceil(form.step_bytes / SPANS[form.swizzle])
    engine, arrives = costs.load(kib, issues)
    copies = max(engine, sum(lines) * LINE_BYTES / chip.copied_bytes)
    waits = chip.step + costs.crossing + costs.mma_latency * (not form.behind)
    part = form.consumers * GROUP_ROWS * form.leaving * 2
    stores = (form.parts - 1) * costs.store(part / 1024, form.consumers)[1] // 2
    leave = form.parts * (part // 128 + costs.crossing) + stores
    if form.split > 1:
        leave += int(EXCHANGE * chip.clock_mhz)
    loaded = (form.rows + form.columns) * form.step_bytes * steps
    return Work(
        blocks=ceil(m / (form.rows * form.cluster)) * ceil(n / form.columns) * form.ctas,
        dtype=dtype,
        macs=form.rows * form.columns * depth * steps,
        at_once=CLUSTERS[form.ctas] * form.ctas,
        waits=int(steps * waits),
        copies=int(steps * copies),
        alone=int(leave + arrives + costs.crossing + costs.mma_latency),
        shared_bytes=loaded + (form.rows + form.columns * form.consumers) * form.step_bytes * steps,
        issues=(form.rows // GROUP_ROWS * (form.step_bytes // 32) * WARPS + issues) * steps,
        latency=int(steps * (arrives + costs.mma(form.rows, form.columns, depth, dtype)[1] + costs.crossing))
        // max(2, form.stages),
        hbm_bytes=(m * k + n * k) * size + m * n * 2,
    )


def _lines(extent: float, step_bytes: int, size: int, major: str, row_bytes: int) -> float:
    """Lines of the L2 cache of an operand's part of a step; rows that begin anywhere touch one more."""
    many, length = (extent, step_bytes) if major == "K" else (step_bytes / size, extent * size)
    return many * (length / LINE_BYTES + (row_bytes % LINE_BYTES != 0))


def attention_space(
    shape: Sequence[int],
    dtype: str = "bf16",
    target: str = "sm_90a",
    *,
    causal: bool = False,
    choices: Mapping[str, Sequence[object]] | None = None,
) -> Space:
    """Return the space of the tiles, rings and orders of ``attention_kernel``; ``attention_options`` are its options.

    Args:
        shape: (batches times heads, queries, keys, columns).
        dtype: Type of Q, K, V and O.
        target: Architecture.
        causal: As of ``attention_kernel``.
        choices: Values that replace the usual ones.

    Example:
        >>> ranked, refused = attention_space((32, 4096, 4096, 128)).ranked()
        >>> ranked[0].choice["queries"], ranked[0].choice["ahead"]
        (128, True)
    """
    (batches, queries, keys, columns), kind = checked_attention(shape, dtype, target)
    CHECK.kind(causal, bool, "causal")
    costs = pipeline_costs(target)

    def legal(choice: Choice) -> None:
        options = attention_options(choice)
        consumers = choice["queries"] // GROUP_ROWS
        flags = options["ahead"], options["alternate"]
        checked_schedule(options["tile"], columns, options["stages"], consumers, target, *flags)

    def work(choice: Choice) -> Work:
        tm, tn = choice["queries"], choice["keys"]
        consumers, tiles, blocks = tm // GROUP_ROWS, ceil(keys / tn), batches * ceil(queries / tm)
        if causal:  # on the average of the blocks
            tiles = max(
                1, ceil(sum(ceil(min(keys, last + tm) / tn) for last in range(0, queries, tm)) * batches / blocks)
            )
        multiply = costs.mma(tm, tn, 2 * columns, kind)[0]
        each = 1 / costs.sfu_lanes + 1 / costs.compare_lanes + 2 / costs.float_lanes + 1 / costs.convert_lanes
        softmax = tm * tn * each + tm * columns / costs.float_lanes
        # other consumers multiply meanwhile; with the next scores ahead, so does the consumer itself
        beside = consumers - 1 + choice["ahead"] + choice["alternate"] / 2
        waits = max(0.0, softmax - multiply * beside / consumers) + 2 * costs.crossing + costs.mma_latency
        turn = multiply + waits  # of a pair of slots, beside the loads
        engine, arrives = costs.load(tn * columns * 2 / 1024, columns * 2 // SPANS["128B"])
        return Work(
            blocks=blocks,
            dtype=kind,
            macs=2 * tm * tn * columns * tiles,
            waits=int(waits * tiles),
            copies=2 * engine * tiles,
            alone=int(2 * arrives + tm * columns * 2 / 128 + softmax / 2),
            issues=int(4 * softmax * tiles),
            latency=int(tiles * (arrives + turn + costs.crossing)) // choice["stages"],
            hbm_bytes=2 * batches * (queries + keys) * columns * 2,
        )

    what = f"attention {batches} {queries} {keys} {columns} {kind}{' causal' * causal}"
    guard = f"heads == {batches}, queries == {queries}, keys == {keys}, columns == {columns}"
    return Space(what, _replaced(SCHEDULES, choices, tuple(SCHEDULES)), legal, work, target, kind, guard)


class AttentionOptions(TypedDict):
    """Options of ``attention_kernel`` that a choice sets."""

    tile: tuple[int, int]
    stages: int
    ahead: bool
    alternate: bool


def attention_options(choice: Choice) -> AttentionOptions:
    """Return the options of ``attention_kernel`` for a choice of ``attention_space``.

    Example:
        >>> attention_options({"queries": 128, "keys": 64, "stages": 2, "ahead": True, "alternate": False})["tile"]
        (128, 64)
    """
    given = dict(CHECK.pairs(choice, "choice"))
    if set(given) != set(SCHEDULES):
        raise CHECK.malformed("choice", f"must have {', '.join(SCHEDULES)}", choice)
    tile = given.pop("queries"), given.pop("keys")
    return {"tile": tile, **given}  # type: ignore[typeddict-item]
