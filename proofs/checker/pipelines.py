"""Claims about pipelines of mbarriers: a layoutalg/pipeline/1 document is safe for every N that it allows.

Safe: no role hangs, no slot of a buffer is read or overwritten at the wrong time, no barrier counts wrong, whatever
the order of events. docs/pipelines.md defines all ops and violations. Under the policy "practice" copies may overwrite
a slot after generic reads with no fence, and stores may run at the end.

Numbers. Slot s of a ring of D slots at index (of barriers: phase) f has the number s + f D. An op in a loop has the
number k + shift in iteration k, an op before it a constant, one after it N plus a constant: the numbers of an op are
an interval whose ends are constants or N plus constants.

Events are (role, part, place, "start" or "done") and (barrier, "phase", 0, "done"), the completion of a phase. Waits,
copies, asynchronous accesses and arrivals are done some time after they start, other ops when they start. An op that
adds to one index in all iterations has (role, "loop", place, "last") too: all that it started is done, if only because
it never runs.

Why nothing goes wrong. A fact is a path of events. ``follows`` lists which event may come after which: if the later
one happens, and nothing went wrong until then, the earlier one has happened. For instance arrivals and bytes precede
the completion of their phase, because ``counted`` found no others, and so far a phase met only ops that name it. Now
suppose that in some run the first thing goes wrong at event e. For each way of going wrong ``barrier_orders`` and
``buffer_orders`` demand a fact that ends in e, or in an event before it, and excludes this. Its links hold until e, so
e does not go wrong. Neighbouring indices of a slot are enough: ``filled`` found none left out between two others.

Why no role hangs. Suppose that a run stops, and look at the event with the least time among those that it lacks. What
that event waits for has a smaller time (``live``) and so has happened: the ops before it; for a wait its phase, and by
a fact not the next of its slot; for a phase its arrivals and bytes, and the phase before. So it can happen.
"""

import itertools
import re
import types

from .base import NATURAL, POSITIVE, limit, read, require, tick

MOST = 2**20 - 1  # arrivals per phase, outstanding bytes
CASES = 2**14  # most comparisons of ends for one fact
STEPS = 2**20  # most ops that are run to see which stores end

# --- the document ----------------------------------------------------------------------------------------------------
FAR, COUNT, SLOTS = range(-(2**20), 2**20 + 1), range(2**20 + 1), range(1, 2**10 + 1)
BAR, BUF = {"bar": str, "off?": FAR, "idx_abs?": FAR, "ph?": FAR}, {"buf": str, "off?": FAR, "idx_abs?": FAR}
OPS = {
    "wait": BAR | {"flip?": bool},
    "arrive": BAR | {"n?": COUNT[1:]},
    "expect": BAR | {"bytes?": NATURAL},
    "arrive_tx": BAR | {"bytes?": NATURAL},
    "tma_load": BAR | BUF | {"bytes?": NATURAL},
    "dsmem_copy": BAR | BUF | {"src": str, "bytes?": NATURAL},
    "read": BUF,
    "write": BUF,
    "mma": BUF,
    "mma_write": BUF,
    "tma_store": BUF,
    "mma_commit": {},
    "mma_wait": {"n?": COUNT},
    "mma_arrive": BAR,
    "bulk_commit": {},
    "bulk_wait": {"n?": COUNT},
    "cp_async": BUF,
    "cp_async_commit": {},
    "cp_async_wait": {"n?": COUNT},
    "cp_async_arrive": BAR | {"n?": COUNT[1:]},
    "proxy_fence": {},
}
ENTRIES = {
    "bar": None,
    "buf": None,
    "src": None,
    "off": 0,
    "idx_abs": None,
    "ph": 0,
    "flip": False,
    "n": 0,
    "bytes": None,
}
GROUPS = {
    "mma": ("mma_commit", "mma_wait"),
    "mma_write": ("mma_commit", "mma_wait"),
    "tma_store": ("bulk_commit", "bulk_wait"),
    "cp_async": ("cp_async_commit", "cp_async_wait"),
}
SIGNALS = {"mma_arrive": ("mma", "mma_write"), "cp_async_arrive": ("cp_async",)}
ARRIVALS = ("arrive", "arrive_tx", *SIGNALS)
COPIES = ("tma_load", "dsmem_copy")  # done when their bytes are delivered
WRITES = ("write", *COPIES, "cp_async", "mma_write")
NOT_SHARED = ("read", "write", "mma", "mma_write")  # what can access tensor memory and registers
LATER = ("phase", "wait", *COPIES, *GROUPS, *SIGNALS)  # done later than they start
PARTS = ("pre", "loop", "post")


