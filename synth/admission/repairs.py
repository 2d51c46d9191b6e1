"""Repairs of a refusal, each re-checked and admitted, cheapest first.

Repairs are ordered by ``Cost`` (bytes added; then instructions, copies or descriptors; then entries changed), then by
the order of kinds in ``ideas`` and by text. Each kind yields one repair, the cheapest admitted among those ``ideas``
tries. Two changes at once, types wider than 16 bits and larger tiles are tried only if nothing else is admitted. A kind
is dropped after ``REPAIR_TRIES`` refusals, and the search stops after ``REPAIR_SECONDS``.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Cost, LayoutError, Repair
from layoutalg.ground.layout import Layout
from layoutalg.ground.limits import REPAIR_SECONDS, REPAIR_TRIES
from layoutalg.ground.listed import ListedLayout
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.tensor import Tensor
from layoutalg.synth.admission import movement
from layoutalg.synth.admission.ideas import Idea, ideas, last_ideas
from layoutalg.synth.admission.request import Finder, Request
from layoutalg.targets.consumers import Absent, consumer
from layoutalg.targets.registry import lookup

SCHEMA = "layoutalg/admission-request/1"
Stated: TypeAlias = Callable[[Admitted], Mapping[str, object] | None]
MOVED = ("store the tile densely", "store the tile transposed")
READERS = ("wgmma", "ldmatrix", "tcgen05")
"""Kinds that state how data in the refused layout gets to the new one, and the consumers that read it from there."""
ALIGNED = 1024
"""A base alignment that satisfies every rule."""


@dataclass(frozen=True)
class _Ask:
    """How a repaired request is checked and written."""

    request: Request
    find: Finder
    stated: Stated | None = None
    least: Callable[[Request], int] = lambda _: 1


_Found: TypeAlias = dict[int, tuple[Cost, int, Repair]]
"""The cheapest repair of each kind: its cost, the number of the kind, the repair."""


def ranked(
    request: Request,
    find: Finder,
    others: Mapping[str, str] | None = None,
    grain_bits: int = 128,
    stated: Stated | None = None,
    own: Sequence[Callable[[Request], Iterator[Idea]]] = (),
    least: Callable[[Request], int] = lambda _: 1,
) -> tuple[Repair, ...]:
    """Return the repairs of a request that was refused.

    Args:
        request: The refused request.
        find: The consumer's finder; called for every idea.
        others: Alternative consumers, with the kind of that repair.
        grain_bits: Alignment of rows.
        stated: Document of a repaired request, from its answer; by default ``document``.
        own: Kinds specific to the consumer.
        least: Lower bound on the instructions for a request's tile.
    """
    ask = _Ask(request, find, stated, least)
    found: _Found = {}
    with contextlib.suppress(BudgetError), clock.within(REPAIR_SECONDS):  # everything found in time was admitted
        mine = [kind(request) for kind in own]
        _gather(found, ideas(request, others or {}, grain_bits, mine), ask)
        if not found and request.align_bytes < ALIGNED:
            aligned = replace(request, align_bytes=ALIGNED)
            _gather(found, _with_base(ideas(aligned, others or {}, grain_bits)), ask)
        if not found:
            _gather(found, last_ideas(request, grain_bits), ask)
    return _sorted(found)


def ranked_consumers(
    request: Request, find: Finder, others: Mapping[str, tuple[str, str]], own: Iterable[Idea] = ()
) -> tuple[Repair, ...]:
    """Return the consumers that accept the unchanged layout, fewest instructions first.

    Args:
        request: The refused request.
        find: Their finder.
        others: Consumers, with the name and the detail of the repair.
        own: A further kind.
    """
    found: _Found = {}
    kinds = (
        iter([Idea(name, detail, 0, 1, (replace(request, consumer=consumer),))])
        for consumer, (name, detail) in others.items()
    )
    with contextlib.suppress(BudgetError), clock.within(REPAIR_SECONDS):
        _gather(found, itertools.chain(kinds, [iter(own)]), _Ask(request, find))
    return _sorted(found)


def _sorted(found: _Found) -> tuple[Repair, ...]:
    order = sorted(found.values(), key=lambda entry: (*entry[:2], entry[2].detail))
    different = {repair.detail: repair for _, _, repair in reversed(order)}
    return tuple(repair for _, _, repair in order if different[repair.detail] is repair)


def _with_base(kinds: Iterable[Iterator[Idea]]) -> Iterator[Iterator[Idea]]:
    for kind in kinds:
        yield (replace(idea, detail=f"{idea.detail}, align_bytes={ALIGNED}", changes=idea.changes + 1) for idea in kind)


def _gather(found: _Found, kinds: Iterable[Iterator[Idea]], ask: _Ask) -> None:
    """Add the cheapest repair of every kind."""
    for place, kind in enumerate(kinds):
        best: tuple[Cost, int, Repair] | None = None
        chosen = ask.request
        for tried, idea in enumerate(kind):
            clock.check("repairs")
            if tried == REPAIR_TRIES or (best is not None and idea.added_bytes > best[0].added_bytes):
                break
            if best is not None and best[0] <= Cost(idea.added_bytes, sum(map(ask.least, idea.parts)), idea.changes):
                continue
            answers = _asked(idea, ask.find)
            if answers is None:
                continue
            many = idea.extra + sum(instructions(answer.descriptor) for answer in answers)
            cost = Cost(idea.added_bytes, many, idea.changes)
            if best is None or cost < best[0]:
                told = ask.stated(answers[0]) if ask.stated is not None and len(answers) == 1 else None
                told = _document(idea.parts) if told is None else told
                best = cost, place, Repair(idea.kind, idea.detail, told, cost, idea.movement)
                chosen = idea.parts[0]
        if best is not None:
            found[place] = best
            if best[2].name in MOVED and chosen.consumer.partition(".")[0] in READERS:
                with contextlib.suppress(LayoutError):  # the repair stands without it
                    found[place] = *best[:2], replace(best[2], movement=movement.moved(ask.request, chosen))


def _asked(idea: Idea, find: Finder) -> list[Admitted] | None:
    """Return the answers of all parts, None if any is not admitted."""
    answers = []
    for part in idea.parts:
        if isinstance(consumer(part.consumer, lookup(part.target)), Absent):
            return None
        try:
            answer = find(part)
        except BudgetError:
            raise
        except LayoutError:  # the changed request is malformed
            return None
        if not isinstance(answer, Admitted):
            return None
        answers.append(answer)
    return answers


def instructions(plan: Any) -> int:
    """Return how many instructions, copies or descriptors carry a layout.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> instructions(admissible("(64,64):(64,1)", "ds_read_b128", "gfx942").descriptor)
        8
    """
    if isinstance(count := getattr(plan, "count", None), int):
        return count
    for name in ("issues", "tiles", "copies", "addresses", "bases"):
        held = getattr(plan, name, None)
        if isinstance(held, tuple):
            return len(held)
    tiling = getattr(plan, "tiling", None)
    return 1 if tiling is None else len(tiling.registers)


def document(request: Request) -> dict[str, object] | None:
    """Return a request as JSON-ready data that ``admissible`` accepts as a layout; None if it has no text.

    Example:
        >>> from layoutalg.synth.admission.request import request_of
        >>> asked = request_of("(64,64):(72,1)", "wgmma.A", "sm_90a", "bf16", None, 1024, {})
        >>> document(asked)["layout"]
        '(64,64):(72,1)'
    """
    layout: object = str(request.layout)
    if isinstance(request.layout, ListedLayout):
        layout = request.offsets.tolist()
    options = {name: _told(value) for name, value in request.options.items()}
    if request.problem is not None or None in options.values():
        return None
    return {
        "schema": SCHEMA, "layout": layout, "consumer": request.consumer, "target": request.target,
        "dtype": request.dtype.name, "tile": list(request.extents), "align_bytes": request.align_bytes,
        "options": options,
    }  # fmt: skip


def _told(value: object) -> object:
    """Return an option as JSON-ready data that round-trips; None if it cannot."""
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, Tensor):
        plain = Tensor(value.shape, value.strides, value.dtype)
        return [list(value.shape), list(value.strides), value.dtype] if plain == value else None
    if isinstance(value, Layout) and not isinstance(value, ListedLayout):
        return str(value)
    return list(value) if isinstance(value, tuple) and all(isinstance(part, int) for part in value) else None


def _document(parts: tuple[Request, ...]) -> Mapping[str, object] | None:
    told = [document(part) for part in parts]
    if None in told:
        return None
    return told[0] if len(told) == 1 else {"schema": SCHEMA, "parts": told}
