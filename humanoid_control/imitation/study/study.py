"""All hypotheses of the source, and the run through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from humanoid_control.capture import BodyPoints
from humanoid_control.errors import HumanoidError
from humanoid_control.imitation.study import arm, avoidance, compared, girdle, models, waist
from humanoid_control.imitation.study.finding import OPEN, Finding, Hypothesis, conclude
from humanoid_control.imitation.study.lab import Lab

_ALL = (
    *(compared.H1, compared.H17),
    *(avoidance.H15, avoidance.H16),
    *(waist.H4, waist.H5, waist.H6, waist.H7),
    *(girdle.H2, girdle.H3, girdle.H10, girdle.H11, girdle.H12),
    *(arm.H8, arm.H9, arm.H13, arm.H14, arm.H21),
    *(models.H18, models.H19, models.H20),
)
HYPOTHESES: dict[str, Hypothesis] = {h.name: h for h in sorted(_ALL, key=lambda h: int(h.name[1:]))}


def study(
    bodies: Sequence[BodyPoints],
    names: Sequence[str] = tuple(HYPOTHESES),
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Finding]:
    """Run hypotheses on clips.

    Args:
        bodies: the clips. Hypotheses that do not depend on a clip are run once.
        names: of HYPOTHESES.
        progress: called with (experiments done, experiments in all, name of the next).

    Returns:
        Findings, hypothesis by hypothesis; the clip of one that needs none is "".
    """
    labs = [Lab(body) for body in bodies]
    todo = [(HYPOTHESES[name], lab) for name in names for lab in (labs if HYPOTHESES[name].needs_clip else labs[:1])]
    found = []
    for k, (hypothesis, lab) in enumerate(todo):
        if progress is not None:
            progress(k, len(todo), hypothesis.name)
        found.append(_find(hypothesis, lab))
    if progress is not None:
        progress(len(todo), len(todo), "")
    return found


def _find(hypothesis: Hypothesis, lab: Lab) -> Finding:
    clip = lab.body.name if hypothesis.needs_clip else ""
    try:
        return conclude(hypothesis, clip, hypothesis.experiment(lab))
    except HumanoidError as e:  # a clip that a robot cannot imitate decides nothing, and stops no other experiment
        return Finding(hypothesis, clip, (), OPEN, f"could not be run: {e}")
