"""Who decides what, and what a solver is worth: joint layouts, coupled paddings, conditions on symbolic sizes.

    python3 benchmarks/campaign_solvers.py [--joint 240] [--paddings 160] [--conditions 500] [--seed 0]

Joint layouts: random tiles with random consumers are answered by the plain orders alone (the algebra), then with the
search; it and z3 are timed on the same question, "is there an order that costs less?". Paddings: random coupled
conditions are answered by rounding every pitch up in turn and by ISL, and z3 looks for less. A better answer counts
only after it was planned, counted and checked anew. Conditions on symbolic sizes are asked of the ladder of
``ground.decide``; the tiles of the demo are planned, and the engine of each proof is counted. The exit status is 1
where engines disagree or an answer does not hold.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from math import lcm
from typing import Any

from campaign import ROOT, options_of

from layoutalg.f2 import LinearLayout
from layoutalg.ground.assumptions import Assumptions, condition
from layoutalg.ground.decide import decide
from layoutalg.ground.errors import BudgetError, InfeasibleError, LayoutError
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.solving import AtLeast, Multiple, Spread, joint, least_padding
from layoutalg.synth.solving import joint_plan as model
from layoutalg.synth.solving import joint_question as asking
from layoutalg.synth.solving.orders import by_search
from tests.judges.shared_solvers import by_solver, lesser

NAMES = ("ld.shared.b32", "ld.shared.v2.b32", "ld.shared.v4.b32", "st.shared.b32", "st.shared.v4.b32")
Times = dict[str, dict[str, list[float]]]


def timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer and its milliseconds; a budget that ran out is the answer ``BudgetError``."""
    start = time.perf_counter()
    try:
        found = ask()
    except BudgetError:
        found = BudgetError
    return found, 1e3 * (time.perf_counter() - start)


def registers(rng: random.Random, rows: int, columns: int, vector: int) -> LinearLayout:
    """Registers whose lanes walk random digits of the tile, with so many digits of the columns in a vector."""
    digits = [(1 << bit, 0) for bit in range(rows.bit_length() - 1)]
    digits += [(0, 1 << bit) for bit in range(vector, columns.bit_length() - 1)]
    rng.shuffle(digits)
    held = [(0, 1 << bit) for bit in range(vector)]
    bases = {"register": [*held, *digits[5:]], "lane": digits[:5], "warp": []}
    return LinearLayout.from_bases(bases, {"row": rows, "col": columns})


def question(rng: random.Random) -> tuple[tuple[int, int], str, list[Any], str]:
    """A tile, its type, its consumers and who fills it."""
    dtype, low = rng.choice((("bf16", 1), ("f32", 2), ("u8", 0)))
    rows, columns = 1 << rng.randint(4, 7), 1 << rng.randint(6 - low, 8 - low)
    fill = rng.choice(("tma", "tma", "tma", "threads"))
    consumers: list[Any] = []
    if dtype == "bf16" and rng.random() < 0.4 and rows >= 64:
        consumers.append("wgmma.A")
    elif rng.random() < 0.5:
        consumers.append("ldmatrix.x4")
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(NAMES)
        vector = 2 + {"b32": 0}.get(name.split(".")[-1], 0) - low + (1 if "v2" in name else 2 if "v4" in name else 0)
        pair = rng.random() < 0.85 and columns >> vector >= 1 and rows * columns >> vector >= 64
        consumers.append((name, registers(rng, rows, columns, vector)) if pair else name)
    if fill == "tma" and rng.random() < 0.2:
        consumers.append("tma.store")
    return (rows, columns), dtype, consumers, fill


def algebra(tile: tuple[int, int], dtype: str, consumers: list[Any], fill: str) -> tuple[Any, Any, Any]:
    """Return (what the plain orders reach, the bound, the questions that are left)."""
    asked = asking.read(tile, dtype, consumers, "sm_90a", None, fill, {})
    best = model._Best()
    questions = list(asking.questions(asked, best.reasons))
    for each, found in model._canonical(questions):
        model._tried(asked, each, found, "algebra", best)
    if fill == "threads":
        model._padded(asked, best)
    return best, asking.bound_of(asked), questions


