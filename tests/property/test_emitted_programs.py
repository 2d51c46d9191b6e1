"""Kernels of drawn pipelines give the same bits in every order of events; with a mistake they are found."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from instruments.drawn_programs import Drawn, drawn_programs

from layoutalg.codegen import hostsim
from layoutalg.codegen.pipeline import emit
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.proofs.pipeline import verify

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(drawn_programs(), st.integers(1, 2**16))
def test_proved_programs_give_equal_bits_in_every_order(drawn: Drawn, seed: int) -> None:
    proved = type(verify(drawn.document)).__name__ == "Proved"
    event(f"{drawn.fill}{' in turns' if drawn.turns else ''}{' met' if drawn.met else ''}, proved {proved}")
    if not proved:
        with pytest.raises(AdmissibilityError, match="LA986"):
            emit(drawn.program, "drawn")
        return
    made = emit(drawn.program, "drawn")
    for n in (0, 1, drawn.stages + 1, 2 * drawn.stages + drawn.reset + 1):
        for order in (0, seed, seed + 1, seed + 2):
            report, gave_up, right = drawn.run(made, n, order)
            assert (report.fault, report.why, gave_up, right) == (0, "", "", True), (n, order)
