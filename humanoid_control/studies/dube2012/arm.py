"""Experiments with the arm: ranges, joints taken away, the singular shoulder."""

from __future__ import annotations

from functools import partial

import numpy as np

from humanoid_control.evaluation.shoulder_singularity import gh_singularity
from humanoid_control.evaluation.tracking_error import MEAN, link_errors, reached_points, unbroken_runs
from humanoid_control.retargeting import retarget_clip
from humanoid_control.studies.dube2012.girdle_waist import beyond
from humanoid_control.studies.dube2012.lab import ARMS, DUBE2012, RetargetingLab, singular_motion
from humanoid_control.studies.dube2012.robot_variants import with_locked, with_ranges
from humanoid_control.studies.verdict import HOLDS, OPEN, Hypothesis, Part, cm, decide, lower

TRAPPED, TRAPPED_FOR = 0.05, 0.5  # [m], [s]
SINGULAR = 0.26  # sine of 15 degrees
BURST = 3  # frames
ARM_JOINTS = ("shoulder_flexion", "shoulder_abduction", "shoulder_rotation", "elbow_flexion")


def large_extension(lab: RetargetingLab) -> list[Part]:
    """H8: arm errors of WABIAN-2 with shoulder extension to -180° and to -90°, and how long an arm stays trapped."""
    whole = lab.trial("wabian2")
    cut = lab.trial("wabian2", "extension -90", partial(with_ranges, ranges={"shoulder_flexion": (-90, 180)}))
    used = beyond(whole, "shoulder_flexion", -90)
    numbers = {"extension to -180° [cm]": cm(whole.error(*ARMS)), "to -90° [cm]": cm(cut.error(*ARMS))}
    numbers["frames beyond -90° [%]"] = round(100 * used, 1)
    longest = 0
    for side in "lr":
        lost = np.mean([whole.errors[f"{side}_{k}"] - cut.errors[f"{side}_{k}"] for k in ("elbow", "wrist")], axis=0)
        deep = whole.angles(f"{side}_shoulder_flexion")[:, 0] < np.radians(-91)
        longest = max(longest, longest_run((lost > TRAPPED) & deep))
    seconds = longest / lab.body.rate
    trap = HOLDS if seconds >= TRAPPED_FOR else OPEN  # that it did not happen here does not say that it cannot
    return [
        Part("cutting it raises no error", decide(not lower(whole.error(*ARMS), cut.error(*ARMS))), numbers),
        Part("an arm is trapped there", trap, {"longest [s]": round(seconds, 2)}),
    ]


def little_extension(lab: RetargetingLab) -> list[Part]:
    """H9: arm errors of ARMAR-III with its own shoulder extension and with a human's."""
    own = lab.trial("armar3")
    human = lab.trial("armar3", "arm extension -60", partial(with_ranges, ranges={"shoulder_flexion": (-60, 180)}))
    used = beyond(human, "shoulder_flexion", -10)
    numbers = {"extension to -10° [cm]": cm(own.error(*ARMS)), "to -60° [cm]": cm(human.error(*ARMS))}
    numbers["frames beyond -10° [%]"] = round(100 * used, 1)
    held = lower(human.error(*ARMS), own.error(*ARMS))
    return [Part("ARMAR-III: arm error lower with human extension", decide(held, used >= 0.01), numbers)]


def singularity(lab: RetargetingLab) -> list[Part]:
    """H13: mean error near the singular shoulder and away from it, in a motion that passes it on purpose."""
    parts = []
    for name in ("armar3", "suralp", "wabian2", "we4rii"):
        robot = lab.robot(name)
        targets = singular_motion(robot)
        joints = retarget_clip(targets, robot, DUBE2012).positions
        e = link_errors(reached_points(robot, joints), targets)[MEAN]
        near = (gh_singularity(robot, joints) < SINGULAR).any(axis=1)
        burst = longest_run(near & (e > e.mean() + 2 * e.std()))
        at, away = (float(e[mask].mean()) if mask.any() else float("nan") for mask in (near, ~near))
        numbers = {"near [cm]": cm(at), "away [cm]": cm(away), "frames near": int(near.sum()), "burst [frames]": burst}
        held = at >= 2 * away and burst >= BURST and lower(away, at)
        parts.append(
            Part(f"{name}: error doubled near the singularity, in a burst", decide(held, bool(near.any())), numbers)
        )
    return parts