def op(value, where):
    """An op of a role."""
    kind = value.get("op") if isinstance(value, dict) else None
    require(isinstance(kind, str) and kind in OPS, f"{where} is not an op", got=value)
    found = vars(read(value, {"op": str, "guard?": {"from?": COUNT, "until?": COUNT}} | OPS[kind], where))
    guard = vars(found["guard"]) if found["guard"] else {}
    given = {name: entry for name, entry in found.items() if entry is not None}
    ends = {"first": guard.get("from") or 0, "last": guard.get("until") or 0}
    return types.SimpleNamespace(**ENTRIES | {"n": int(kind in ARRIVALS)} | given | ends)


def rings(form):
    def named(value, where):
        """An object of barriers or buffers by name."""
        require(isinstance(value, dict), f"{where} must be an object", got=value)
        return {name: read(ring, form | {"slots?": SLOTS}, f"{where}.{name}") for name, ring in value.items()}

    return named


def number(pattern):
    def text(value, where):
        """N with a constant."""
        found = re.fullmatch(pattern, read(value, str, where))
        require(found, f"{where} is not N with a constant", got=value)
        return int("".join(found.groups("")) or 0)

    return text


PIPELINE = {
    "schema": {"layoutalg/pipeline/1"},
    "stages": SLOTS,
    "trips?": number(r"N\s*>=\s*([0-9]{1,6})"),
    "barriers?": rings({"count": range(1, MOST + 1)}),
    "buffers?": rings({"bytes?": NATURAL, "space?": {"shared", "tensor", "register"}}),
    "roles": [
        {"name": str, "pre?": [op], "loop?": [op], "post?": [op], "trip?": number(r"N(?:\s*([+-])\s*([0-9]{1,6}))?")}
    ],
    "phase_reset_every?": COUNT[1:],
}
WIDE = range(-(2**60), 2**60)
EVIDENCE = {
    "turns": [range(-1, 2, 2)],  # a wait with flip is read as one of the phase before, or after, which has its parity
    "completed": [(str, WIDE, range(2))],  # the phases of a barrier that complete: 0, 1, ... below this + moves N
    "pace": POSITIVE,
    "events": [
        (str, {*PARTS, "phase"}, NATURAL, {"start", "done", "last"}, int, NATURAL)
    ],  # with time and late, see ``live``
    # for N from least to most and k from low to high, N added to the last ``moves`` of these: the events of the path,
    # each at k plus a constant, happen in this order
    "facts": [
        {"least": NATURAL, "most?": NATURAL, "low": WIDE, "high": WIDE, "moves": range(3), "path": [(NATURAL, WIDE)]}
    ],
}
ENDLESS = 2**99  # above all lines for all N at once, so that comparing there compares slopes


# --- lines and spans -------------------------------------------------------------------------------------------------
# A line (c, m) is c + m N, m = 0 or 1. A span (start, low, high) is, for N >= start, the x with low <= x < high.
ONE = 0, (0, 0), (1, 0)  # the span of the number 0


def at(line, size):
    return line[0] + line[1] * size


def moved(span, far):
    start, low, high = span
    return start, (low[0] + far, low[1]), (high[0] + far, high[1])


def within(spans, size):
    """Return from where to below where all spans are."""
    low = max(at(low, size) if size >= start else ENDLESS for start, low, _ in spans)
    return low, min(at(high, size) for *_, high in spans)


