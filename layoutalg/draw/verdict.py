"""Draw a verdict: the result, the engine and the evidence."""

from __future__ import annotations

from layoutalg.draw.canvas import Canvas
from layoutalg.ground.errors import shown
from layoutalg.ground.verdict import Proved, Refuted, Verdict

WIDTH = 110


def draw_verdict(canvas: Canvas, verdict: Verdict, top: float) -> None:
    """Write the verdict and its evidence, one fact per line; a refutation is framed."""
    if isinstance(verdict, Proved):
        head, facts = f"proved by {verdict.engine}", dict(verdict.certificate)
    elif isinstance(verdict, Refuted):
        head, facts = f"refuted by {verdict.engine}", dict(verdict.witness)
    else:
        head, facts = f"unknown: {verdict.reason}", {"tried": ", ".join(verdict.tried)} if verdict.tried else {}
    canvas.text(8, top + 18, head[:WIDTH], "h")
    left = 20 + 7.2 * max((len(str(key)) for key in facts), default=0)
    for place, (key, value) in enumerate(facts.items()):
        canvas.text(8, top + 40 + 18 * place, key, "s")
        canvas.text(left, top + 40 + 18 * place, value if isinstance(value, str) else shown(value, WIDTH), "n")
    if isinstance(verdict, Refuted):
        canvas.frame(1, top + 2, canvas.width + 6, canvas.height - top + 4, "w")
