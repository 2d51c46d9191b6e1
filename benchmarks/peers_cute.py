"""The same random cases through layoutalg and its peers, judged by enumeration: the table of docs/peers.md.

    python benchmarks/peers_cute.py --peers /path/to/an/environment/bin/python [--compositions 9000] [--layouts 2000]

The peers are not installed by this script. They are looked for in the interpreter given with ``--peers`` (default: the
running one): ``nvidia-cutlass==4.2.0.0`` without its dependencies (it carries pycute), ``tensor-layouts==0.3.2`` and
``nvidia-cutlass-dsl==4.8.1``. Each runs in its own process, because two inputs end the process of the last one; a case
that does so counts as needlessly or rightly refused like any other refusal, and the process is started again behind it.

Judges: a composition must have the table of A after B. A complement C must make every offset of [0, n), n >= the bound,
a sum of one offset of L and one of C in exactly one way. A right inverse R must have L(R(i)) = i on its size, a left
inverse R must have L(R(L(i))) = L(i), and R(L(i)) = i where L is injective. Whether a refusal was needless is judged by
enumeration for compositions and complements; an inverse exists where any of the libraries gave a right one.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("layoutalg", "pycute", "cutlass-dsl", "tensor-layouts")
OPERATIONS = ("composition", "complement", "left_inverse", "right_inverse")
LIMIT = 2**16

Modes = list[tuple[int, int]]
Case = dict[str, Any]


def random_modes(generator: random.Random, top: int, widest: int) -> Modes:
    """One to three modes; half of the strides are products of smaller extents, as in real layouts."""
    modes: Modes = []
    for _ in range(generator.randint(1, 3)):
        extent = generator.randint(1, top)
        if generator.random() < 0.5 and modes:
            stride = generator.choice(modes)[0] * generator.choice(modes)[1]
        else:
            stride = generator.randint(0, widest)
        modes.append((extent, stride))
    return modes


def cases(compositions: int, layouts: int, seed: int) -> list[Case]:
    """Random pairs with B inside A's domain, and random layouts for the other operations."""
    generator = random.Random(seed)
    found: list[Case] = []
    while len(found) < compositions:
        outer, inner = random_modes(generator, 8, 12), random_modes(generator, 6, 12)
        if sum((extent - 1) * stride for extent, stride in inner) < size(outer):
            found.append({"operation": "composition", "layout": outer, "other": inner})
    for _ in range(layouts):
        modes = random_modes(generator, 8, 16)
        found += [{"operation": name, "layout": modes} for name in OPERATIONS[1:]]
    return found


def size(modes: Modes) -> int:
    answer = 1
    for extent, _ in modes:
        answer *= extent
    return answer


def values(modes: Modes) -> list[int]:
    """Offsets over the flat coordinates, the first mode fastest."""
    answer = [0]
    for extent, stride in modes:
        answer = [base + digit * stride for digit in range(extent) for base in answer]
    return answer


def at(modes: Modes, index: int) -> int:
    """The offset at any flat coordinate; the last mode goes on past its end."""
    total = 0
    for position, (extent, stride) in enumerate(modes):
        index, digit = divmod(index, extent) if position < len(modes) - 1 else (0, index)
        total += digit * stride
    return total


def strided(table: list[int]) -> bool:
    """Whether a table that starts at 0 is a layout of one flat coordinate."""
    done, modes = 1, []
    while done < len(table):
        stride, extent = table[done], 1
        while extent * done < len(table) and table[extent * done] == extent * stride:
            extent += 1
        modes.append((extent, stride))
        done *= extent
    return done == len(table) and values(modes) == table


def expressible(case: Case) -> bool | None:
    """Whether an answer exists as a CuTe layout; None where this judge does not know."""
    layout = case["layout"]
    if case["operation"] == "composition":
        truth = composed(case)
        parts, weight = [0], 1
        for extent, _ in case["other"]:
            run = [truth[digit * weight] for digit in range(extent)]
            if not strided(run):
                return False
            parts = [base + value for value in run for base in parts]
            weight *= extent
        return parts == truth
    if case["operation"] == "complement":
        return tiles(sorted(set(values([mode for mode in layout if mode[1]]))), layout, bound(layout))
    return None


def composed(case: Case) -> list[int]:
    outer = values(case["layout"])
    return [outer[value] for value in values(case["other"])]


def bound(modes: Modes) -> int:
    return 1 + sum((extent - 1) * stride for extent, stride in modes)


def tiles(offsets: list[int], layout: Modes, least: int) -> bool:
    """Whether translates of the offsets tile some [0, n), n >= least, with starts that form a layout."""
    kept = [mode for mode in layout if mode[1] and mode[0] > 1]
    if len(offsets) < size(kept):
        return False  # not injective
    covered: set[int] = set()
    starts: list[int] = []
    filled = 0
    while filled < 8 * least + 64:
        if filled >= least and len(covered) == 0 and strided(starts):
            return True
        if any(filled + offset in covered for offset in offsets):
            return False
        starts.append(filled)
        covered |= {filled + offset for offset in offsets}
        while filled in covered:
            covered.discard(filled)
            filled += 1
    return False