def joint_layouts(cases: int, seed: int) -> tuple[Counter[str], Times, list[str]]:
    """Answer random questions; count who decided, and what the engines took."""
    decided: Counter[str] = Counter()
    times: Times = defaultdict(lambda: defaultdict(list))
    wrong: list[str] = []
    for index in range(cases):
        rng = random.Random(f"{seed} joint {index}")
        asked = question(rng)
        try:
            (best, bound, questions), spent = timed(lambda asked=asked: algebra(*asked))
        except LayoutError:
            decided["not asked: the instruction does not move the tile"] += 1
            continue
        times["plain orders"]["algebra"].append(spent)
        try:
            plan, spent = timed(lambda asked=asked: joint(*asked[:3], fill=asked[3]))
        except InfeasibleError:
            decided["refused: no order serves all"] += 1
            continue
        if plan is BudgetError:
            decided["open: no layout found, none excluded"] += 1
            continue
        times["the whole answer"]["joint"].append(spent)
        if best.cost == bound:
            decided["algebra, at the bound"] += 1
        elif best.plan is None:
            decided["solver, where algebra has none"] += 1
        elif (plan.issues, plan.turns) < best.cost:
            decided["solver, better than algebra"] += 1
        else:
            decided["algebra, and the engines show that nothing is better" if plan.optimal else "open: a gap"] += 1
        if (plan.issues, plan.turns) != best.cost and not all(bool(each.check()) for each in plan.certificates):
            wrong.append(f"joint {index}: a certificate does not hold")
        for each in questions:
            if best.cost == bound:
                continue
            cost = (plan.issues, plan.turns)
            for what, limit in (("find an order", best.cost), ("show that there is none", cost)):
                search, one = timed(lambda each=each, limit=limit: by_search(each, limit))
                smt, two = timed(lambda each=each, limit=limit: by_solver(each, limit))
                if BudgetError not in (search, smt) and (search is None) != (smt is None):
                    wrong.append(f"joint {index}: the engines disagree")
                times[f"{what}, {len(each.free)} digits"]["search"].append(one)
                times[f"{what}, {len(each.free)} digits"]["z3"].append(two)
    return decided, times, wrong


def conditions(rng: random.Random) -> tuple[str, tuple[str, ...], list[Any]]:
    """Coupled conditions on pitches of 1 to 3 dimensions, and their class."""
    rank = rng.randint(1, 3)
    names = ("row", "plane", "block")[:rank]
    found: list[Any] = [Multiple((("row", 1),), 16), AtLeast((("row", 1),), rng.randrange(32, 600))]
    for inner, outer in itertools.pairwise(names):
        found.append(AtLeast(((outer, 1), (inner, -rng.randrange(2, 40))), 0))
        found.append(Multiple(((outer, 1),), rng.choice((16, 32, 128, 384))))
    found.append(Spread((("row", rng.choice((4, 8))),), 16))
    kind = f"{rank} pitches"
    if rank > 1 and rng.random() < 0.5:
        found.append(Spread((("row", 2), ("plane", rng.choice((2, 4)))), 16))
        kind += ", lanes over two"
    if rank > 1 and rng.random() < 0.4:
        found.append(Multiple(((names[0], rng.randrange(2, 6)), (names[-1], 1)), rng.choice((48, 80, 112))))
        kind += ", coupled"
    return kind, names, found