def inside(span, size, x):
    low, high = within([span], size)
    return low <= x < high


def cases(least, spans, lines=(), starts=()):
    """Yield the N, each with the numbers, that have to be looked at to know something for all.

    What is asked of N compares ends of spans with each other, and N with starts. A line c is not above N + d from
    N = c - d on, and below it from N = c - d + 1 on. So no answer changes between neighbours of this list, or after its
    last entry. What is asked of a number x compares it with these lines, so answers change only where x is on one.
    """
    lines = {*lines, *itertools.chain(*(span[1:] for span in spans))}
    fixed, moving = ({line[0] for line in lines if line[1] == moves} for moves in (0, 1))
    limit(len(fixed) * len(moving) <= CASES, "these ops have too many different ends")
    sizes = {least, *starts, *(span[0] for span in spans)}
    sizes |= {one - other + more for one in fixed for other in moving for more in (0, 1)}
    for size in sorted(size for size in sizes if size >= least):
        tick()
        yield size, sorted({at(line, size) for line in lines})


# --- the pipeline ----------------------------------------------------------------------------------------------------
class Node:
    """An op, or the phases of a barrier. ``span``: in loops the k that run it, after them only the N, of phases the
    numbers. ``numbers``, by ring: the number less k (if it is ``fixed`` the number), and the span of numbers."""

    def __init__(self, owner, part, place, entries):
        self.owner, self.part, self.place, self.op, self.kind = owner, part, place, entries, entries.op
        self.span, self.numbers, self.fixed = ONE, {}, False
        self.once = part in ("pre", "post")
        self.start = owner, part, place, "start"
        self.done = owner, part, place, "done" if self.kind in LATER else "start"
        self.whole = self.done  # done in all iterations, if they have one number
        self.last = self.done if self.kind == "wait" else self.start  # then the role goes on


