"""Kernels of conversions on the CPU: random steps bring every element where the definition of the steps says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instruments.conversion_steps import random_plan
from judges.array_kernels import as_words, picked, relabelled

from layoutalg.codegen import hostsim
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.proofs.conversion import ConversionPlan

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def executed(plan: ConversionPlan, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What the kernel brought, and what the steps say."""
    values = np.random.default_rng(seed).integers(
        0, 1 << min(plan.element_bits, 62), (plan.warps, plan.lanes, plan.source.registers)
    )
    wanted = as_words(plan.run(values), plan.element_bits)
    found = np.zeros_like(wanted)
    assert hostsim.run(conversion_kernel(plan), [as_words(values, plan.element_bits), found]) == 0
    return found, wanted


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("seed", range(24))
def test_every_word_is_the_one_that_the_steps_say(seed: int) -> None:
    found, wanted = executed(random_plan(seed), seed)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(8))
def test_waves_of_64(seed: int) -> None:
    found, wanted = executed(random_plan(seed, "gfx942"), seed)
    assert np.array_equal(found, wanted)


def on_the_host(made: Any, arguments: list[Any], blocks: int) -> None:
    assert hostsim.run(made, arguments, blocks=blocks) == 0


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("bits", [8, 32])
def test_tables_of_elements_and_gathers(arch: str, bits: int) -> None:
    relabelled(on_the_host, arch, bits, bits)
    picked(on_the_host, arch, bits, bits)