def right(case: Case, answer: Modes) -> bool:
    """Whether an answer meets the contract of its operation."""
    if any(extent < 1 for extent, _ in answer) or size(answer) > LIMIT:
        return False
    layout = case["layout"]
    if case["operation"] == "composition":
        return values(answer) == composed(case)
    table = values(layout)
    if case["operation"] == "complement":
        own = values([mode for mode in layout if mode[1]])
        both = sorted(a + b for a in own for b in values(answer))
        return both == list(range(len(both))) and len(both) >= bound(layout)
    if case["operation"] == "right_inverse":
        inverse = values(answer)
        return all(value in range(len(table)) and table[value] == index for index, value in enumerate(inverse))
    back = [at(answer, value) for value in table]
    if len(set(table)) == len(table):
        return back == list(range(len(table)))
    return all(place in range(len(table)) and table[place] == value for place, value in zip(back, table, strict=True))


# ---------------------------------------------------------------- the libraries, each in its own process


def flat(shape: Any, stride: Any) -> Modes:
    if isinstance(shape, (tuple, list)):
        return [mode for s, d in zip(shape, stride, strict=True) for mode in flat(s, d)]
    return [(int(shape), int(stride))]


def parts(modes: Modes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes)


def serve(name: str, todo: list[Case]) -> None:
    """Answer the cases one by one: a JSON line each, the modes or the text of the refusal."""

    def say(call: Any) -> None:
        try:
            answer: Any = call()
        except Exception as error:  # a peer may raise anything; every refusal counts
            answer = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(answer), flush=True)

    if name == "layoutalg":
        from layoutalg import cute

        def build(modes: Modes) -> Any:
            return cute.CuteLayout(*parts(modes))

        library: Any = cute
        compose = cute.composition
    elif name == "pycute":
        import pycute as library

        def build(modes: Modes) -> Any:
            return library.Layout(*parts(modes))

        compose = library.composition
    elif name == "tensor-layouts":
        import tensor_layouts as library

        def build(modes: Modes) -> Any:
            return library.Layout(*parts(modes))

        compose = library.compose
    else:
        serve_dsl(todo, say)
        return
    for case in todo:
        say(lambda case=case: ask(case, library, build, compose))


def ask(case: Case, library: Any, build: Any, compose: Any) -> Modes:
    layout = build(case["layout"])
    if case["operation"] == "composition":
        answer = compose(layout, build(case["other"]))
    elif case["operation"] == "complement":
        answer = library.complement(layout, bound(case["layout"]))
    else:
        answer = getattr(library, case["operation"])(layout)
    return flat(answer.shape, answer.stride)


def serve_dsl(todo: list[Case], say: Any) -> None:
    """Run inside one traced function; its body only calls a plain helper."""
    import cutlass.cute as cute

    def build(modes: Modes) -> Any:
        shape, stride = parts(modes)
        return cute.make_layout(shape, stride=stride)

    def helper() -> None:
        for case in todo:
            say(lambda case=case: ask(case, cute, build, cute.composition))

    @cute.jit
    def run() -> None:
        helper()

    run()


def answers(name: str, python: str, todo: list[Case]) -> list[Any] | str:
    """Run one library over the cases; a case that ends the process is skipped and noted."""
    interpreter = sys.executable if name == "layoutalg" else python
    found: list[Any] = []
    crashes = 0
    while len(found) < len(todo):
        run = subprocess.run(
            [interpreter, __file__, "--serve", name],
            input=json.dumps(todo[len(found) :]),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        lines = [json.loads(line) for line in run.stdout.splitlines() if line[:1] in '["']
        found += lines
        if len(found) < len(todo):
            if not found:
                return run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "no answer"
            found.append("the process ended")
            crashes += 1
            if crashes > 50:
                return "more than 50 inputs end the process"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, help="interpreter in which the peers are installed")
    parser.add_argument("--compositions", type=int, default=9000)
    parser.add_argument("--layouts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, json.load(sys.stdin))
        return
    todo = cases(options.compositions, options.layouts, options.seed)
    replies = {name: answers(name, options.peers, todo) for name in PEERS}
    verdicts = {
        name: [isinstance(reply, list) and right(case, reply) for case, reply in zip(todo, got, strict=True)]
        for name, got in replies.items()
        if isinstance(got, list)
    }
    exists = [expressible(case) for case in todo]
    for index, known in enumerate(exists):
        if known is None:
            exists[index] = any(row[index] for row in verdicts.values())
    for operation in OPERATIONS:
        mine = [index for index, case in enumerate(todo) if case["operation"] == operation]
        print(f"\n{operation}: {len(mine)} cases, {sum(bool(exists[index]) for index in mine)} have an answer\n")
        print("| library | right | silently wrong | needlessly refused | rightly refused |")
        print("|---|---|---|---|---|")
        for name in PEERS:
            got = replies[name]
            if isinstance(got, str):
                print(f"| {name} | not run: {got} | | | |")
                continue
            given = [index for index in mine if isinstance(got[index], list)]
            refused = [index for index in mine if not isinstance(got[index], list)]
            good = sum(verdicts[name][index] for index in given)
            needless = sum(bool(exists[index]) for index in refused)
            print(f"| {name} | {good} | {len(given) - good} | {needless} | {len(refused) - needless} |")


if __name__ == "__main__":
    main()
