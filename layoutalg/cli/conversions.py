"""``layoutalg convert``: plan a conversion between register layouts, and write its kernel."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg import draw
from layoutalg.cli.exits import PROVED, UNKNOWN
from layoutalg.cli.output import Told, answer_file, put_into, say, say_json
from layoutalg.cli.subjects import said_as, texts_of
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.ground import clock
from layoutalg.ground.verdict import Unknown
from layoutalg.synth.conversions import conversion


@dataclass(frozen=True, slots=True)
class Asked:
    """The two layouts to convert between, as texts, and the options."""

    source: str
    destination: str
    element_bits: int | None
    target: str
    mechanism: str | None
    smem_bytes: int | None
    shape: tuple[int, ...] | None


def convert_layout(asked: Asked, kernel: str | None, told: Told) -> int:
    """Print the plan; write its kernel and picture if files are named; return the exit code."""
    with answer_file(kernel) as source, answer_file(told.picture) as file:
        first, second = texts_of([asked.source, asked.destination], ["source", "destination"])
        with clock.within(told.budget_seconds), said_as(OPTIONS):
            clock.check("a conversion")
            plan = conversion(
                first, second, asked.element_bits, asked.target, mechanism=asked.mechanism,
                smem_bytes=asked.smem_bytes, shape=asked.shape,
            )  # fmt: skip
        if source is not None and not isinstance(plan, Unknown):
            put_into(source, conversion_kernel(plan).text)
        if file is not None:
            put_into(file, draw.svg(plan) + "\n")
        if told.as_json:
            say_json(plan.to_json())
        else:
            say(str(plan))
    return UNKNOWN if isinstance(plan, Unknown) else PROVED


OPTIONS = {
    "element_bits": "--bits", "target": "--target", "mechanism": "--mechanism", "smem_bytes": "--smem",
    "shape": "--shape",
}  # fmt: skip
"""Arguments of ``layoutalg.conversion`` -> options of the command."""
