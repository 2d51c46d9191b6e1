"""What campaigns share: their arguments, their processes, what may come out of a case, and the record as JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
for folder in (ROOT, ROOT / "tests", ROOT / "benchmarks"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from operations.record import WrongError  # noqa: E402

from layoutalg.ground.errors import LayoutError  # noqa: E402
from layoutalg.synth.search.campaign import run_campaign  # noqa: E402
from layoutalg.synth.search.workers import answers, workers  # noqa: E402

MEASURED = ROOT / "tests" / "data" / "measured"
Work, Answer = TypeVar("Work"), TypeVar("Answer")


def parser_of(text: str | None, seed: int = 1, **given: Any) -> argparse.ArgumentParser:
    """Return a parser with ``--seed`` and one option for each keyword: a number, a list of choices, a path or a flag.

    Args:
        text: The documentation of the campaign.
        seed: Its usual seed.
        given: Option and default; a list is the choices of an option that takes several, ``Path`` a path, False a flag.
    """
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=seed)
    if "jobs" in given:
        parser.add_argument("--dask", metavar="ADDRESS", help="of a scheduler whose workers take the place of --jobs")
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            parser.add_argument(option, nargs="*", choices=value, default=[], help="only these")
        elif value is Path:
            parser.add_argument(option, type=Path)
        elif value is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(value), default=value)
    return parser


def options_of(text: str | None, **given: Any) -> argparse.Namespace:
    """Return the arguments of a campaign; see ``parser_of``."""
    return parser_of(text, **given).parse_args()


def mapped(
    function: Callable[[Work], Answer], work: Iterable[Work], jobs: int, dask: str | None = None
) -> Iterator[Answer]:
    """Yield the answers in order, from as many processes, or from the workers of dask at an address.

    Workers of dask import the campaign as a module, with all that it imports.
    """
    with workers(jobs, dask) as executor:
        yield from answers(imported(function) if dask else function, work, executor)


def imported(function: Callable[[Work], Answer]) -> Callable[[Work], Answer]:
    """Return a function of a script as workers import it."""
    if function.__module__ != "__main__":
        return function
    found: Callable[[Work], Answer] = getattr(importlib.import_module(Path(sys.argv[0]).stem), function.__name__)
    return found


def reported(cases: Sequence[tuple[str, Callable[[int], str], int]], options: argparse.Namespace) -> int:
    """Run campaigns of (name, case, count), print what each found; return 1 if something was wrong."""
    found = [
        run_campaign(name, imported(case) if options.dask else case, count, options.seed,
                     jobs=options.jobs, dask=options.dask)
        for name, case, count in cases if count
    ]  # fmt: skip
    for each in found:
        print(each, flush=True)
    return int(any(each.wrong for each in found))


def judged(case: Callable[[], str]) -> tuple[str, str]:
    """Run a case; return its outcome and what is to be said about it."""
    try:
        return case(), ""
    except WrongError as error:
        return "wrong", str(error)
    except LayoutError as error:
        where = " ".join(error.diagnostic.where)[:200]
        return f"needless {error.diagnostic.code}", f"{where}: {error.diagnostic.because[:200]}"
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"


def part_of(times: Iterable[float], share: float) -> float:
    """Return the least time that this share of the times does not exceed; 0 without times."""
    ordered = sorted(times) or [0.0]
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(times: Sequence[float]) -> dict[str, float]:
    """Return the median, the 95th percentile and the slowest of times in seconds."""
    return {
        "p50_ms": round(1e3 * part_of(times, 0.5), 2),
        "p95_ms": round(1e3 * part_of(times, 0.95), 2),
        "slowest_ms": round(1e3 * part_of(times, 1.0), 2),
    }


def report(document: Any, out: Path | None = None, indent: int | None = None) -> None:
    """Print a record, and store it where there is a file for it."""
    print(json.dumps(document, indent=indent), flush=True)
    if out is not None:
        out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
