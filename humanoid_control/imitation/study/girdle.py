"""Experiments with the shoulder girdle."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import spearmanr

from humanoid_control.imitation.study.finding import OPEN, Hypothesis, Part, cm, decide, lower
from humanoid_control.imitation.study.lab import ARMS, GH, WRISTS, Lab, Trial
from humanoid_control.imitation.study.waist import beyond
from humanoid_control.robots import Robot
from humanoid_control.robots.variants import with_girdle_at, with_locked, with_ranges

BENT = np.radians(10)  # lean of the spine to the side from which the dancer counts as bent sideways
OFFSETS = (0.0, 0.03, 0.06, 0.09)  # [m] girdle joints from the sternum
FREE_GIRDLE = {"girdle_elevation": (-90.0, 120.0), "girdle_protraction": (-90.0, 90.0)}  # [deg]
SMALLER = {"shoulder_flexion": (-90.0, 120.0)}  # [deg] Table 7.1


def _locked(lab: Lab) -> Trial:
    return lab.trial("we4rii", "girdle locked", partial(with_locked, joints=["girdle"]))


def locked_and_free(lab: Lab) -> list[Part]:
    """H2."""
    free, locked = lab.trial("we4rii"), _locked(lab)
    spine = free.targets.positions[:, 0] - free.robot.point_positions(free.robot.q("neutral"), ["mid_hip"])[0]
    bent = np.abs(np.arctan2(spine[:, 1], spine[:, 2])) > BENT
    sideways = Part("also while bent sideways: shoulder error lower", OPEN, {"frames bent sideways": 0})
    if bent.any():
        a, b = free.error(*GH, frames=bent), locked.error(*GH, frames=bent)
        numbers = {"free [cm]": cm(a), "locked [cm]": cm(b), "frames bent sideways": int(bent.sum())}
        sideways = Part(sideways.claim, decide(lower(a, b)), numbers)
    return [
        Part(
            "girdle lowers the mean error by at least a quarter",
            decide(free.error() <= 0.75 * locked.error()),
            {"free [cm]": cm(free.error()), "locked [cm]": cm(locked.error())}
            | {"shoulders, free [cm]": cm(free.error(*GH)), "locked shoulders [cm]": cm(locked.error(*GH))},
            free.limits(),
        ),
        sideways,
    ]


def compensation(lab: Lab) -> list[Part]:
    """H3."""
    free, locked = lab.trial("we4rii"), _locked(lab)
    shoulders, wrists = (locked.error(*k) - free.error(*k) for k in (GH, WRISTS))
    left = wrists / shoulders if shoulders > 0 else float("nan")
    numbers = {"shoulders lose [cm]": cm(shoulders), "wrists lose [cm]": cm(wrists), "share left": round(left, 2)}
    decidable = lower(free.error(*GH), locked.error(*GH))
    return [Part("wrists lose at least half of what shoulders lose", decide(left >= 0.5, decidable), numbers)]


def adduction(lab: Lab) -> list[Part]:
    """H10."""
    own = lab.trial("we4rii")
    more = lab.trial("we4rii", "adduction -90", partial(with_ranges, ranges={"shoulder_abduction": (-90, 180)}))
    used = beyond(more, "shoulder_abduction", -25)
    numbers = {"adduction to -25° [cm]": cm(own.error(*ARMS)), "to -90° [cm]": cm(more.error(*ARMS))}
    numbers["frames beyond -25° [%]"] = round(100 * used, 1)
    held = lower(more.error(*ARMS), own.error(*ARMS))
    return [Part("WE-4RII: arm error lower with more adduction", decide(held, used >= 0.01), numbers)]


def offset(lab: Lab) -> list[Part]:
    """H11."""
    parts = []
    trials = [lab.trial("we4rii", f"girdle at {d:.2f}", partial(_moved, distance=d)) for d in OFFSETS]
    for motion in ("elevation", "protraction"):
        used = [
            float(np.degrees(np.ptp(np.percentile(t.angles(f"girdle_{motion}"), [1, 99], axis=0), 0).mean()))
            for t in trials
        ]
        rank = float(spearmanr(OFFSETS, used).statistic)
        numbers = {f"girdle at {d:.2f} m [°]": round(u, 1) for d, u in zip(OFFSETS, used, strict=True)}
        held = rank >= 0.8 and used[-1] > 1.05 * used[0]
        parts.append(Part(f"{motion} used grows with the offset", decide(held, max(used) > 2), numbers))
    return parts


def _moved(robot: Robot, distance: float) -> Robot:
    return with_ranges(with_girdle_at(robot, distance), FREE_GIRDLE)


def shoulder_flexion(lab: Lab) -> list[Part]:
    """H12."""
    free, locked = lab.trial("we4rii"), _locked(lab)
    low, high = (np.radians(v) for v in SMALLER["shoulder_flexion"])
    angles = np.hstack([t.angles("shoulder_flexion") for t in (free, locked)])
    asked = bool(np.mean(((angles < low) | (angles > high)).any(axis=1)) >= 0.01)
    parts = []
    for claim, lock, whole in (
        ("with a girdle, -90° .. 120° is enough", False, free),
        ("without it, the same cut raises the arm error", True, locked),
    ):
        cut = lab.trial("we4rii", f"flexion cut, locked {lock}", partial(_cut, lock=lock))
        used = np.percentile(np.degrees(whole.angles("shoulder_flexion")), [1, 99])
        numbers = {"-180° .. 200° [cm]": cm(whole.error(*ARMS)), "-90° .. 120° [cm]": cm(cut.error(*ARMS))}
        numbers |= {"used, 1st percentile [°]": round(float(used[0])), "99th percentile [°]": round(float(used[1]))}
        worse = lower(whole.error(*ARMS), cut.error(*ARMS))
        parts.append(Part(claim, decide(worse == lock, asked), numbers, cut.limits()))
    return parts


def _cut(robot: Robot, lock: bool) -> Robot:
    return with_ranges(with_locked(robot, ["girdle"]) if lock else robot, SMALLER)


H2 = Hypothesis(
    "H2",
    "A shoulder girdle greatly lowers the error, and partly makes up for a missing lateral waist joint",
    "WE-4RII with its girdle free has a mean error at least a quarter lower than with it locked, and a clearly lower "
    "shoulder error in the frames in which the spine leans more than 10° to the side; open where there are none",
    locked_and_free,
    "the girdle is at its limits much of the time and so nearly locked anyway",
)
H3 = Hypothesis(
    "H3",
    "Shoulder and elbow make up only little for a missing girdle",
    "locking WE-4RII's girdle costs the wrists at least half of what it costs the shoulders; open where it costs the "
    "shoulders nothing that counts",
    compensation,
    "the solver trades all seven points against one another, and the arm's four joints have reach to spare",
)
H10 = Hypothesis(
    "H10",
    "More adduction helps a robot with a girdle",
    "WE-4RII with adduction to -90° instead of -25° has a clearly lower error of elbows and wrists; open where fewer "
    "than 1 % of the frames use it",
    adduction,
    "the solver reaches the same arm postures over flexion and rotation",
)
H11 = Hypothesis(
    "H11",
    "Girdle joints away from the sternum need more elevation and protraction",
    f"WE-4RII, its girdle unlimited and at {', '.join(f'{d:.2f}' for d in OFFSETS)} m: the range between the 1st and "
    "99th percentile of either angle grows, rank correlation at least 0.8 and 5 % in all; open below 2° used",
    offset,
    "waist rotation and protraction do much the same to the shoulders, and the solver divides the motion between them",
)
H12 = Hypothesis(
    "H12",
    "With a girdle a smaller range of shoulder flexion is enough",
    "WE-4RII with flexion -90° .. 120° (Table 7.1) has no clearly larger arm error; with its girdle locked it "
    "has; open where fewer than 1 % of the frames, free or locked, go beyond it",
    shoulder_flexion,
    "arms raised to the front need more than 120° of flexion with a girdle too",
)
