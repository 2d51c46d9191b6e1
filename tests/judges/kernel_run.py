"""Run a Triton kernel's TTGIR with numbers: what each role does, in order, for given arguments.

A second reading of the texts that shares only the grammar of MLIR with ``proofs.pipeline``: every value is a number,
loops are run, and an event has the slot and the parity that the text computes.
"""

from __future__ import annotations

import functools
import re
from math import prod
from typing import Any

from layoutalg.notation.mlir import Operation, Region, read_mlir, split

Events = list[tuple[Any, ...]]
VALUE = r"%[\w$.-]+(?:#\d+)?"


class Run:
    """One run; ``roles`` has the events of each."""

    def __init__(self, text: str, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self.roles: dict[str, Events] = {}
        self.bytes: dict[str, int] = {}
        """Bytes of a slot."""
        self.tensors: set[str] = set()
        """What is in tensor memory."""
        function = next(one for one in read_mlir(text).operations[0].walk() if one.name == "tt.func")
        values: dict[str, Any] = {}
        for name, kind in function.regions[0].arguments:
            if re.match(r"i\d+$", kind.strip()):
                values[name] = numbers.get(name[1:], 1 << 20)
        self.events = self.roles.setdefault("default", [])
        self.region(function.regions[0], values)

    def region(self, region: Region, values: dict[str, Any]) -> list[Any]:
        for one in region.operations:
            if one.name in ("scf.yield", "ttg.warp_yield"):
                return [values.get(name) for name in re.findall(VALUE, one.head)]
            self.step(one, values)
        return []

    def step(self, one: Operation, values: dict[str, Any]) -> None:
        name, head = one.name.split(".", 1)[1], one.head
        words = re.findall(VALUE, head)
        given = [values.get(word) for word in words]
        out: list[Any] = [None] * len(one.results)
        if name == "for":
            header = one.regions[0].header
            found = re.match(rf"({VALUE}) = ({VALUE}) to ({VALUE}) step ({VALUE})(?: iter_args\(([^)]*)\))?", header)
            assert found, header
            pairs = [part.split(" = ") for part in split(found[5])] if found[5] else []
            out = [values.get(value) for _, value in pairs]
            for counter in range(values[found[2]], values[found[3]], values[found[4]]):
                inner = values | {found[1]: counter} | {pair[0]: value for pair, value in zip(pairs, out, strict=True)}
                out = self.region(one.regions[0], inner)
        elif name == "if":
            sides = one.regions if given[0] else one.regions[1:]
            out = self.region(sides[0], dict(values)) if sides else []
        elif name == "warp_specialize":
            captured = given
            self.note("begin")
            for region in one.regions:
                if region.header.startswith("default"):
                    out = self.region(region, dict(values))
                    continue
                before = self.events
                self.events = self.roles.setdefault(region.header.split("(")[0], [])
                names = [argument for argument, _ in region.arguments]
                self.region(region, dict(zip(names, captured, strict=True)))
                self.events = before
            self.note("end")
        elif name in ("local_alloc", "tmem_alloc"):
            out = [(one.results[0], None), *out[1:]]
            self.allocate(one, name == "tmem_alloc")
            self.note("write", out[0]) if words else None
        elif name == "memdesc_index":
            out = [(given[0][0], given[1])] if given[0] else [None]
        elif name.startswith("memdesc_"):
            out = [given[0]]
        elif one.name.startswith("arith."):
            out = [self.arithmetic(one, given)]
        elif name == "get_program_id":
            out = [0]
        elif name == "get_num_programs":
            out = [1]
        else:
            self.effect(name, head, words, given)
            out = given[: len(out)] + [None] * (len(out) - len(given)) if name == "warp_group_dot_wait" else out
        values |= dict(zip(one.results, out, strict=False))

    def allocate(self, one: Operation, tensor: bool) -> None:
        found = re.search(r"memdesc<((?:\d+x)+)[a-z]+(\d+)", one.types.rsplit("->", 1)[-1])
        assert found
        sizes = [int(size) for size in found[1].split("x")[:-1]]
        self.bytes[one.results[0]] = prod(sizes[len(sizes) > 2 :]) * int(found[2]) // 8
        self.tensors |= {one.results[0]} if tensor else set()

    def arithmetic(self, one: Operation, given: list[Any]) -> Any:
        name = one.name[6:]
        if name == "constant":
            word = one.head.split()[0]
            return {"true": 1, "false": 0}.get(word, int(word) if re.fullmatch(r"-?\d+", word) else None)
        if "tensor" in one.types or any(value is None for value in given):
            return None
        if name == "cmpi":
            a, b = given
            return int(
                {"slt": a < b, "sle": a <= b, "sgt": a > b, "sge": a >= b, "eq": a == b, "ne": a != b}[
                    one.head[:3].strip(", ")
                ]
            )
        if name == "select":
            return given[1] if given[0] else given[2]
        if name.startswith("ext"):
            return given[0]
        a, b = given
        if name in ("divsi", "remsi"):
            assert a >= 0 < b
        rules = {"addi": a + b, "subi": a - b, "muli": a * b, "xori": a ^ b, "andi": a & b, "maxsi": max(a, b)}
        rules |= {"divsi": a // b, "remsi": a % b, "ceildivsi": -(-a // b)} if b > 0 else {}
        return rules[name]

    def note(self, op: str, where: Any = None, *more: Any) -> None:
        place = (where[0], where[1] or 0) if where else ()
        self.events.append((op, *place, *more))

    def effect(self, name: str, head: str, words: list[str], given: list[Any]) -> None:
        number = re.search(r"(?:pendings|num) = (\d+)", head)
        count = int(number[1]) if number else 0
        second = re.match(rf"{VALUE}, (\d+)(?:, ({VALUE}))?", head)
        if name == "init_barrier" and second:
            self.note("init", given[0], int(second[1]))
        elif name == "wait_barrier":
            plain = re.findall(VALUE, head.split(" deps ")[0])
            if len(plain) < 3 or given[2]:
                self.note("wait", given[0], given[1] % 2)
        elif name in ("arrive_barrier", "barrier_expect") and second:
            if len(given) < 2 or given[1]:
                self.note("arrive" if name[0] == "a" else "arrive_tx", given[0], int(second[1]))
        elif name == "async_tma_copy_global_to_local":
            after = re.findall(VALUE, re.sub(r"\[[^\]]*\]", "", head))
            slots = dict(zip(words, given, strict=True))
            if len(after) < 4 or slots[after[3]]:
                bar = slots[after[2]]
                self.note("tma_load", slots[after[1]], bar[0], bar[1] or 0)
        elif name == "async_tma_copy_local_to_global":
            self.note("tma_store", given[-1])
            self.note("bulk_commit")
        elif name in ("async_tma_store_wait", "warp_group_dot_wait", "async_wait"):
            kinds = {
                "async_tma_store_wait": "bulk_wait",
                "warp_group_dot_wait": "mma_wait",
                "async_wait": "cp_async_wait",
            }
            self.note(kinds[name], None, count)
        elif name == "warp_group_dot":
            for value in given[:2]:
                self.note("mma", value) if value else None
            self.note("mma_commit")
        elif name == "tc_gen5_mma":
            bars = re.findall(rf"({VALUE})\[({VALUE})\]", head)
            slots = dict(zip(words, given, strict=True))
            plain = re.findall(VALUE, re.sub(r"\[[^\]]*\]", "", head))
            if not slots[plain[4]]:
                return
            for word in plain[:2]:
                self.note("mma", slots[word])
            self.note("mma_write", slots[plain[2]])
            for bar, predicate in bars:
                self.note("mma_arrive", slots[bar]) if slots[predicate] else None
        elif name == "tc_gen5_commit":
            if len(given) < 2 or given[1]:
                self.note("mma_arrive", given[0])
        elif name == "async_copy_global_to_local":
            self.note("cp_async", given[1])
        elif name == "async_commit_group":
            self.note("cp_async_commit")
        elif name == "tmem_load":
            self.note("read", given[0])
        elif name == "tmem_store":
            self.note("write", given[1]) if given[-1] else None
        elif name in ("local_load", "local_store"):
            self.note("read" if name == "local_load" else "write", given[0 if name == "local_load" else 1])


@functools.cache
def _ring(name: str) -> tuple[str, int | None]:
    """Return the kernel's name of a ring, and the slot if the ring is one slot of it."""
    fixed = re.match(r"(.*?)\[(\d+)\](?:, line \d+)?$", name)
    return (fixed[1], int(fixed[2])) if fixed else (name.split(", line ")[0], None)


def written_out(document: dict[str, Any], name: str, trips: int) -> Events:
    """Return what a role of a pipeline document does for N = ``trips``, in the same form."""
    role = next(entry for entry in document["roles"] if entry["name"] == name)
    slots = {
        ring: entry.get("slots", document["stages"])
        for part in ("barriers", "buffers")
        for ring, entry in document[part].items()
    }
    trip = max(0, trips + int(role.get("trip", "N")[1:] or 0))
    events: Events = []
    parts = [(op, 0) for op in role.get("pre", ())]
    for k in range(trip):
        for op in role.get("loop", ()):
            guard = op.get("guard", {"from": 0, "until": 0})
            if guard["from"] <= k < trip - guard["until"]:
                parts.append((op, k))
    main = len(parts)
    parts += [(op, trip) for op in role.get("post", ())]
    for place, (op, k) in enumerate(parts):
        index = op.get("idx_abs", k + op.get("off", 0))
        if index < 0 and (op["op"] != "wait" or place >= main):
            continue
        places: list[Any] = []
        for ring in [op[key] for key in ("buf", "bar") if key in op]:
            bare, slot = _ring(ring)
            places += [bare, index % slots[ring] if slot is None else slot]
        more: list[Any] = []
        if op["op"] == "wait":
            more = [(index // slots[op["bar"]] + op.get("ph", 0)) % 2]
        elif op["op"] == "arrive":
            more = [op.get("n", 1)]
        elif op["op"] == "arrive_tx":
            more = [op["bytes"]]
        elif op["op"].endswith("_wait"):
            more = [op["n"]]
        events.append((op["op"], *places, *more))
    return events


def compared(run: Run, document: dict[str, Any], name: str, trips: int) -> tuple[Events, Events]:
    """Return what the kernel does in a role and what the document says, without what means nothing.

    Left out are fences, which Triton inserts later, the barriers at which partitions begin and end, and groups that are
    closed or awaited while they are empty. A part of a role that is repeated has the events of all its turns.
    """
    role = next(entry for entry in document["roles"] if entry["name"] == name)
    ops = [op for part in ("pre", "loop", "post") for op in role.get(part, ())]
    rings = {re.split(r"\[|, line ", op[key])[0] for op in ops for key in ("buf", "bar") if key in op}
    kinds = {op["op"] for op in ops}
    kernel = [event for event in run.roles[name.split(",")[0]] if _of(event, rings, kinds)]
    stated = [event for event in written_out(document, name, trips) if _of(event, rings - {"start", "end"}, kinds)]
    if "," in name and len(kernel) % max(1, len(stated)) == 0:
        stated = stated * (len(kernel) // max(1, len(stated)))
    if name == "default" and rings & {"start", "end"}:
        before = kernel.index(stated[0])
        for place in range(len(kernel[: before + 8]) - 1, -1, -1):
            # phases that are over before partitions begin
            if kernel[place][0] == "wait" and kernel[place][-1] == 1 and kernel[place] not in stated[: before + 8]:
                del kernel[place]
    return _without_empty(kernel), _without_empty(stated)


def _of(event: tuple[Any, ...], rings: set[str], kinds: set[str]) -> bool:
    named = len(event) > 1 and isinstance(event[1], str)
    return event[0] not in ("proxy_fence", "init") and (event[1] in rings if named else event[0] in kinds)


def _without_empty(events: Events) -> Events:
    found: Events = []
    started = set()
    for event in events:
        started.add(event[0])
        group = {"mma_": "mma", "bulk": "tma_store", "cp_a": "cp_async"}.get(event[0][:4])
        bare = len(event) < 3
        if not (bare and group and group not in started):
            found.append(event)
    return found
