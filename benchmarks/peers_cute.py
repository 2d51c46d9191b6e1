"""The same random cases through layoutalg and its peers, judged by enumeration: the table of docs/peers.md.

    python benchmarks/peers_cute.py --peers /path/to/an/environment/bin/python [--compositions 9000] [--layouts 2000]

The peers are not installed by this script. They are looked for in the interpreter given with ``--peers`` (default: the
running one): ``nvidia-cutlass==4.2.0.0`` without its dependencies (it carries pycute), ``tensor-layouts==0.3.2`` and
``nvidia-cutlass-dsl==4.8.1``. Each runs in its own process, because two inputs end the process of the last one; a case
that does so counts as needlessly or rightly refused like any other refusal, and the process is started again behind it.

Judges (``cute_judges``): a composition must have the table of A after B. A complement C must make every offset of
[0, n), n >= the bound, a sum of one offset of L and one of C in exactly one way. A right inverse R must have
L(R(i)) = i on its size, a left inverse R must have L(R(L(i))) = L(i), and R(L(i)) = i where L is injective. A divide
must have the table of A read tile by tile, a product that of the block and its copies, an upcast must fill new elements
whole, a downcast must hold every old element, a slice and its offset must have the values of the layout. Whether a
refusal was needless is judged by enumeration; a left inverse exists where any of the libraries gave a right one.

This library alone is judged on many more operations by ``campaign_operations.py --families cute``.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from cute_judges import OPERATIONS, Case, Modes, bound, expressible, random_case, random_modes, right

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("layoutalg", "pycute", "cutlass-dsl", "tensor-layouts")
FIRST = OPERATIONS[:4]  # one layout serves the complement and both inverses


def cases(compositions: int, layouts: int, seed: int) -> list[Case]:
    """Random pairs with B inside A's domain, and random layouts for the other operations."""
    generator = random.Random(seed)
    found = [random_case(generator, "composition") for _ in range(compositions)]
    for _ in range(layouts):
        modes = random_modes(generator, 8, 16)
        found += [{"operation": name, "layout": modes} for name in FIRST[1:]]
    for name in OPERATIONS[len(FIRST) :]:
        found += [random_case(generator, name) for _ in range(layouts)]
    return found


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
    operation, layout = case["operation"], build(case["layout"])
    if operation == "composition":
        answer = compose(layout, build(case["other"]))
    elif operation == "complement":
        answer = library.complement(layout, bound(case["layout"]))
    elif operation in ("logical_divide", "logical_product"):
        answer = getattr(library, operation)(layout, build(case["other"]))
    elif operation in ("upcast", "downcast"):
        if hasattr(library, "recast_layout"):  # new bits, old bits
            wide, narrow = 8 * case["factor"], 8
            answer = library.recast_layout(*((wide, narrow) if operation == "upcast" else (narrow, wide)), layout)
        else:
            answer = getattr(library, operation)(layout, case["factor"])
    elif operation == "slice":
        return sliced(tuple(case["coordinate"]), layout, library)
    else:
        answer = getattr(library, operation)(layout)
    return flat(answer.shape, answer.stride)


def sliced(coordinate: tuple[Any, ...], layout: Any, library: Any) -> Modes:
    """The kept modes and, as a last mode of extent 1, the offset of the fixed ones."""
    if hasattr(library, "slice_and_offset"):
        found = library.slice_and_offset(coordinate, layout)
        kept, offset = (found.layout, found.offset) if hasattr(found, "layout") else found
    else:
        kept = library.slice_(layout, coordinate)
        offset = library.crd2idx(tuple(0 if entry is None else entry for entry in coordinate), layout)
    return [*flat(kept.shape, kept.stride), (1, int(offset))]


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
            if crashes > 1000:
                return "more than 1000 inputs end the process"
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
            if all(str(got[index]).startswith("AttributeError") for index in mine):
                print(f"| {name} | not offered | | | |")
                continue
            given = [index for index in mine if isinstance(got[index], list)]
            refused = [index for index in mine if not isinstance(got[index], list)]
            good = sum(verdicts[name][index] for index in given)
            needless = sum(bool(exists[index]) for index in refused)
            print(f"| {name} | {good} | {len(given) - good} | {needless} | {len(refused) - needless} |")


if __name__ == "__main__":
    main()
