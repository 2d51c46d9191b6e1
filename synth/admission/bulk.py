"""Decide whether bulk copies (``cp.async.bulk`` without a tensor map) move a tile between global and shared memory.

A copy moves whole 16-byte chunks that are contiguous and aligned on both sides. So with given pitches the maximal runs
contiguous on both sides are forced; copies exist exactly if each run starts 16-byte aligned on both sides and consists
of whole chunks, and one copy per run is then minimal. Without a tensor the pitches are unknowns of the linear system of
chunks (``synth.tensormap.pitches.chunked``), which has a solution exactly if copies exist for some tensor, because
chunks can be copied one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.bulk import BulkPlan
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import CHECK, Request, misaligned, no_chunks
from layoutalg.synth.tensormap.pitches import Chunks, chunked
from layoutalg.targets.nvidia.bulk import INSTRUCTIONS, REDUCTIONS, UNIT_BYTES, instruction
from layoutalg.targets.registry import lookup

_OF_CHUNKS = {"SMEM_DENSE": "BULK_CONTIGUOUS", "BOX_INNER_16B": "BULK_SIZE", "INNER_CONTIGUOUS": "BULK_CONTIGUOUS",
              "STRIDE_ALIGN": "BULK_ALIGN"}  # fmt: skip
MOST_CTAS = 16


def find_bulk(request: Request) -> Admission:
    """Return the copies, or why there are none.

    Options: ``tensor``: the tensor that contains the tile, a whole number of tiles; ``issues``: maximum number of
    copies; ``ctas`` (``bulk.multicast`` only): how many blocks of the cluster receive the tile.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> found = admissible("(8,64):(64,1)", "bulk", tensor=((64, 512), None, "bf16"))
        >>> len(found.descriptor.copies), found.descriptor.copies[1]
        (8, (1024, 128, 128))
        >>> print(admissible("(8,64):(65,1)", "bulk").rules)
        ('BULK_CONTIGUOUS',)
    """
    answer = _found(request)
    if not isinstance(answer, Refused):
        return answer
    if request.problem is None:
        answer = answer.deferred(repairs=lambda: ranked(request, _found, own=[_more_copies, _better_tensor]))
    return answer.certified(lambda: no_chunks(request))


def _more_copies(request: Request) -> Iterator[Idea]:
    """Allow one copy per run."""
    options = {name: value for name, value in request.options.items() if name != "issues"}
    if "issues" in request.options:
        answer = _found(replace(request, options=options))
        if isinstance(answer, Admitted):
            many = len(answer.descriptor.copies)
            changed = replace(request, options={**options, "issues": many})
            yield Idea("allow more copies", f"issues={many}", 0, 1, (changed,))


def _better_tensor(request: Request) -> Iterator[Idea]:
    """Round the tensor's base and pitches up to chunks, keeping each pitch past the span of the faster dimensions."""
    if "tensor" not in request.options:
        return
    tensor, size = tensor_of(request.options["tensor"]), request.element_bytes
    grain = max(1, UNIT_BYTES // size)
    base = max(tensor.base_align_bytes, UNIT_BYTES)
    strides, reach, old = list(tensor.strides), 0, 0
    for dim in sorted(range(len(strides)), key=lambda dim: strides[dim]):
        stride, extent = strides[dim], tensor.shape[dim]
        if stride > 1:
            strides[dim] = -(-max(stride, reach if stride > old else 0) // grain) * grain
        old, reach = old + stride * (extent - 1), reach + strides[dim] * (extent - 1)
    changes = sum(a != b for a, b in zip(strides, tensor.strides, strict=True)) + (base != tensor.base_align_bytes)
    if changes:
        made = Tensor(tensor.shape, tuple(strides), tensor.element, base)
        changed = replace(request, options={**request.options, "tensor": made})
        detail = f"strides {tuple(strides)}, base_align_bytes={base}"
        yield Idea("pad the tensor", detail, max(0, (reach - old) * size), changes, (changed,))


def _found(request: Request) -> Admission:
    multicast = request.consumer == "bulk.multicast"
    request.only("tensor", "issues", *(["ctas"] if multicast else []))
    CHECK.choice(request.consumer, "consumer", INSTRUCTIONS)
    name = request.dtype.name
    if request.dtype.bits % 8:
        return Unknown(f"{request.dtype.bits}-bit elements: describe the layout in bytes", ("dtype",))
    kinds = REDUCTIONS.get(request.consumer.rpartition(".")[2]) if ".reduce." in request.consumer else None
    if kinds is not None and name not in kinds:
        text = f"{request.consumer} does not support {name}; only {', '.join(kinds)}"
        return request.refused(Broken("BULK_REDUCE_DTYPE", text, {}, conditions.named(name, *kinds)))
    if request.align_bytes % UNIT_BYTES:
        text = f"the tile's base is aligned to {request.align_bytes} bytes; a copy needs {UNIT_BYTES}"
        return request.refused(misaligned("BULK_ALIGN", text, request.align_bytes, UNIT_BYTES))
    strides: tuple[int, ...] | None = None
    tensor = _tensor(request)
    if isinstance(tensor, Unknown):
        return tensor
    if tensor is not None:
        if len(tensor.shape) != len(request.extents):
            raise CHECK.malformed("tensor", f"must have {len(request.extents)} dimensions", tensor.shape)
        strides = tensor.strides
        broken = _origins(request, tensor.shape, strides, tensor.base_align_bytes)
        if broken is not None:
            return broken
    chunks = chunked(request.offsets, request.element_bytes, strides)
    if isinstance(chunks, Broken):
        return request.refused(replace(chunks, rule=_OF_CHUNKS.get(chunks.rule, chunks.rule)))
    found = strides or chunks.system.some()
    if found is None:
        return Unknown("usable pitches exist, but none were found", ("pitches",))
    return _planned(request, chunks, found)


def _tensor(request: Request) -> Tensor | Unknown | None:
    """Return the tensor that contains the tile, from the option or the problem; None if any tensor will do."""
    stated = request.problem
    if stated is None:
        given = request.options.get("tensor")
        return None if given is None else tensor_of(given)
    wanted = "load" if request.consumer in ("bulk", "bulk.multicast") else "store"
    if stated.direction != wanted:
        raise CHECK.malformed("layout", f"must be a {wanted} problem", stated.direction)
    if request.options.get("tensor") is not None:
        raise CHECK.malformed("tensor", "must be None, because the problem states it", request.options["tensor"])
    tensor = Tensor(stated.global_shape, stated.global_strides, stated.dtype, stated.base_align_bytes)
    plain = TensorMapProblem.of(tensor, stated.tile, request.layout, arch=stated.arch, direction=wanted)
    if any(
        getattr(stated, name) != getattr(plain, name)
        for name in ("bounds", "base_elem_offset", "element_strides", "origin_multiple")
    ):
        because = "a bulk copy has no bounds, element strides, base offset or origin multiples; the problem sets them"
        return Unknown(because, ("bulk",))
    return tensor


def _planned(request: Request, chunks: Chunks, strides: tuple[int, ...]) -> Admission:
    """Return the maximal runs as copies."""
    size = request.element_bytes
    places = chunks.place
    source = (chunks.points * np.array(strides, dtype=np.int64)).sum(axis=1) * size
    if (request.problem is not None or request.options.get("tensor") is not None) and int(source[0]) % UNIT_BYTES:
        text = f"the chunk at shared byte {int(places[0])} is at global byte {int(source[0])} of the tile"
        return request.refused(Broken("BULK_ALIGN", f"{text}; a copy must start {UNIT_BYTES}-byte aligned"))
    cut = (places[1:] - places[:-1] != size) | (source[1:] - source[:-1] != size)
    first = np.concatenate(([0], np.flatnonzero(cut) + 1))
    lengths = np.diff(np.concatenate((first, [places.size]))) * size
    copies = tuple(
        (int(start), int(to), int(many)) for start, to, many in zip(source[first], places[first], lengths, strict=True)
    )
    most = request.options.get("issues")
    if most is not None and len(copies) > CHECK.integer(most, "issues", 1):
        text = f"{len(copies)} runs are contiguous on both sides; at most {most} copies are allowed"
        return request.refused(Broken("BULK_COPIES", text))
    ctas = CHECK.integer(request.options.get("ctas", 1), "ctas", 1, MOST_CTAS + 1)
    name = instruction(request.consumer, request.dtype.name)
    plan = BulkPlan(name, size, request.extents, strides, copies, ctas)
    low = int(source.min())  # certificate tables must be non-negative
    seal = certify.same_tables(plan.sources(places) - low, source - low, f"{name} moves the requested tile")
    return request.admitted(plan, seal, "measured" if lookup(request.target).measured else "documented")


def _origins(request: Request, shape: tuple[int, ...], strides: tuple[int, ...], base: int) -> Refused | None:
    """Return why some tile of the grid is misaligned or passes the end of the tensor."""
    if base % UNIT_BYTES:
        text = f"the tensor's base is aligned to {base} bytes; a copy needs {UNIT_BYTES}"
        return request.refused(Broken("BULK_ALIGN", text))
    for dim, (extent, tile, stride) in enumerate(zip(shape, request.extents, strides, strict=True)):
        if extent % tile:
            text = f"dimension {dim} has {extent} elements, not whole tiles of {tile}; a copy would pass its end"
            return request.refused(Broken("BULK_BOUNDS", text))
        step = tile * stride * request.element_bytes
        if extent > tile and step % UNIT_BYTES:
            text = f"tiles along dimension {dim} start {step} bytes apart, not a multiple of {UNIT_BYTES}"
            return request.refused(Broken("BULK_ALIGN", text))
    return None
