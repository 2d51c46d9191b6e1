"""Every single way that is known to break a pipeline, tried on a document, and what may then go wrong.

A class is a row of the table of known bugs: B1 no bytes expected, B2 other bytes, B3 bytes and arrival in the wrong
order, B4 first parity, B5 number of arrivals, B6 no wait or no release, B7 early release, B8 number of stages, B9 a
lap, B10 counters, B11 roles that run differently often, B12 fences, B14 groups of stores, B15 groups of multiplies, B16
clusters, B17 the end of the kernel, B18 slots, B19 resources, B20 barriers of roles. B13 (initialisation of barriers)
and B21 (a wait that does not loop, scopes) are not in a document; ``broken_kernels`` breaks the text.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from judges import cluster_judge, pipeline_judge
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.pipeline import verify
from layoutalg.proofs.pipeline.decision import Refuted

Document = dict[str, Any]
Op = dict[str, Any]
Change = Callable[[list[Op], int], list[Op]]
PARTS = ("pre", "loop", "post")
HANG, RACE, BYTES, UB, NEVER = "deadlock", "race", "tx_mismatch", "ub", "infeasible"
WRONG = frozenset((HANG, RACE, UB))
"""What may happen where a role goes on too early or waits for what does not come."""
ANY = WRONG | {BYTES}
ACCESSES = ("read", "write", "mma", "tma_store", "tma_load")
SHARED_BYTES = 232448
"""Shared memory of a block of sm_90 (CUDA C++ programming guide)."""
_FROM = "from"
"""Where an op stood before the change: its part and its place."""


@dataclass(frozen=True)
class Break:
    """A document with one mistake.

    Args:
        bug: The class.
        what: Where and what.
        kinds: What may be found.
        document: The document.
        places: (role, part, place) of its ops to where they stood.
        renames: Whether an op names another buffer, so that its text would not follow.
    """

    bug: str
    what: str
    kinds: frozenset[str]
    document: Document = field(repr=False)
    places: dict[tuple[str, str, int], tuple[str, int]] = field(repr=False)
    renames: bool = False


def breaks(document: Document, together: bool = False) -> Iterator[Break]:
    """Yield every document with one mistake more.

    Args:
        document: A document.
        together: Whether equal roles (NAME0, NAME1, ...) get the same mistake, as they share their text.
    """
    yield from _in_ops(document, together)
    yield from _in_roles(document, together)
    yield from _in_rings(document)


def _break(document: Document, bug: str, what: str, kinds: frozenset[str], change: Callable[[Document], object],
           renames: bool = False) -> Break:  # fmt: skip
    made = copy.deepcopy(document)
    for _, part, ops in _parts(made):
        for place, op in enumerate(ops):
            op[_FROM] = (part, place)
    change(made)
    places = {}
    for role, part, ops in _parts(made):
        for place, op in enumerate(ops):
            if _FROM in op:
                places[role["name"], part, place] = op.pop(_FROM)
    return Break(bug, what, kinds, made, places, renames)


def _parts(document: Document) -> Iterator[tuple[dict[str, Any], str, list[Op]]]:
    for role in document["roles"]:
        for part in PARTS:
            if part in role:
                yield role, part, role[part]


def groups(document: Document, together: bool) -> list[list[str]]:
    """The names of roles that change alike: all NAME0, NAME1, ... together, or each alone."""
    found: dict[str, list[str]] = {}
    for role in document["roles"]:
        name = role["name"]
        found.setdefault(re.sub(r"\d+$", "", name) if together else name, []).append(name)
    return list(found.values())


# ------------------------------------------------------------------------------------------------------------------ ops


@dataclass(frozen=True)
class Edit:
    """A change of an op or of its place."""

    bug: str
    what: str
    kinds: frozenset[str]
    change: Change
    renames: bool = False


def _in_ops(document: Document, together: bool) -> Iterator[Break]:
    roles = {role["name"]: role for role in document["roles"]}
    for group in groups(document, together):
        first = roles[group[0]]
        for part in PARTS:
            for place, op in enumerate(first.get(part, [])):
                for edit in _edits(document, part, first[part], place):

                    def change(made: Document, edit: Edit = edit, part: str = part, place: int = place,
                               group: list[str] = group) -> None:  # fmt: skip
                        for role in made["roles"]:
                            if role["name"] in group:
                                role[part] = edit.change(role[part], place)

                    what = f"{group[0]}.{part}[{place}] {op['op']} {op.get('bar', op.get('buf', ''))}: {edit.what}"
                    yield _break(document, edit.bug, what, edit.kinds, change, edit.renames)


def _set(**entries: Any) -> Change:
    """Set entries of an op; None removes one."""

    def change(ops: list[Op], place: int) -> list[Op]:
        made = {key: value for key, value in (ops[place] | entries).items() if value is not None}
        return [*ops[:place], made, *ops[place + 1 :]]

    return change


def _delete(ops: list[Op], place: int) -> list[Op]:
    return [*ops[:place], *ops[place + 1 :]]


def _twice(ops: list[Op], place: int) -> list[Op]:
    return [*ops[: place + 1], copy.deepcopy(ops[place]), *ops[place + 1 :]]


def _move(to: int) -> Change:
    """Move an op before the one that stands at a place now."""

    def change(ops: list[Op], place: int) -> list[Op]:
        rest = _delete(ops, place)
        at = to if to <= place else to - 1
        return [*rest[:at], ops[place], *rest[at:]]

    return change


def _edits(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    """The mistakes that an op can have."""
    op = ops[place]
    kind = op["op"]
    if kind in OPS:
        yield from OPS[kind](document, part, ops, place)
    if part == "loop" and kind in ("wait", "arrive", "arrive_tx", "expect", "tma_load"):
        yield from _guards(op)
    if "to" in op or "multicast" in op:
        yield from _reaches(document, op)
    elif kind == "tma_load" and document.get("cluster", 1) > 1:
        everyone = list(range(document["cluster"]))
        yield Edit("B16", "also to the other blocks", ANY, _set(multicast=everyone))
    if kind in ACCESSES:
        yield from _accesses(document, ops, place)


def _guards(op: Op) -> Iterator[Edit]:
    """Not in the first or last iteration, or in one more."""
    guard = op.get("guard", {})
    for end in ("from", "until"):
        for by in (1, -1):
            moved = guard.get(end, 0) + by
            if moved >= 0:
                yield Edit("B11", f"guard {end} {moved}", ANY, _set(guard={**guard, end: moved}))


def _reaches(document: Document, op: Op) -> Iterator[Edit]:
    """Not in all blocks of the cluster, or in others."""
    key, size = ("to", document["cluster"]) if "to" in op else ("multicast", document["cluster"])
    given = list(range(size)) if op[key] == "all" else op[key]
    if not isinstance(given, list) or isinstance(given[0], list):
        return
    yield Edit("B16", "in the own block alone", ANY, _set(**{key: None}))
    for rank in given if len(given) > 1 else []:
        yield Edit("B16", f"not in block {rank}", ANY, _set(**{key: [each for each in given if each != rank]}))
    for rank in range(size):
        if rank not in given:
            yield Edit("B16", f"in block {rank} too", ANY, _set(**{key: [*given, rank]}))
    if size > 1:
        others = [[each for each in range(size) if each != own] for own in range(size)]
        yield Edit("B16", "in the others alone", ANY, _set(**{key: others}))


def _accesses(document: Document, ops: list[Op], place: int) -> Iterator[Edit]:
    """Another slot, another buffer, before what it waits for."""
    op = ops[place]
    if _slots(document, document["buffers"][op["buf"]]) > 1 and "idx_abs" not in op:
        for by in (-1, 1):
            yield Edit("B18", f"slot {by:+d}", ANY, _set(off=op.get("off", 0) + by))
    inside = registers(document)
    for name in document["buffers"]:
        if name != op["buf"] and not {name, op["buf"]} & inside:
            yield Edit("B18", f"uses {name}", ANY, _set(buf=name), renames=True)
    before = ("mma_wait",) if op["buf"] in inside else ("wait", "bulk_wait")
    waits = [at for at in range(place) if ops[at]["op"] in before]
    if waits:
        yield Edit("B6", f"before {ops[waits[-1]]['op']}", WRONG, _move(waits[-1]))


def _wait(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    op = ops[place]
    phase = op.get("ph", 0)
    first = "B4" if phase < 0 else "B9"
    yield Edit("B6", "missing", WRONG, _delete)
    yield Edit("B4", "flipped", WRONG, _set(flip=not op.get("flip", False)))
    yield Edit(first, "a phase later", ANY, _set(ph=phase + 1))
    yield Edit("B9", "a phase earlier", ANY, _set(ph=phase - 1))
    for by in (-1, 1):
        yield Edit("B10", f"index {by:+d}", ANY, _set(off=op.get("off", 0) + by))
    if part == "loop" and "idx_abs" not in op:
        yield Edit("B10", "always the first phase", ANY, _set(idx_abs=0, off=None))
    yield from _other_barrier(document, op)
    later = [at for at in range(place + 1, len(ops)) if ops[at]["op"] in (*ACCESSES, "arrive", "arrive_tx")]
    if later:
        yield Edit("B6", f"behind {ops[later[0]]['op']}", WRONG, _move(later[0] + 1))


def _other_barrier(document: Document, op: Op) -> Iterator[Edit]:
    for name in document["barriers"]:
        if name != op["bar"]:
            yield Edit("B6", f"at {name}", ANY, _set(bar=name))


def _arrive(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    op = ops[place]
    many = op.get("n", 1)
    yield Edit("B6", "missing", WRONG, _delete)
    yield Edit("B5", "twice", WRONG, _twice)
    for other in sorted({many - 1, many + 1, 1, 4, 32, 32 * many} - {0, many}):
        yield Edit("B5", f"{other} arrivals", WRONG, _set(n=other))
    for by in (-1, 1):
        yield Edit("B7" if by > 0 else "B10", f"index {by:+d}", WRONG, _set(off=op.get("off", 0) + by))
    yield from _other_barrier(document, op)
    for at in range(place - 1, -1, -1):
        if ops[at]["op"] in ("read", "mma_wait", "bulk_wait", "wait", "proxy_fence", "tma_store", "mma"):
            yield Edit("B12" if ops[at]["op"] == "proxy_fence" else "B7", f"before {ops[at]['op']}", WRONG, _move(at))
    if ops[-1] is not op:
        yield Edit("B7", "at the end", WRONG, _move(len(ops)))


def _arrive_tx(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    op = ops[place]
    size = op["bytes"]
    yield Edit("B1", "an arrival alone", ANY, _set(op="arrive", bytes=None))
    parts = {"half of the bytes": size // 2, "twice the bytes": 2 * size, "16 bytes more": size + 16}
    parts |= {"16 bytes less": size - 16}
    for each in ops:
        if each["op"] == "tma_load" and 0 < _size(document, each) < size:
            parts[f"the bytes of {each['buf']} alone"] = _size(document, each)
    for what, other in parts.items():
        yield Edit("B2", what, ANY, _set(bytes=other))
    yield Edit("B3", "no arrival", ANY, _set(op="expect"))
    yield Edit("B3", "missing", ANY, _delete)
    yield Edit("B5", "twice", ANY, _twice)

    def reversed_order(ops: list[Op], place: int) -> list[Op]:
        both = ops[place] | {"op": "arrive", "bytes": None}, ops[place] | {"op": "expect"}
        return [*ops[:place], *[{k: v for k, v in each.items() if v is not None} for each in both], *ops[place + 1 :]]

    yield Edit("B3", "the arrival first", ANY, reversed_order)
    copies = [at for at in range(place + 1, len(ops)) if ops[at]["op"] == "tma_load"]
    for at in copies:
        yield Edit("B3", f"behind the copy of {ops[at]['buf']}", WRONG, _move(at + 1))
    waits = [at for at in range(place) if ops[at]["op"] == "wait"]
    if waits:
        yield Edit("B6", "before wait", WRONG, _move(waits[-1]))
    for by in (-1, 1):
        yield Edit("B10", f"index {by:+d}", ANY, _set(off=op.get("off", 0) + by))
    yield from _other_barrier(document, op)


def _load(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    op = ops[place]
    size = _size(document, op)
    yield Edit("B2", "missing", ANY, _delete)
    yield Edit("B2", "twice", ANY, _twice)
    yield Edit("B2", "delivers half", ANY, _set(bytes=size // 2))
    yield from _other_barrier(document, op)


def _write(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    fences = [at for at in range(place + 1, len(ops)) if ops[at]["op"] == "proxy_fence"]
    if fences:
        yield Edit("B12", "behind the fence", WRONG, _move(fences[0] + 1))


def _fence(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    yield Edit("B12", "missing", WRONG, _delete)
    if place + 1 < len(ops):
        yield Edit("B12", f"behind {ops[place + 1]['op']}", WRONG, _move(place + 2))
    if place:
        yield Edit("B12", f"before {ops[place - 1]['op']}", WRONG, _move(place - 1))


def _group(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    """Commits and waits of groups."""
    op = ops[place]
    unit, _, verb = op["op"].rpartition("_")
    bug = "B17" if part == "post" and unit == "bulk" else "B14" if unit == "bulk" else "B15"
    yield Edit(bug, "missing", WRONG, _delete)
    if verb == "wait":
        for more in (1, 2):
            yield Edit("B14" if unit == "bulk" else "B7", f"leaves {more} more", WRONG,
                       _set(n=op.get("n", 0) + more))  # fmt: skip
        if place + 1 < len(ops):
            yield Edit(bug, f"behind {ops[place + 1]['op']}", WRONG, _move(place + 2))
    if place and ops[place - 1]["op"] != "wait":
        yield Edit(bug, f"before {ops[place - 1]['op']}", WRONG, _move(place - 1))
    if verb == "commit" and place + 1 < len(ops):
        yield Edit(bug, f"behind {ops[place + 1]['op']}", WRONG, _move(place + 2))


def _expect(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    size = ops[place]["bytes"]
    yield Edit("B1", "missing", ANY, _delete)
    for what, other in {"half of the bytes": size // 2, "twice the bytes": 2 * size}.items():
        yield Edit("B2", what, ANY, _set(bytes=other))
    yield Edit("B3", "at the end", WRONG, _move(len(ops)))


def _sync(document: Document, part: str, ops: list[Op], place: int) -> Iterator[Edit]:
    yield Edit("B20", "missing", WRONG, _delete)
    if ops[place]["op"] == "bar_sync":
        yield Edit("B20", "does not wait", WRONG, _set(op="bar_arrive"))


OPS: dict[str, Callable[[Document, str, list[Op], int], Iterator[Edit]]] = {
    "wait": _wait, "arrive": _arrive, "arrive_tx": _arrive_tx, "expect": _expect, "tma_load": _load, "write": _write,
    "proxy_fence": _fence, "mma_commit": _group, "mma_wait": _group, "bulk_commit": _group, "bulk_wait": _group,
    "bar_sync": _sync, "bar_arrive": _sync,
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------ roles and rings


def _in_roles(document: Document, together: bool) -> Iterator[Break]:
    for group in groups(document, together):
        for by in (-1, 1):

            def moved(made: Document, by: int = by, group: list[str] = group) -> None:
                for role in made["roles"]:
                    if role["name"] in group:
                        trip = int(role.get("trip", "N")[1:] or 0) + by
                        role["trip"] = f"N{trip:+d}" if trip else "N"

            if any(role.get("loop") for role in document["roles"] if role["name"] in group):
                yield _break(document, "B11", f"{group[0]}: {by:+d} iterations", ANY, moved)
        if document.get("cluster", 1) > 1:

            def alone(made: Document, group: list[str] = group) -> None:
                for role in made["roles"]:
                    if {role["name"], role.get("threads_of")} & {*group}:
                        role["ctas"] = [0]

            if any("threads_of" in role for role in document["roles"] if role["name"] in group):
                continue
            yield _break(document, "B16", f"{group[0]}: only in block 0", ANY, alone)
    yield from _leaders(document)
    yield from _freed_first(document)
    if not together:
        stages = max([1, *[_slots(document, ring) for ring in document.get("barriers", {}).values()]])
        for every in (stages + 1, 2 * stages + 1):
            restart = {"phase_reset_every": every}
            yield _break(document, "B10", f"counters start again every {every}", ANY, lambda m, r=restart: m.update(r))


def _leaders(document: Document) -> Iterator[Break]:
    """One of several roles arrives for the others."""
    arriving: dict[str, list[str]] = {}
    for role, _, ops in _parts(document):
        for op in ops:
            if op["op"] == "arrive" and role["name"] not in arriving.setdefault(op["bar"], []):
                arriving[op["bar"]].append(role["name"])
    for bar, names in arriving.items():
        for name in names[1:]:

            def led(made: Document, bar: str = bar, name: str = name, share: int = len(names)) -> None:
                made["barriers"][bar]["count"] -= made["barriers"][bar]["count"] // share
                for role, part, ops in _parts(made):
                    if role["name"] == name:
                        role[part] = [op for op in ops if not (op["op"] == "arrive" and op["bar"] == bar)]

            yield _break(document, "B9", f"{bar}: another role arrives for {name}", ANY, led)


def _freed_first(document: Document) -> Iterator[Break]:
    """Slots are free at first by the parity of the wait; somebody frees them once more."""
    early = {op["bar"] for _, _, ops in _parts(document) for op in ops if op["op"] == "wait" and op.get("ph", 0) < 0}
    for bar in sorted(early):
        for place, role in enumerate(document["roles"]):
            mine = [op for op in role.get("loop", []) if op["op"] == "arrive" and op["bar"] == bar]
            if mine:
                extra = {key: value for key, value in mine[0].items() if key not in ("off", "guard")}

                def freed(made: Document, place: int = place, extra: Op = extra, bar: str = bar) -> None:
                    many = _slots(made, made["barriers"][bar])
                    more = [{**extra, "off": slot} for slot in range(many)]
                    made["roles"][place]["pre"] = [*more, *made["roles"][place].get("pre", [])]

                yield _break(document, "B4", f"{role['name']}: frees {bar} before its loop too", ANY, freed)
                break


def _in_rings(document: Document) -> Iterator[Break]:
    for name, ring in document.get("barriers", {}).items():
        for count in sorted({ring["count"] - 1, ring["count"] + 1, 32 * ring["count"], 1} - {ring["count"]}):
            kinds = WRONG if count else frozenset({NEVER})
            yield _break(document, "B5", f"{name}: counts {count}", kinds, _ring("barriers", name, count=count))
    for key in ("barriers", "buffers"):
        for name, ring in document.get(key, {}).items():
            slots = _slots(document, ring)
            for by in (-1, 1):
                kinds = ANY if slots + by else frozenset({NEVER})
                bug = "B8" if by < 0 else "B18"
                yield _break(document, bug, f"{name}: slots {by:+d}", kinds, _ring(key, name, slots=slots + by))
    sizes = {_slots(document, ring) for key in ("barriers", "buffers") for ring in document.get(key, {}).values()}
    for size in sorted(sizes - {1}):

        def fewer(made: Document, size: int = size) -> None:
            for key in ("barriers", "buffers"):
                for ring in made.get(key, {}).values():
                    if _slots(document, ring) == size:
                        ring["slots"] = size - 1

        yield _break(document, "B8", f"rings of {size}: one stage less", ANY, fewer)
    for name, ring in document.get("buffers", {}).items():
        if ring.get("bytes"):
            slots = SHARED_BYTES // ring["bytes"] + 1
            if slots <= 1024:
                never = frozenset({NEVER})
                yield _break(document, "B19", f"{name}: {slots} slots", never, _ring("buffers", name, slots=slots))


def _ring(key: str, name: str, **entries: int) -> Callable[[Document], object]:
    return lambda made: made[key][name].update(entries)


def _slots(document: Document, ring: dict[str, Any]) -> int:
    return int(ring.get("slots", document.get("stages", 0)))


def _size(document: Document, op: Op) -> int:
    return int(op.get("bytes", document["buffers"][op["buf"]].get("bytes", 0)))


# -------------------------------------------------------------------------------------------------------------- judging


def registers(document: Document) -> set[str]:
    """The buffers in registers."""
    return {name for name, buffer in document.get("buffers", {}).items() if buffer.get("space") == "register"}


def in_registers(document: Document, inside: set[str]) -> Iterator[Document]:
    """What each role does with registers and groups of multiplies, which nothing else has a part in.

    A role on its threads reads them after any number of its iterations.
    """
    for role in document["roles"]:
        if "threads_of" not in role:
            parts = {part: [op for op in role.get(part, []) if _is_inside(op, inside)] for part in PARTS}
            for other in document["roles"]:
                if other.get("threads_of") == role["name"]:
                    reads = [op for op in other["loop"] if _is_inside(op, inside)]
                    always = [op for op in reads if op["op"] == "read" or "guard" not in op]
                    parts["post"] = [{k: v for k, v in op.items() if k != "guard"} for op in always] + parts["post"]
            if any("buf" in op for ops in parts.values() for op in ops):
                buffers = {name: document["buffers"][name] for name in inside}
                yield document | {"roles": [role | parts], "buffers": buffers, "barriers": {}}


def _is_inside(op: Op, inside: set[str]) -> bool:
    return op.get("buf") in inside or op["op"] in ("mma_commit", "mma_wait")


def without_registers(document: Document, inside: set[str]) -> Document:
    """The document as if it did not state registers."""
    roles = [
        {key: [op for op in value if op.get("buf") not in inside] if key in PARTS else value
         for key, value in role.items() if key != "threads_of"}
        for role in document["roles"]
    ]  # fmt: skip
    buffers = {name: ring for name, ring in document["buffers"].items() if name not in inside}
    return document | {"roles": roles, "buffers": buffers}


def components(document: Document) -> list[Document]:
    """Documents of the roles that share barriers or buffers: others neither hinder nor help each other.

    A fence helps others only if it is ordered with them; of roles that share nothing it is not.
    """
    inside = registers(document)
    if inside:
        return [*in_registers(document, inside), *components(without_registers(document, inside))]
    sets: list[tuple[set[str], list[dict[str, Any]]]] = []
    for role in document["roles"]:
        used = {name for part in PARTS for op in role.get(part, []) for name in (op.get("bar"), op.get("buf")) if name}
        used |= {f"id {op['id']}" for part in PARTS for op in role.get(part, []) if "id" in op}
        mine = [each for each in sets if each[0] & used]
        sets = [each for each in sets if not any(each is one for one in mine)]
        roles = [one for each in mine for one in each[1]] + [role]
        sets.append((used.union(*[each[0] for each in mine]), roles))
    order = [role["name"] for role in document["roles"]]
    return [
        document | {
            "roles": sorted(roles, key=lambda role: order.index(role["name"])),
            **{key: {name: ring for name, ring in document.get(key, {}).items() if name in used}
               for key in ("barriers", "buffers")},
        }
        for used, roles in sets
    ]  # fmt: skip


def judged(document: Document, states: int = 20_000, most: int = 24) -> bool | None:
    """Whether nothing goes wrong for any small N in any order of events; None where there are too many orders.

    Args:
        document: A document.
        states: States of one N that are looked at.
        most: The largest N of clusters.
    """
    if _too_large(document):
        return False
    found: bool | None = True
    for one in components(document):
        verdict = _judged_alone(one, states, most)
        if verdict is False:
            return False
        found = found and verdict
    return found


def _too_large(document: Document) -> bool:
    rings = [*document.get("barriers", {}).values(), *document.get("buffers", {}).values()]
    bytes_ = sum(_slots(document, ring) * ring.get("bytes", 0) for ring in rings)
    return bytes_ > SHARED_BYTES or any(_slots(document, ring) < 1 or ring.get("count", 1) < 1 for ring in rings)


def _is_far(document: Document) -> bool:
    far = any("to" in op or "multicast" in op for _, _, ops in _parts(document) for op in ops)
    return far or any("ctas" in role for role in document["roles"])


def _alone(document: Document) -> Document:
    """A document that no other block has a part in."""
    return {key: value for key, value in document.items() if key != "cluster"}


def _judged_alone(document: Document, states: int, most: int) -> bool | None:
    if not _is_far(document):
        return pipeline_judge.safe(_alone(document), states=states)[0]
    if "phase_reset_every" in document:
        return None
    return cluster_judge.safe(document, min(most, pipeline_judge.enough_trips(document)), states)


def possible(document: Document, n: int, states: int = 20_000) -> frozenset[str] | None:
    """Everything that can go wrong with N = n, "soft_ub" apart; None where there are too many orders."""
    if _too_large(document):
        return frozenset({NEVER})
    found: frozenset[str] = frozenset()
    for one in components(document):
        if _is_far(one):
            kinds = None if "phase_reset_every" in one else cluster_judge.explore(one, n, states)
        else:
            kinds = pipeline_judge.explore(_alone(one), n, states=states)
        if kinds is None:
            return None
        found |= kinds
    return found


def only_named(document: Document) -> bool:
    """Whether the worst that happens is that an arrival or a wait meets another phase than it names.

    A kernel's text names slots and parities: it may be right though it is not what the document says.
    """
    kinds = [possible(document, n) for n in range(pipeline_judge.enough_trips(document) + 1)]
    return all(each is not None and each <= {"soft_ub"} for each in kinds)


def compared(one: Break, states: int = 20_000) -> tuple[str, str]:
    """What the verifier says of a mistake beside the judge: the outcome, and more about it.

    "refuted" and "safe": both agree, and the kind is one of the mistake's and possible; "... , not judged": the orders
    of events are too many; "open, safe": unknown to the verifier. The others are wrong.
    """
    found: Any = verify(one.document)
    if isinstance(found, Refuted):
        truth = judged(one.document, states // 4, 3)
        kinds = None if truth is None or found.trips is None else possible(one.document, found.trips, states // 4)
        if truth:
            return "needless", found.kind
        if found.kind not in one.kinds:
            return "wrong kind", found.kind
        if kinds is not None and found.kind not in {kind.removeprefix("soft_") for kind in kinds}:
            return "impossible kind", f"{found.kind}, possible {sorted(kinds)}"
        return ("refuted" if truth is False else "refuted, not judged"), found.kind
    truth = judged(one.document, states, 4)
    if truth is False:
        return "missed", type(found).__name__
    said = "safe" if isinstance(found, Proved) else "open, safe"
    return (said if truth else f"{said.split(',')[0]}, not judged"), ""


def family(name: str) -> str:
    """A pipeline's name without its numbers of stages and consumers."""
    return re.sub(r" \d+ (stages|consumers?)", "", name)
