"""Experiments with the waist: how many joints, where, and how far they bend."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import spearmanr

from humanoid_control.imitation.collision_count import TABLE
from humanoid_control.imitation.study.finding import Hypothesis, Part, cm, decide, lower
from humanoid_control.imitation.study.lab import ROBOTS, STERNUM, Lab, Trial
from humanoid_control.robots.variants import with_locked, with_ranges, with_waist_at

HEIGHTS = (0.10, 0.16, 0.22, 0.28, 0.34)  # [m] above the mid-hip; HRP-2's own is 0.35
LOWER_TORSO = tuple(column for column in TABLE if column.endswith("lower torso"))


def _armar_waist(lab: Lab, *locked: str) -> float:
    """Sternum error of ARMAR-III with some waist joints locked [m]."""
    if not locked:
        return lab.trial("armar3").error(*STERNUM)
    variant = "locked " + " ".join(locked)
    return lab.trial("armar3", variant, partial(with_locked, joints=locked)).error(*STERNUM)


def number_of_joints(lab: Lab) -> list[Part]:
    """H4."""
    one = _armar_waist(lab, "waist_flexion", "waist_lateral_flexion")
    two = _armar_waist(lab, "waist_lateral_flexion")
    other_two = _armar_waist(lab, "waist_flexion")
    three = _armar_waist(lab)
    numbers = {"rotation only [cm]": cm(one), "rotation + flexion [cm]": cm(two)}
    numbers |= {"rotation + lateral flexion [cm]": cm(other_two), "all three [cm]": cm(three)}
    return [Part("second joint gains more than the third", decide(one - two > two - three, lower(three, one)), numbers)]


def rotation_only(lab: Lab) -> list[Part]:
    """H5."""
    one, three = _armar_waist(lab, "waist_flexion", "waist_lateral_flexion"), _armar_waist(lab)
    errors = {name: lab.trial(name).error(*STERNUM) for name in ROBOTS}
    worst = max(errors, key=lambda name: errors[name])
    return [
        Part(
            "ARMAR-III with rotation only: sternum error at least doubled",
            decide(one >= 2 * three, lower(three, one) or one > 0.01),
            {"rotation only [cm]": cm(one), "all three [cm]": cm(three)},
        ),
        Part(
            "SURALP has the largest sternum error of the five",
            decide(worst == "suralp"),
            {f"{name} [cm]": cm(e) for name, e in errors.items()},
        ),
    ]


def height(lab: Lab) -> list[Part]:
    """H6."""
    trials = [lab.trial("hrp2", f"waist at {h:.2f}", partial(with_waist_at, height=h)) for h in HEIGHTS]
    errors = [t.error(*STERNUM) for t in trials]
    hits = [sum(t.collisions.arm_torso[column] for column in LOWER_TORSO) for t in trials]
    rank = float(spearmanr(HEIGHTS, errors).statistic)
    at = [f"waist at {h:.2f} m" for h in HEIGHTS]
    return [
        Part(
            "sternum error grows with the height of the waist",
            decide(lower(errors[0], errors[-1]) and rank >= 0.8),
            {f"{name} [cm]": cm(e) for name, e in zip(at, errors, strict=True)} | {"rank correlation": round(rank, 2)},
            f"{100 * _sideways(trials[-1]):.0f} % of the sternum error is sideways, where HRP-2 has no joint",
        ),
        Part(
            "a waist near the hips has fewer collisions with the lower torso",
            decide(hits[0] < hits[-1], max(hits) > 0),
            {f"{name} [frames]": n for name, n in zip(at, hits, strict=True)},
        ),
    ]


def extension(lab: Lab) -> list[Part]:
    """H7."""
    own = lab.trial("armar3")
    human = lab.trial("armar3", "extension -30", partial(with_ranges, ranges={"waist_flexion": (-30, 60)}))
    used = beyond(human, "waist_flexion", -10)
    numbers = {"extension to -10° [cm]": cm(own.error(*STERNUM)), "to -30° [cm]": cm(human.error(*STERNUM))}
    numbers["frames beyond -10° [%]"] = round(100 * used, 1)
    bent = (human.angles("waist_flexion") < np.radians(-11)).any(axis=1)
    if bent.any():
        numbers["in those frames, to -10° [cm]"] = cm(own.error(*STERNUM, frames=bent))
        numbers["in those frames, to -30° [cm]"] = cm(human.error(*STERNUM, frames=bent))
        numbers["all points there, to -10° [cm]"] = cm(own.error(frames=bent))
        numbers["all points there, to -30° [cm]"] = cm(human.error(frames=bent))
    held = lower(human.error(*STERNUM), own.error(*STERNUM))
    return [Part("ARMAR-III: sternum error lower with human extension", decide(held, used >= 0.01), numbers)]


def _sideways(trial: Trial) -> float:
    """Share of the sternum's square error that is to the side."""
    error = trial.reached[:, 0] - trial.targets.positions[:, 0]
    return float(np.sum(error[:, 1] ** 2) / np.sum(error**2))


def beyond(trial: Trial, joint: str, degrees: float) -> float:
    """Share of the frames in which a joint, of either side, is more than 1 degree below an angle."""
    return float(np.mean((trial.angles(joint) < np.radians(degrees - 1)).any(axis=1)))


H4 = Hypothesis(
    "H4",
    "A second waist joint gains more than a third",
    "ARMAR-III, mean sternum error: (rotation only - rotation and flexion) > (rotation and flexion - all three); "
    "open where three joints gain nothing that counts over one",
    number_of_joints,
    "the dancer bends sideways as much as forward in this clip, and lateral flexion is the third joint",
)
H5 = Hypothesis(
    "H5",
    "A waist that only rotates is very poor",
    "ARMAR-III with rotation only has at least twice its sternum error, and SURALP the largest of the five robots; "
    "the first part is open where the error stays below 1 cm anyway",
    rotation_only,
    "the clip bends the trunk little, so that the joints that are missing are little missed",
)
H6 = Hypothesis(
    "H6",
    "A waist near the hips lowers the sternum error and collisions with the lower torso",
    f"HRP-2 with its waist at {', '.join(f'{h:.2f}' for h in HEIGHTS)} m: lowest clearly better than highest and rank "
    "correlation of height and error at least 0.8; fewer collisions at the lowest, open where there are none at all",
    height,
    "what bends the trunk of this clip is not what HRP-2's two waist joints can follow at any height",
)
H7 = Hypothesis(
    "H7",
    "Less waist extension than a human's raises the sternum error",
    "ARMAR-III with extension -30° instead of -10° has a clearly lower sternum error; open where fewer than 1 % of the "
    "frames use more than 10°",
    extension,
    "the dancer bends back in few frames, and there the waist trades the sternum against the other six points",
)
