"""Programs of drawn roles, slots, counts, named barriers and ways to fill a slot, with what they have to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from layoutalg.codegen import hostsim
from layoutalg.codegen.host_report import Report
from layoutalg.codegen.pipeline import Emitted, Loop, Program, Worker
from layoutalg.proofs.pipeline.document import Pipeline

WORDS = 128
"""Words of a slot."""
COPY = """\
for (la_u32 i = {first}; i < {parts}; i += {step})
    la_cp_async_{bytes}($T + {bytes} * i, from + {words} * k + {each} * i);"""
STORE = (
    "for (la_u32 i = {first}; i < {words}; i += {step}) la_shared_store_b32($T_byte + 4 * i, from[{words} * k + i]);"
)
READ = "value = 3 * value + la_shared_load_b32($T_byte + 4 * ((7 * t + k) % {words}));"
KEEP = " into[({many} * k + {which}) * 64 + t] = value;"
TAKE = "value += la_shared_load_b32(${buf}_byte + 4 * (63 - t));"
GIVE = "la_shared_store_b32(${buf}_byte + 4 * t, value);"


@dataclass(frozen=True)
class Drawn:
    """How slots are filled, and by whom; how often readers arrive; which barriers they name.

    Args:
        stages: Slots.
        fill: ``"arrive"``, ``"groups"`` (both cp.async) or ``"write"``.
        warps: Of the filling role; 0: one thread.
        width: Bytes of a copy.
        ahead: Copies that are not waited for in their own iteration.
        arrive: 1 for one thread, 2 for each warp, 3 for every thread of the filling role.
        readers: The same for each reading role (2 warps each).
        behind: Iterations after which a slot is handed back.
        turns: Numbers of the barriers by which two readers take turns.
        met: Number of a barrier at which all roles meet in every iteration.
        reset: Iterations after which counters start again.
    """

    stages: int
    fill: str
    warps: int
    width: int
    ahead: int
    arrive: int
    readers: tuple[int, ...]
    behind: int
    turns: tuple[int, int] | None
    met: int
    reset: int

    @property
    def document(self) -> Pipeline:
        """The pipeline."""
        threads = max(1, 32 * self.warps)
        full = threads if self.fill == "arrive" else [1, max(1, self.warps), threads][self.arrive - 1]
        named = {"op": "bar_sync", "id": self.met}
        loop: list[dict[str, Any]] = [{"op": "wait", "bar": "empty", "ph": -1}]
        loop.append({"op": "write" if self.fill == "write" else "cp_async", "buf": "T"})
        arrive, post = {"op": "arrive", "bar": "full", "n": full}, []
        if self.fill == "arrive":
            loop.append({"op": "cp_async_arrive", "bar": "full", "n": full})
        elif self.fill == "groups":
            loop += [{"op": "cp_async_commit"}, {"op": "cp_async_wait", "n": self.ahead}, arrive | {"off": -self.ahead}]
            for left in range(self.ahead - 1, -1, -1):
                post += [{"op": "cp_async_wait", "n": left}, arrive | {"off": -left - 1}]
        else:
            loop.append(arrive)
        roles = [{"name": "fill", "loop": loop + [named] * bool(self.met), "post": post}]
        roles[0] |= {"warps": self.warps} if self.met else {}
        for which, count in enumerate(self.readers):
            back = {"op": "arrive", "bar": "empty", "n": [1, 2, 64][count - 1]}
            loop = [{"op": "wait", "bar": "full"}, {"op": "read", "buf": "T"}, back | {"off": -self.behind}]
            role = {"name": f"read{which}", "loop": loop + self.chain(which) + [named] * bool(self.met)}
            role["post"] = [back | {"off": -late} for late in range(self.behind, 0, -1)]
            if self.turns:
                role["post"] += [{"op": "bar_sync", "id": self.turns[0]}] * (which == 0)
                role["pre"] = [{"op": "bar_arrive", "id": self.turns[0]}] * (which == 1)
            roles.append(role | ({"warps": 2} if self.turns or self.met else {}))
        counts = sum([[1, 2, 64][count - 1] for count in self.readers])
        document = {
            "schema": "layoutalg/pipeline/1", "stages": self.stages, "roles": roles,
            "barriers": {"full": {"count": full}, "empty": {"count": counts}},
            "buffers": {"T": {"bytes": 4 * WORDS}} | {name: {"bytes": 256, "slots": 1} for name in "PQ" if self.turns},
        }  # fmt: skip
        return Pipeline.from_json(document | ({"phase_reset_every": self.reset} if self.reset else {}))

    def chain(self, which: int) -> list[dict[str, Any]]:
        """A reader takes the other one's value, and gives its own."""
        if not self.turns:
            return []
        mine, other = self.turns[which], self.turns[1 - which]
        take: dict[str, Any] = {"op": "read", "buf": "QP"[which]} | ({"off": -1} if which == 0 else {})
        return [
            {"op": "bar_sync", "id": mine},
            take,
            {"op": "write", "buf": "PQ"[which]},
            {"op": "bar_arrive", "id": other},
        ]

    @property
    def program(self) -> Program:
        """The program."""
        numbers = {"first": "t" if self.warps else "0", "step": 32 * self.warps or 1, "words": WORDS}
        text = STORE if self.fill == "write" else COPY
        text = text.format(**numbers, parts=4 * WORDS // self.width, bytes=self.width, each=self.width // 4)
        workers = [Worker((Loop("fill", (("loop[1]", text),)),), max(1, self.warps), elected=not self.warps)]
        for which in range(len(self.readers)):
            keep = KEEP.format(many=len(self.readers), which=which)
            bodies = [("loop[1]", READ.format(words=WORDS) + keep * (not self.turns))]
            if self.turns:
                bodies += [("loop[4]", TAKE.format(buf="QP"[which])), ("loop[5]", GIVE.format(buf="PQ"[which]) + keep)]
            workers.append(Worker((Loop(f"read{which}", tuple(bodies)),), 2, start="la_u32 value = 0;"))
        parameters = (("const la_u32*", "from"), ("la_u32*", "into"), ("int", "n"))
        return Program(self.document, tuple(workers), parameters, "n")

    def results(self, source: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.uint32]:
        """What each thread of each reader has to store in each iteration."""
        slots, t = source.reshape(-1, WORDS), np.arange(64)
        values = np.zeros((len(self.readers), 64), dtype=np.uint32)
        given = np.zeros(64, dtype=np.uint32)
        found = np.zeros((n, len(self.readers), 64), dtype=np.uint32)
        for k in range(n):
            values = np.uint32(3) * values + slots[k, (7 * t + k) % WORDS]
            if self.turns:
                values[0] += given[::-1]
                values[1] += values[0][::-1]
                given = values[1].copy()
            found[k] = values
        return found

    def run(self, made: Emitted, n: int, seed: int) -> tuple[Report, str, bool]:
        """Run on the CPU: what it reports, which wait gave up, whether all bits are right."""
        room = np.random.default_rng(n).integers(0, 1 << 32, WORDS * n + 4, dtype=np.uint32)
        source = room[-room.ctypes.data % 16 // 4 :][: WORDS * n]
        wanted = self.results(source, n)
        into, status = np.zeros_like(wanted), np.zeros(1, dtype=np.int32)
        report = hostsim.examine(made.kernel, [source, into, n, status], seed=seed)
        return report, made.gave_up(int(status[0])), bool((into == wanted).all())


@st.composite
def drawn_programs(draw: st.DrawFn) -> Drawn:
    """Programs most of whose pipelines are safe."""
    stages, fill = draw(st.integers(1, 4)), draw(st.sampled_from(["arrive", "arrive", "groups", "groups", "write"]))
    readers = tuple(draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=2)))
    ids = draw(st.lists(st.integers(1, 15), min_size=3, max_size=3, unique=True))
    turns = (ids[0], ids[1]) if len(readers) == 2 and draw(st.booleans()) else None
    ahead = draw(st.integers(0, stages - 1)) if fill == "groups" else 0
    behind = draw(st.integers(0, stages - 1 - ahead))
    met = ids[2] if draw(st.integers(0, 3)) == 0 and not ahead else 0
    warps = draw(st.integers(int(bool(met)), 3))
    plain = not (turns or met or ahead or behind)
    reset = 2 * stages * draw(st.integers(1, 2)) if plain and draw(st.integers(0, 2)) == 0 else 0
    return Drawn(
        stages, fill, warps, draw(st.sampled_from([4, 8, 16])), ahead, draw(st.integers(1, 3)), readers, behind, turns,
        met, reset,
    )  # fmt: skip