class Pipeline:
    """A document, and what the evidence says of its flipped waits and of the phases that complete."""

    def __init__(self, document, turns, completed):
        self.least, self.nodes, self.roles, self.facts, self.owners = document.trips or 0, {}, {}, {}, {}
        self.barriers, self.buffers = document.barriers or {}, document.buffers or {}
        require(not self.barriers.keys() & self.buffers.keys(), "a barrier and a buffer have one name")
        self.slots = {name: ring.slots or document.stages for name, ring in (self.barriers | self.buffers).items()}
        self.uses = {name: [] for name in self.slots}
        self.trip = {role.name: role.trip or 0 for role in document.roles}
        require(len(self.trip) == len(document.roles), "two roles have one name")
        turns = iter(turns)
        for role in document.roles:
            self.roles[role.name] = {
                part: [self.node(Node(role.name, part, *op), turns) for op in enumerate(getattr(role, part) or [])]
                for part in PARTS
            }
        require(next(turns, None) is None, "more waits are read than flipped")
        ends = {name: (end, moves) for name, end, moves in completed}
        require(ends.keys() == self.barriers.keys(), "the completed phases are not of the barriers", got=sorted(ends))
        self.phases = {name: Node(name, "phase", 0, types.SimpleNamespace(op="phase")) for name in ends}
        for name, phases in self.phases.items():
            phases.span = 0, (0, 0), ends[name]
            phases.numbers[name] = 0, phases.span
            self.nodes[name, "phase", 0] = phases
        # counters that start again name the same slots and parities as counters that go on
        again = document.phase_reset_every or 0
        loops = [node for parts in self.roles.values() for node in parts["loop"] if not node.fixed]
        turned = any(
            again % (self.slots[name] * (1 + (name in self.barriers))) for node in loops for name in node.numbers
        )
        same = not again or not (turned or any(node.op.off < 0 for node in loops if node.kind != "wait"))
        limit(same, "counters start again at another slot or parity")

    def node(self, node, turns):
        """Place an op: the k, N and numbers that it has."""
        op, part, trip = node.op, node.part, self.trip[node.owner]
        where = f"{node.owner}.{part}[{node.place}]"
        self.nodes[node.start[:3]] = node
        named = ((op.bar, self.barriers), (op.buf, self.buffers), (op.src, self.buffers))
        used = [(name, rings) for name, rings in named if name is not None]
        require(op.src is None or op.src != op.buf, f"{where} copies a buffer to itself")
        require(all(name in rings for name, rings in used), f"{where} names no such barrier or buffer")
        require(part == "loop" or not (op.first or op.last), f"{where} has a guard outside of the loop")
        index, node.fixed = (op.off, part == "pre") if op.idx_abs is None else (op.idx_abs, True)
        for name in [name for name, rings in used if rings is self.buffers]:
            space = self.buffers[name].space
            right = node.kind in NOT_SHARED if space in ("tensor", "register") else node.kind != "mma_write"
            require(right, f"{where} is not for memory of this space")
            mine = space != "register" or self.owners.setdefault(name, node.owner) == node.owner
            require(mine, f"{where} is for registers of another role", owner=self.owners.get(name))
        if node.kind == "mma_write" and part == "loop" and node.fixed:
            node.whole = (*node.start[:3], "last")
        adds = (node.kind in WRITES and node.whole == node.done) or (op.bar is not None and node.kind != "wait")
        limit(part != "loop" or not node.fixed or not adds, f"{where} adds to one index in all iterations")
        limit(part != "post" or node.fixed or not used or self.least + trip >= 0, f"{where} follows N{trip:+d} trips")
        index += 0 if node.fixed or part == "loop" else trip
        missing = -index if used and node.kind != "wait" else 0  # k, or N, from which on the index is not negative
        numbers = ONE
        if part == "loop":
            node.span = 0, (max(op.first, missing), 0), (trip - op.last, 1)
            numbers = (max(0, op.first + op.last + 1 - trip), *ONE[1:]) if node.fixed else node.span
        elif part == "post" and not node.fixed:
            node.span = numbers = max(0, missing), (0, 1), (1, 1)
        for name, rings in used if missing <= 0 or not node.fixed else ():
            turn = next(turns, None) if op.flip else 0
            require(turn is not None, f"{where} is flipped and not read")
            shift = index + (op.ph + turn) * self.slots[name] * (rings is self.barriers)
            node.numbers[name] = shift, moved(numbers, shift)
            self.uses[name].append(node)
        if node.kind in COPIES:
            op.bytes = self.buffers[op.buf].bytes if op.bytes is None else op.bytes
            limit(op.bytes, f"{where} copies 0 bytes, and no barrier knows when it is done")
        limit(node.kind not in ("expect", "arrive_tx") or op.bytes is not None, f"{where} expects no number of bytes")
        return node

    # --- counts ------------------------------------------------------------------------------------------------------
    def counted(self, name):
        """Each phase gets the arrivals and bytes that it needs and no others. It completes if anything waits for it or
        names the next one of its slot, and something waits for it if a copy delivers to it."""
        slots, count, phases = self.slots[name], self.barriers[name].count, self.phases[name].span
        uses = [(node, node.numbers[name][1]) for node in self.uses[name]]
        edges = [moved(phases, far) for far in (0, slots, -slots)]
        for size, numbers in cases(self.least, [span for _, span in uses] + edges):
            spans, end = [(node, within([span], size)) for node, span in uses], at(phases[2], size)
            for x in numbers:
                here = [node for node, (low, high) in spans if low <= x < high]
                adds = [node for node in here if node.kind != "wait"]
                arrivals = sum(node.op.n for node in adds)
                full = arrivals == count
                delivered = sum(node.op.bytes for node in adds if node.kind in COPIES)
                expected = sum(node.op.bytes for node in adds if node.kind in ("expect", "arrive_tx"))
                for holds, fact in (
                    (x >= 0 or not adds, "a phase before the first is named"),
                    (arrivals <= count, "there are more arrivals than the barrier counts"),
                    (not full or expected >= delivered, "more bytes are delivered than expected"),
                    (expected <= MOST, "too many bytes are outstanding"),  # as many are delivered, or none
                    ((full and expected == delivered) == (0 <= x < end), "the phases that complete are others"),
                    (not adds or x < max(0, end) + slots, "the phase before never completes"),
                    (adds == here or -slots <= x < max(0, end), "a wait is for a phase that never completes"),
                    (not delivered or adds != here, "nothing waits for a copy"),
                ):
                    require(holds, fact, barrier=name, number=x, N=size)

    def filled(self, name):
        """All indices that are read are written, and the written ones are neighbours."""
        writes, reads = ([node.numbers[name][1] for node in nodes] for nodes in self.accesses(name))
        if writes:
            for size, numbers in cases(self.least, writes + reads):
                written = [any(inside(span, size, x) for span in writes) for x in numbers]
                for x, known in zip(numbers, written):
                    is_read = any(inside(span, size, x) for span in reads)
                    require(known or not is_read, "an index is read and not written", buffer=name, index=x, N=size)
                blocks = sum(one and not before for before, one in zip([False, *written], written))
                limit(blocks <= 1, f"some index of {name} is left out between written ones")

    def accesses(self, name):
        """Return writes and reads of a buffer."""
        writes = [node for node in self.uses[name] if node.kind in WRITES and node.op.src != name]
        return writes, [node for node in self.uses[name] if node not in writes]

    def stores_end(self, role):
        """A wait covers every store.

        If some N leaves a store uncovered, so does N - 1, provided that there is a further iteration in which no guard
        and no negative index leaves out an op: without it the others run the same ops, and no more groups end between
        a store and a wait. So large N need no look.
        """
        parts, trip = self.roles[role], self.trip[role]
        nodes = list(itertools.chain(*parts.values()))
        if any(node.kind == "tma_store" for node in nodes):
            ends = max(max(node.op.first, -node.op.off) for node in nodes) + max(node.op.last for node in nodes)
            most = max(self.least, ends + 1 - trip)
            limit((most + 1 - self.least) * (most + trip + 2) * len(nodes) <= STEPS, "too many iterations to look at")
            for size in range(self.least, most + 1):
                tick()
                run = [*parts["pre"]]
                run += [node for k in range(size + trip) for node in parts["loop"] if inside(node.span, size, k)]
                run += [node for node in parts["post"] if size >= node.span[0]]
                groups = [0]  # stores of each group, the open one last
                for node in run:
                    if node.op.buf is not None and not node.numbers:
                        continue  # left out
                    groups[-1] += node.kind == "tma_store"
                    groups += [0] * (node.kind == "bulk_commit")
                    groups = groups[-1 - node.op.n :] if node.kind == "bulk_wait" else groups
                require(not any(groups), "a store may run at the end", role=role, N=size)

    # --- facts -------------------------------------------------------------------------------------------------------
    def learn(self, given, events):
        """Keep a fact if, for all its N and k, its events exist and each follows the one before."""
        path = []
        for number, far in given.path:
            event = events[number] if number < len(events) else None
            node = self.nodes.get(event and event[:3])
            known = node is not None and event in (node.start, node.done, node.whole)
            require(known, "there is no such event", number=number, got=event)
            path.append((node, event, far))
        require(len(path) > 1, "a path needs two events")
        fact = Fact(given, path)
        for node, event, far in path:
            tick()
            if event[3] == "last":
                continue  # it is always there
            start, *_ = span = node.span
            there = given.least >= start if node.once else fact.lies(span, far)
            require(there, "an event of a path is not always there", event=event, at=far, least=given.least)
        for one, other in itertools.pairwise(path):
            tick()
            require(self.follows(fact, *one, *other), "an event does not follow", event=one[1:], next=other[1:])
        self.facts.setdefault((path[0][1], path[-1][1]), []).append(fact)

    def follows(self, fact, one, event, x, other, then, y):
        """Return whether the event at x has happened when the other happens at y, if nothing went wrong before."""
        if one.part == other.part == "phase":
            return one is other and y - x == self.slots[one.owner]  # the phases of a slot complete in order
        if other.part == "phase":  # what a phase counts precedes it
            return one.kind != "wait" and fact.numbered(one, x, other.owner, y)
        if one.part == "phase":  # a wait passes after its phase
            return other.kind == "wait" and then == other.done and fact.numbered(other, y, one.owner, x)
        if one.owner != other.owner or then[3] == "last":
            return False
        if one is other and (one.once or x == y):
            return (event, then) == (one.start, one.done) and event != then
        last = event[3] == "last"  # what covers the last of these accesses covers all
        if one.kind in GROUPS and event in (one.done, one.whole) and then == other.start:  # a wait covers groups
            x = None if last else x
            return other.kind == GROUPS[one.kind][1] and self.commits(fact, one, x, other, y) > other.op.n
        if last:
            return one.kind in SIGNALS.get(other.kind, ()) and then == other.done and self.behind(fact, one, other, y)
        places = [(PARTS.index(node.part), far * (not node.once), node.place) for node, far in ((one, x), (other, y))]
        if one.kind in SIGNALS.get(other.kind, ()) and then == other.done:  # it arrives after the accesses before it
            return event == one.done and places[0] < places[1]
        return event == one.last and places[0] < places[1]

    def since(self, fact, access, y):
        """Return by how much, at least, the k + y of a fact is above the last k of an access."""
        *_, end = access.span
        return min(at(fact.low, size) + y + 1 - at(end, size) for size in (fact.least, fact.most))

    def behind(self, fact, access, other, y):
        """Return whether an op at k + y comes after all iterations of an access."""
        if other.part != "loop":
            return other.part == "post"
        return self.since(fact, access, y) >= int(other.place < access.place)

    def commits(self, fact, access, x, wait, y):
        """Return how many groups end, at least, between an asynchronous access, in its last iteration if x is None,
        and a later op of its role."""
        kind, trip, first, last = GROUPS[access.kind][0], self.trip[access.owner], fact.least, x is None
        commits = {
            part: [node for node in nodes if node.kind == kind] for part, nodes in self.roles[access.owner].items()
        }
        limit(not any(node.op.first or node.op.last for node in commits["loop"]), f"a guarded {kind}")
        turns = {  # from one to the other, how often the loop starts
            ("loop", "loop"): self.since(fact, access, y) if last else y - x,
            ("pre", "loop"): at(fact.low, first) + y,
            ("loop", "post"): access.op.last + 1 if last else first + trip + 1 - at(fact.high, first) - x,
            ("pre", "post"): max(0, first + trip),
        }.get((access.part, wait.part), 0)
        before, after = (sum(one.place < node.place for one in commits[node.part]) for node in (access, wait))
        later = PARTS.index(access.part) <= PARTS.index(wait.part)
        whole = len(commits["pre"]) * (access.part == "pre" != wait.part)
        return later and after - before + turns * len(commits["loop"]) + whole

    def demand(self, why, ring, where, *orders):
        """For each x such that all nodes of ``where`` have x + far on the ring, require a fact: in one of the orders,
        the first event, at x, comes before the second, at x + apart, if asked with a fence in between.

        If all iterations have one number, the last of them has to be the first event, or the first of them the second:
        the others are before, or after it. So are earlier asynchronous accesses, for what covers one covers them too.
        """
        spans, known = [moved(node.numbers[ring][1], -far) for node, far in where], []
        for one, event, other, then, apart, fence in orders:
            both = [one.numbers[ring][1], moved(other.numbers[ring][1], -apart)]
            for fact in self.facts.get((event, then), ()):
                fars = set() if one.fixed or one.once else {fact.first + one.numbers[ring][0]}
                fars |= set() if other.fixed or other.once else {fact.last + other.numbers[ring][0] - apart}
                origins = [fact.span]  # of k
                if one.fixed and one.part == "loop" and event[3] != "last":
                    end, moves = one.span[2]
                    origins.append((0, (end - 1 - fact.first, moves), (end - fact.first, moves)))
                if other.fixed and other.part == "loop":
                    start, moves = other.span[1]
                    origins.append((0, (start - fact.last, moves), (start + 1 - fact.last, moves)))
                if len(fars) <= 1 and (fact.fenced or not fence):
                    known.append((fact, origins, both + [moved(span, far) for far in fars for span in origins]))
        ends = [span for _, origins, fact_spans in known for span in origins + fact_spans]
        starts = [fact.most + 1 for fact, *_ in known if fact.most < ENDLESS]
        for size, _ in cases(self.least, spans + ends, starts=starts):
            low, high = within(spans, size)
            said = [within(numbers, size) for fact, origins, numbers in known if fact.speaks(size, origins)]
            for begin, end in sorted(said):
                low = max(low, end) if begin <= low else low
            require(low >= high, f"{why}: no fact excludes it", ring=ring, number=low, N=size)

    def before(self, why, ring, one, event, other, then, apart=0, fence=False):
        self.demand(why, ring, [(one, 0), (other, apart)], (one, event, other, then, apart, fence))

    def barrier_orders(self, name):
        """Ops meet the phase that they name."""
        phases, slots = self.phases[name], self.slots[name]
        adds = [node for node in self.uses[name] if node.kind != "wait"]
        arrivals = [node for node in adds if node.kind in ARRIVALS]
        for node in self.uses[name]:
            why, whole = "an op may meet an earlier phase", (phases, phases.done, node, node.start, slots, False)
            if any((one.done, node.start) in self.facts for one in adds):
                for one in adds:  # a phase completes with the last of what adds to it
                    orders = whole, (one, one.done, node, node.start, slots, False)
                    self.demand(why, name, [(one, 0), (phases, 0), (node, slots)], *orders)
            else:
                self.demand(why, name, [(phases, 0), (node, slots)], whole)
            if node.kind == "wait":
                self.before("a wait may miss its phase", name, node, node.done, phases, phases.done, slots)
            if node.kind == "expect":
                orders = [(node, node.start, arrival, arrival.start, 0, False) for arrival in arrivals]
                self.demand("bytes may be expected too late", name, [(node, 0)], *orders)

    def buffer_orders(self, name, strict):
        """Reads find their index, writes disturb nothing, and fences are where they must be.

        The mma_writes of a role are done in the order in which they start, for what covers one covers those before. Of
        an mma_write and another write of its index one is done before the other starts; otherwise a run starts a write
        while the mma_write runs.
        """
        slots, (writes, reads) = self.slots[name], self.accesses(name)
        unfenced = self.buffers[name].space in ("tensor", "register")
        for write in writes:
            copy = write.kind in COPIES
            for access in reads:
                generic = access.kind == "read"
                why, fence = "a read may come before its write", not (copy or generic or unfenced)
                self.before(why, name, write, write.whole, access, access.start, fence=fence)
                why, fence = "a write may come before a read ends", strict and copy and generic
                self.before(why, name, access, access.done, write, write.start, slots, fence)
            for other in writes:
                fence = not copy and other.kind in COPIES
                in_order = write.kind == other.kind == "mma_write" and write.owner == other.owner
                end = write.start if in_order else write.whole
                self.before("two writes may meet", name, write, end, other, other.start, slots, fence)
                if write.kind == "mma_write" and not in_order:
                    orders = (
                        (write, write.whole, other, other.start, 0, False),
                        (other, other.whole, write, write.start, 0, False),
                    )
                    self.demand("an accumulator may meet a write", name, [(write, 0), (other, 0)], *orders)
                if fence:  # of one index: any order, but no copy after the write without a fence
                    orders = (
                        (write, write.done, other, other.start, 0, True),
                        (other, other.start, write, write.start, 0, False),
                    )
                    self.demand("a copy may follow a write", name, [(write, 0), (other, 0)], *orders)

    # --- times -------------------------------------------------------------------------------------------------------
    def live(self, pace, times):
        """What an event waits for has a smaller time: its own plus pace times (k + late N), where k is the number of a
        phase, and 0 before and after loops."""
        links = []  # of two events: k of the second less k of the first, which is this plus some times N
        for pre, loop, post in (parts.values() for parts in self.roles.values()):
            for part in (pre, loop, post):
                links += [(one.last, other.start, 0, 0) for one, other in itertools.pairwise(part)]
                links += [
                    (node.start, node.done, 0, 0) for node in part if node.kind in LATER and node.kind not in GROUPS
                ]
            links += [(node.last, loop[0].start, 1, 0) for node in loop[-1:]]
            links += [(one.last, node.start, node.span[1][0], 0) for one in pre[-1:] for node in loop]
            links += [(node.last, one.start, 1 - node.span[2][0], -1) for one in post[:1] for node in loop]
            links += [(one.last, other.start, 0, 0) for one in pre[-1:] for other in post[:1]]
        for name, phases in self.phases.items():
            for node in self.uses[name]:
                far, moves = node.numbers[name][0], int(node.part == "post" and not node.fixed)
                first = node.span[1][0] if node.part == "loop" and node.fixed else 0
                if node.kind == "wait" and node.fixed and far < 0:
                    continue  # that phase has passed at first
                if node.kind == "wait":
                    links.append((phases.done, node.done, first - far, -moves))
                else:
                    links.append((node.done, phases.done, far, moves))
        for one, other, far, moves in links:
            require(one in times and other in times, "an event has no time", one=one, other=other)
            (time, late), (then, later) = times[one], times[other]
            moves += later - late  # how often N the times differ
            grow = moves >= 0 and time < then + pace * (far + moves * self.least)
            require(grow, "times do not grow", one=one, other=other)


