"""Commands that try many cases: choices of a kernel, measured or ranked, and random campaigns."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, REFUTED, UNKNOWN
from layoutalg.cli.inputs import as_options
from layoutalg.cli.output import Steps, say_answer
from layoutalg.cli.questions import ARGUMENTS
from layoutalg.codegen.kernels.spaces import gemm_space
from layoutalg.codegen.measure import MeasureGemm
from layoutalg.ground import clock
from layoutalg.ground.document import malformed
from layoutalg.synth.search import Trial, Tuned, tune
from layoutalg.synth.search.campaign import run_campaign as run_cases
from layoutalg.synth.search.workers import workers

CAMPAIGNS = ("ragged", "indirect")
"""Functions of ``layoutalg.testing.campaigns``."""


def run_tune(given: commands.Tune) -> int:
    """Print the choices that should be fastest, measured if there is a function for it."""
    m, n, k = given.shape
    with clock.within(given.budget), as_options(ARGUMENTS | {"top": "--top", "dtype": "--dtype"}):
        space = gemm_space((m, n, k), given.dtype, given.target)
    if given.measure is not None:
        measure = (
            MeasureGemm((m, n, k), given.dtype, given.target)
            if given.measure == "gpu"
            else _named("--measure", given.measure)
        )
        with as_options({"dask": "--dask"}), workers(dask=given.dask) as executor:
            say_answer(tune(space, measure, executor, given.database, given.top), given.json)
        return PROVED
    for option, value in (("--database", given.database), ("--dask", given.dask)):
        if value is not None:
            raise malformed(option, "needs --measure: nothing is measured without it", value)
    ranked, refused = space.ranked()
    shown = [Trial(each.choice, each.cycles, each.bound, None, "not measured") for each in ranked[: given.top]]
    say_answer(Tuned(tuple(shown), len(ranked), len(refused)), given.json)
    return PROVED


def run_campaign(given: commands.Campaign) -> int:
    """Run random cases and print those that go wrong; a campaign that the time limit cut is undecided."""
    if ":" not in given.name and given.name not in CAMPAIGNS:
        raise malformed("NAME", f"must be {', '.join(CAMPAIGNS)} or MODULE:FUNCTION", given.name)
    case = _named("NAME", given.name if ":" in given.name else f"layoutalg.testing.campaigns:{given.name}")
    options = {"plans": "--plans", "workers": "--workers", "dask": "--dask", "seed": "--seed"}
    with as_options(options):
        found = run_cases(
            given.name, case, given.plans, given.seed, jobs=given.workers, dask=given.dask, seconds=given.budget,
            progress=Steps(given.plans).done,
        )  # fmt: skip
    say_answer(found, given.json)
    return REFUTED if found.wrong else PROVED if found.done == found.asked else UNKNOWN


def _named(option: str, text: str) -> Callable[[Any], Any]:
    """Return the function MODULE:FUNCTION; modules of the working directory count."""
    sys.path.insert(0, "")
    try:
        found: Callable[[Any], Any] = pkgutil.resolve_name(text)
    except (ImportError, AttributeError, ValueError) as error:
        raise malformed(option, f"must be MODULE:FUNCTION ({error})", text) from None
    finally:
        sys.path.remove("")
    return found