def fewer_joints(lab: RetargetingLab) -> list[Part]:
    """H14: arm errors with one arm joint locked after the other."""
    parts = []
    for name in ("wabian2", "we4rii"):
        whole = lab.trial(name).error(*ARMS)
        for joint in ARM_JOINTS:
            less = lab.trial(name, f"locked {joint}", partial(with_locked, joints=[joint])).error(*ARMS)
            numbers = {"locked [cm]": cm(less), "free [cm]": cm(whole)}
            seen = f"{name} is better off without {joint}: free, the solver is held in a worse posture"
            claim = f"{name}: {joint.replace('_', ' ')} is missed"
            parts.append(Part(claim, decide(lower(whole, less)), numbers, seen if less < whole else ""))
    return parts


def hyperextension(lab: RetargetingLab) -> list[Part]:
    """H21: arm errors with the elbow clamped at 0°."""
    parts = []
    for name, most in (("suralp", 110), ("armar3", 150), ("wabian2", 130)):
        own = lab.trial(name)
        cut = lab.trial(name, "elbow from 0", partial(with_ranges, ranges={"elbow_flexion": (0, most)}))
        numbers = {"own range [cm]": cm(own.error(*ARMS)), "from 0° [cm]": cm(cut.error(*ARMS))}
        numbers["frames below 0° [%]"] = round(100 * beyond(own, "elbow_flexion", 0), 1)
        held = not lower(own.error(*ARMS), cut.error(*ARMS))
        parts.append(Part(f"{name}: clamping the elbow at 0° costs nothing", decide(held), numbers))
    return parts


def longest_run(mask: np.ndarray) -> int:
    """Length of the longest unbroken run of True."""
    return max((end - first for first, end in unbroken_runs(mask)), default=0)


H8 = Hypothesis(
    "H8",
    "Very large shoulder extension is no gain and can trap the arm",
    "WABIAN-2 with flexion from -90° instead of -180° has no clearly larger arm error; and its arm stays beyond -90° "
    "for half a second or longer with 5 cm more error than the cut range has there (open where that does not happen)",
    large_extension,
    "the arm passes the front or the top and comes out behind, where only the large range reaches",
)
H9 = Hypothesis(
    "H9",
    "Too little shoulder extension raises the arm error",
    "ARMAR-III with extension -60° instead of -10° has a clearly lower error of elbows and wrists; open where fewer "
    "than 1 % of the frames use more than 10°",
    little_extension,
    "the solver reaches behind the body over abduction and rotation",
)
H13 = Hypothesis(
    "H13",
    "The singular shoulder at 90° abduction adds bursts of error over several frames",
    "arms pass slowly through 90° abduction and swing forward there, every target within reach: on each robot the mean "
    "error within 15° of the singularity is at least twice that elsewhere, with a burst of 3 frames above M + 2 S",
    singularity,
    "feedback of the position error carries the arm through, unless a joint limit is near as well",
    needs_clip=False,
)
H14 = Hypothesis(
    "H14",
    "Every joint of the arm is needed",
    "WABIAN-2 and WE-4RII with both sides of one arm joint locked have a clearly larger error of elbows and wrists, "
    "for each of the four joints",
    fewer_joints,
    "the clip does not need that joint, or the solver does not find the posture that uses it",
)
H21 = Hypothesis(
    "H21",
    "Hyperextension of the elbow is unnecessary",
    "SURALP, ARMAR-III and WABIAN-2 with the elbow clamped at 0° have no clearly larger error of elbows and wrists",
    hyperextension,
    "the solver passes through hyperextended postures when it straightens the arm",
)
