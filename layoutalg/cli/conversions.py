"""The command ``convert``: how registers come from one layout to another, and the kernel that does it.

Main definitions: ``convert_layout``, ``Asked``.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.cli.exits import PROVED, UNKNOWN
from layoutalg.cli.output import answer_file, say, say_json
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.ground import clock
from layoutalg.ground.verdict import Unknown
from layoutalg.synth.conversions import conversion


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be converted: two texts, and the options."""

    source: str
    destination: str
    element_bits: int
    target: str
    mechanism: str | None
    smem_bytes: int | None
    shape: tuple[int, ...] | None


def convert_layout(asked: Asked, output: str | None, budget_seconds: float, as_json: bool) -> int:
    """Print the plan, write its kernel where a file is named; return the exit code."""
    with clock.within(budget_seconds):
        plan = conversion(
            asked.source, asked.destination, asked.element_bits, asked.target, mechanism=asked.mechanism,
            smem_bytes=asked.smem_bytes, shape=asked.shape,
        )  # fmt: skip
    if isinstance(plan, Unknown):
        say_json(plan.to_json()) if as_json else say(str(plan))
        return UNKNOWN
    with answer_file(output) as file:
        if file is not None:
            file.write(conversion_kernel(plan).text)
    if as_json:
        say_json(plan.to_json())
    else:
        say(str(plan))
    return PROVED