class Fact:
    """Some events happen in this order for all N from least to most and k in the span."""

    def __init__(self, given, path):
        self.least, self.most = given.least, ENDLESS if given.most is None else given.most
        self.span = given.least, (given.low, given.moves // 2), (given.high + 1, (given.moves + 1) // 2)
        _, self.low, self.high = self.span
        self.first, self.last = path[0][2], path[-1][2]
        self.fenced = any(node.kind == "proxy_fence" for node, *_ in path[1:-1])

    def speaks(self, size, origins):
        """Return whether it is about this N, and about some k in these spans."""
        low, high = within(origins, size)
        return size <= self.most and low < high  # least is the start of its own span

    def lies(self, span, far):
        """Return whether k + far is always in a span."""
        start, low, high = span
        _, first, last = moved(self.span, far)
        sizes = (self.least, self.most)
        return self.least >= start and all(at(low, n) <= at(first, n) and at(last, n) <= at(high, n) for n in sizes)

    def numbered(self, node, x, ring, y):
        """Return whether k + y is always the number that an op has at k + x."""
        shift, span = node.numbers.get(ring, (None, None))
        return span is not None and (self.lies(span, y) if node.once or node.fixed else y == x + shift)


def pipeline(statement, evidence):
    """A pipeline document meets no violation under a policy, for any N that it allows and in any order of events, on a
    target that has room for it."""
    made = Pipeline(statement.pipeline, evidence.turns, evidence.completed)
    strict = statement.policy == "strict"
    for name in made.barriers:
        made.counted(name)
    for name in made.buffers:
        made.filled(name)
    for role in made.roles if strict else ():
        made.stores_end(role)
    events = [tuple(event[:4]) for event in evidence.events]
    made.live(evidence.pace, dict(zip(events, (event[4:] for event in evidence.events))))
    for fact in evidence.facts:
        made.learn(fact, events)
    for name in made.barriers:
        made.barrier_orders(name)
    for name in made.buffers:
        made.buffer_orders(name, strict)
    return f"safe for every N >= {made.least}, by {len(evidence.facts)} facts"


KINDS = {"pipeline": (pipeline, {"pipeline": PIPELINE, "policy": {"strict", "practice"}}, EVIDENCE)}