def rounded(names: tuple[str, ...], found: list[Any]) -> dict[str, int] | None:
    """Round every pitch up in turn to the multiples and lower ends that speak of it; None where that breaks another."""
    at = dict.fromkeys(names, 0)
    for name in names:
        grain = lcm(*[each.of for each in found if isinstance(each, Multiple) and each.form == ((name, 1),)], 1)
        low = 0
        for each in found:
            if isinstance(each, AtLeast) and each.form[0] == (name, 1):
                low = max(low, each.low - sum(factor * at[other] for other, factor in each.form[1:]))
        at[name] = -(-low // grain) * grain
        alone = [
            each for each in found if isinstance(each, Spread) and len(each.steps) == 1 and each.steps[0][0] == name
        ]
        for _ in range(9):  # pad by one chunk until the lanes spread
            if all(each.holds(at) for each in alone):
                break
            at[name] += grain
    return at if all(each.holds(at) for each in found) else None


def least_or_none(names: tuple[str, ...], found: list[Any]) -> dict[str, int] | None:
    """The least pitches; None where there are none."""
    try:
        return dict(least_padding(names, found).pitches)
    except InfeasibleError:
        return None


def paddings(cases: int, seed: int) -> tuple[Counter[str], Times, list[str]]:
    """Answer random conditions by rounding, and by ISL."""
    decided: Counter[str] = Counter()
    times: Times = defaultdict(lambda: defaultdict(list))
    wrong: list[str] = []
    for index in range(cases):
        kind, names, found = conditions(random.Random(f"{seed} padding {index}"))
        plain, one = timed(lambda names=names, found=found: rounded(names, found))
        answer, two = timed(lambda names=names, found=found: least_or_none(names, found))
        for engine, spent in (("rounding", one), ("ISL", two)):
            times[kind][engine].append(spent)
        if isinstance(answer, dict) and lesser(names, found, (), answer) is not None:
            wrong.append(f"padding {index}: z3 finds less")
        if answer is BudgetError or answer is None:
            decided["no answer" if answer is BudgetError else "no pitches exist"] += 1
        elif plain is None:
            decided["solver, where rounding has none"] += 1
        elif tuple(answer.values()) < tuple(plain.values()):
            decided["solver, less than rounding"] += 1
        else:
            decided["rounding, and nothing is less"] += 1
    return decided, times, wrong


def ladder(cases: int, seed: int) -> tuple[Counter[str], Times]:
    """Ask random conditions on symbolic sizes."""
    rng = random.Random(f"{seed} ladder")
    decided: Counter[str] = Counter()
    times: Times = defaultdict(lambda: defaultdict(list))
    for _ in range(cases):
        a, b = rng.choice((4, 8, 16, 32, 64)), rng.choice((2, 8, 16, 48, 128))
        given = [f"K % {a} == 0", *rng.sample(["M % K == 0", "M >= 2*K", "N >= 1", f"N % {b} == 0", "M*N >= 64"], 2)]
        claim = rng.choice((f"K % {b} == 0", f"M*K % {b} == 0", "M >= K", f"K*N >= {a}", f"M*N % {a} == 0", "M*M >= K",
                            f"K + {a // 2} != {b}"))  # fmt: skip
        answer, spent = timed(lambda given=given, claim=claim: decide(Assumptions(tuple(given)), condition(claim)))
        engine = "out of time" if answer is BudgetError else answer.engine
        decided[engine] += 1
        times[engine][engine].append(spent)
    return decided, times


def tiles() -> Counter[str]:
    """Plan the tiles of the demo and count the engines of their proofs."""
    found = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
    decided: Counter[str] = Counter()
    for tile in found:
        try:
            decided[str(synthesize_tensormap(tile.get("problem", tile), repair=False).certificate["engine"])] += 1
        except LayoutError:
            decided["refused"] += 1
    return decided


def table(title: str, decided: Counter[str], times: Times | None = None) -> None:
    """Print two tables of Markdown."""
    print(f"\n{title}\n\n| decided by | questions |\n|---|---|")
    for name, many in decided.most_common():
        print(f"| {name} | {many} |")
    for kind in sorted(times or {}):
        engines = (times or {})[kind]
        told = "; ".join(
            f"{name} {statistics.median(spent):.2f} ms (worst {max(spent):.0f}, {len(spent)} asked)"
            for name, spent in sorted(engines.items(), key=lambda entry: statistics.median(entry[1]))
        )
        print(f"- {kind}: {told}")


def main() -> int:
    """Run the campaign."""
    given = options_of(__doc__, seed=0, joint=240, paddings=160, conditions=500)
    decided, times, wrong = joint_layouts(given.joint, given.seed)
    table("Joint layouts", decided, times)
    better = decided["solver, where algebra has none"] + decided["solver, better than algebra"]
    decided, times, more = paddings(given.paddings, given.seed)
    table("Paddings", decided, times)
    better += decided["solver, where rounding has none"] + decided["solver, less than rounding"]
    table("Conditions on symbolic sizes", *ladder(given.conditions, given.seed))
    table("Proofs of the demo's tiles", tiles())
    print(f"\n{better} answers that algebra alone does not have; {len(wrong + more)} wrong")
    print(*wrong, *more, sep="\n")
    return 1 if wrong or more else 0


if __name__ == "__main__":
    raise SystemExit(main())
