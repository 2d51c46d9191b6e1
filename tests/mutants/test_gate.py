"""At full strength, one tenth of the stored mutants, by date, against the tests that are known to kill them.

LAYOUTALG_MUTANTS chooses another tenth, 0 to 9, "all" or "none". ``make mutants`` asks all related tests.
"""

from __future__ import annotations

import datetime
import os

import pytest

from mutants.sandbox import Outcome
from mutants.stored import Mutant, load
from mutants.trial import killed_by

TENTH = os.environ.get("LAYOUTALG_MUTANTS") or str(datetime.datetime.now(datetime.UTC).date().toordinal() % 10)
CHOSEN = [
    mutant
    for place, mutant in enumerate(mutant for mutant in load() if mutant.killer)
    if TENTH in ("all", str(place % 10))
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return killed_by(CHOSEN, tmp_path_factory.mktemp("copies"))


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda mutant: mutant.name)
def test_its_test_still_notices(mutant: Mutant, outcomes: dict[str, Outcome]):
    sane = outcomes[mutant.killer]
    assert sane.status == "survived", f"{mutant.killer} fails without a mutant: {sane.said}"
    outcome = outcomes[mutant.name]
    assert outcome.status == "killed", (
        f"{mutant.killer} no longer notices that {mutant.path} has {mutant.new!r} for {mutant.old!r} "
        f"({outcome.status}): mend the test, or find another by tests/mutants/run.py --name {mutant.name} --keep\n"
        f"{outcome.said}"
    )
