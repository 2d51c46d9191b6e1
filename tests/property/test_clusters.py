"""Clusters and named barriers: the document played as it stands, against what it means in plain terms."""

from __future__ import annotations

from hypothesis import assume, event, given, settings
from judges import cluster_judge, pipeline_judge
from judges.cluster_programs import programs
from judges.pipeline_programs import answer

from layoutalg.ground.errors import MalformedError
from layoutalg.pipeline import Pipeline
from layoutalg.proofs.pipeline.expansion import expanded

TRIPS, STATES = 4, 8_000
OUT_OF_TURN = "soft_ub"
"""Behind an arrival in another phase a named barrier of the hardware, which knows no parity, goes on otherwise."""


def plain(made):
    """The expansion as a document."""
    try:
        return expanded(Pipeline.from_json(made)).to_json()
    except MalformedError:
        assume(False)


@settings(max_examples=200)
@given(made=programs())
def test_the_expansion_goes_wrong_where_the_cluster_does(made):
    stated = plain(made)
    for n in range(TRIPS):
        mine, other = cluster_judge.explore(made, n, STATES), pipeline_judge.explore(stated, n, states=STATES)
        if mine is None or other is None:
            break
        event(f"{sorted(mine)}")
        named = "bar_" in str(made) and OUT_OF_TURN in mine
        assert OUT_OF_TURN in other if named else mine == other, n


@settings(max_examples=200)
@given(made=programs())
def test_verdicts_are_those_of_every_order_of_events(made):
    plain(made)
    said, kind, trips = answer(made)
    event(f"{said} {kind}")
    if said == "unsafe":
        kinds = cluster_judge.explore(made, trips, STATES)
        named = "bar_" in str(made) and kinds is not None and OUT_OF_TURN in kinds
        assert kinds is None or named or kind in {kind.removeprefix("soft_") for kind in kinds}
    elif said == "safe":
        assert cluster_judge.safe(made, TRIPS, STATES) is not False
