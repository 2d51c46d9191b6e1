"""Small documents of clusters and named barriers: rings that are safe, drawn with up to three changes; known bugs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from judges.pipeline_programs import arrive, document, op, role, unshared, wait

Document = dict[str, Any]
TILE = 64
"""bytes: a tile that each CTA loads for itself, and one that the CTAs load together"""


def gemm(stages: int = 4, cluster: int = 2, consumers: int = 1, signal: bool = False, tile: int = TILE) -> Document:
    """A ring whose slots are an own tile A and a tile B of which each CTA loads a share for all."""
    everybody = list(range(cluster))
    loads = [op("tma_load", buf="A", bar="full"), op("tma_load", buf="B", bar="full", bytes=tile // cluster)]
    loads[1]["multicast"] = everybody
    mmas = [op("mma", buf="A"), op("mma", buf="B")]
    if signal:
        release = [op("mma_arrive", bar="empty", to=everybody)]
    else:
        release = [op("mma_commit"), op("mma_wait", n=0), arrive("empty", to=everybody)]
    roles = [role("load", [wait("empty", ph=-1), op("arrive_tx", bar="full", bytes=2 * tile), *loads])]
    roles += [role(f"math{number}", [wait("full"), *mmas, *release]) for number in range(consumers)]
    made = document(stages, {"full": 1, "empty": cluster * consumers}, {"A": tile, "B": tile}, roles)
    return made | {"cluster": cluster}


def led(stages: int = 1, cluster: int = 2) -> Document:
    """CTA 0 loads a tile for all; the others only expect its bytes, and every CTA releases its slot to CTA 0."""
    everybody = list(range(cluster))
    multicast = op("tma_load", buf="B", bar="full", multicast=everybody)
    expect = op("arrive_tx", bar="full", bytes=TILE, to=everybody)
    use = [wait("full"), op("read", buf="B"), op("proxy_fence"), arrive("empty", to=[0])]
    roles = [role("load", [wait("empty", ph=-1), expect, multicast], ctas=[0]), role("use", use)]
    return document(stages, {"full": 1, "empty": cluster}, {"B": TILE}, roles) | {"cluster": cluster}


def exchange(stages: int = 1, cluster: int = 2, ahead: bool = True) -> Document:
    """Each CTA writes its part, copies it into the memory of the others and reads theirs."""
    others = [[(cta + far) % cluster for far in range(1, cluster)] for cta in range(cluster)]
    parts = TILE * (cluster - 1)
    expect = op("arrive_tx", bar="got", bytes=parts)
    copies = op("dsmem_copy", src="P", buf="R", bar="got", bytes=TILE, to=others)
    send = [wait("sent", ph=-1), op("write", buf="P"), op("proxy_fence")]
    send += [expect, copies] if ahead else [copies, expect]
    take = [wait("got"), op("read", buf="R"), op("proxy_fence"), arrive("sent", to=others)]
    made = document(stages, {"got": 1, "sent": cluster - 1}, {"P": TILE, "R": parts}, [role("math", send + take)])
    return made | {"cluster": cluster}


def grid(stages: int = 2) -> Document:
    """Two by two CTAs: A is shared by those of a row, B by those of a column."""
    rows, columns = [[0, 1], [0, 1], [2, 3], [2, 3]], [[0, 2], [1, 3], [0, 2], [1, 3]]
    loads = [op("arrive_tx", bar="full", bytes=2 * TILE)]
    for name, share in (("A", rows), ("B", columns)):
        loads.append(op("tma_load", buf=name, bar="full", bytes=TILE // 2, multicast=share))
    both = [sorted({*row, *column}) for row, column in zip(rows, columns, strict=True)]
    mmas = [op("mma", buf="A"), op("mma", buf="B"), op("mma_commit"), op("mma_wait", n=0)]
    roles = [role("load", [wait("empty", ph=-1), *loads])]
    roles.append(role("math", [wait("full"), *mmas, arrive("empty", to=both)]))
    return document(stages, {"full": 1, "empty": 3}, {"A": TILE, "B": TILE}, roles) | {"cluster": 4}


def meeting(often: int = 1, around: bool = False, cluster: int = 1) -> Document:
    """Two roles that meet at a named barrier before the one writes what the other reads, and after it."""
    meet = op("bar_sync", id=1)
    first, second = [op("write", buf="C"), meet], [meet, op("read", buf="C")]
    if often > 1:
        first, second = [*first, meet], [*second, meet]
    parts: dict[str, Any] = {"pre": [meet], "post": [meet]} if around else {}
    roles = [role("write", first, warps=4, **parts), role("read", second, warps=1, **parts)]
    return document(1 if often > 1 else 2, {}, {"C": TILE}, roles) | ({"cluster": cluster} if cluster > 1 else {})


def handed() -> Document:
    """A role tells another by bar_arrive that a slot is free, and waits at another number until it is filled."""
    free, filled = {"id": 1, "threads": 64}, {"id": 2, "threads": 64}
    write = [op("bar_sync", **free), op("write", buf="C"), op("bar_arrive", **filled)]
    read = [op("bar_sync", **filled), op("read", buf="C"), op("bar_arrive", **free)]
    roles = [role("write", write, warps=1), role("read", read, warps=1, pre=[op("bar_arrive", **free)])]
    roles[0]["post"] = [op("bar_sync", **free)]
    return document(1, {}, {"C": TILE}, roles)


def stored(how: str = "named", writer: bool = True, reader: bool = False, stages: int = 1) -> Document:
    """A role writes results and another stores them; the writer, the reader, both or nobody fences the proxies.

    They hand a slot over at a named barrier, at an mbarrier, or at one where all CTAs of a cluster arrive.
    """
    to, far = ({"to": "all"}, {"cluster": 2}) if how == "cluster" else ({}, {})
    fence, meet = op("proxy_fence"), op("bar_sync", id=1)
    write = [op("write", buf="C"), *[fence] * writer]
    store = [*[fence] * reader, op("tma_store", buf="C"), op("bulk_commit"), op("bulk_wait", n=0)]
    if how == "named":
        free = [meet] * (stages == 1)
        roles = [role("write", [*write, meet, *free], warps=4), role("store", [meet, *store, *free], warps=1)]
        return document(stages, {}, {"C": TILE}, roles)
    roles = [role("write", [wait("empty", ph=-1), *write, arrive("full", **to)])]
    roles.append(role("store", [wait("full"), *store, arrive("empty", **to)]))
    count = far.get("cluster", 1)
    return document(stages, {"full": count, "empty": count}, {"C": TILE}, roles) | far


@st.composite
def programs(draw: st.DrawFn) -> Document:
    """One of the above, small, with up to three changes."""
    kinds = ("gemm", "gemm", "led", "led", "exchange", "exchange", "meeting", "handed", "stored", "stored")
    kind = draw(st.sampled_from(kinds))
    if kind == "gemm":
        made = gemm(1, 2, draw(st.sampled_from((1, 1, 2))), draw(st.booleans()))
    elif kind == "led":
        made = led(draw(st.integers(1, 2)), draw(st.sampled_from((2, 2, 3))))
    elif kind == "exchange":
        made = exchange(draw(st.integers(1, 2)), draw(st.sampled_from((2, 2, 3))), draw(st.booleans()))
    elif kind == "meeting":
        made = meeting(draw(st.integers(1, 2)), draw(st.booleans()), draw(st.sampled_from((1, 1, 2))))
    elif kind == "stored":
        how = draw(st.sampled_from(("named", "mbarrier", "cluster")))
        made = stored(how, draw(st.booleans()), draw(st.booleans()), draw(st.integers(1, 2)))
    else:
        made = handed()
    made = unshared(made)
    for _ in range(draw(st.sampled_from((0, 1, 1, 2, 2, 3)))):
        change(draw, made)
    return made


def change(draw: st.DrawFn, made: Document) -> None:
    """Change one op, one count or one role."""
    parts = [ops for each in made["roles"] for ops in (each.get(name) for name in ("pre", "loop", "post")) if ops]
    if not parts:
        return
    ops = draw(st.sampled_from(parts))
    place = draw(st.integers(0, len(ops) - 1))
    one, size = ops[place], made.get("cluster", 1)
    some = st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True)
    able = ["drop", "swap", "fence"] + ["ranks", "own"] * ("to" in one or "multicast" in one)
    able += ["off", "ph"] * ("bar" in one) + ["bytes"] * ("bytes" in one) + ["turn"] * ("src" in one)
    able += ["threads", "kind"] * ("id" in one) + ["count"] * bool(made["barriers"]) + ["n"] * (one.get("n") == 0)
    what = draw(st.sampled_from(able))
    if what == "drop":
        del ops[place]
    elif what == "swap":
        ops[place : place + 2] = reversed(ops[place : place + 2])
    elif what == "fence":
        ops.insert(place, op("proxy_fence"))
    elif what == "n":
        one["n"] = 1
    elif what == "ranks":
        each = draw(st.booleans())
        key = "to" if "to" in one else "multicast"
        one[key] = draw(st.lists(some, min_size=size, max_size=size)) if each else draw(some)
    elif what == "own":
        one.pop("to", one.pop("multicast", None))
    elif what in ("off", "ph"):
        one[what] = one.get(what, 0) + draw(st.sampled_from((-1, 1)))
    elif what == "bytes":
        one["bytes"] = draw(st.sampled_from((TILE // 2, TILE, 2 * TILE)))
    elif what == "turn":
        one["src"], one["buf"] = one["buf"], one["src"]
    elif what == "count":
        barrier = made["barriers"][draw(st.sampled_from(sorted(made["barriers"])))]
        barrier["count"] = draw(st.integers(1, 3))
    elif what == "threads":
        threads = draw(st.sampled_from((64, 96, 160, 192)))
        for other in [other for ops in parts for other in ops if other.get("id") == one["id"]]:
            other["threads"] = threads
    elif what == "kind":
        one["op"] = draw(st.sampled_from(("bar_sync", "bar_arrive")))
