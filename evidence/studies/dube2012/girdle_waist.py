"""Experiments with the waist (number, height and range of its joints) and with the shoulder girdle."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import spearmanr

from evidence.studies.dube2012.lab import ARMS, GH, ROBOTS, STERNUM, WRISTS, RetargetingLab, Trial
from evidence.studies.dube2012.robot_variants import with_girdle_at, with_locked, with_ranges, with_waist_at
from evidence.studies.report import OPEN, Hypothesis, Part, cm, decide, lower
from humanoid_control.evaluation.self_collision import ARM_TORSO_COLUMNS
from humanoid_control.robots.robot import Robot

# -------- waist

HEIGHTS = (0.10, 0.16, 0.22, 0.28, 0.34)  # [m] above the mid-hip; HRP-2's own is 0.35
LOWER_TORSO = tuple(column for column in ARM_TORSO_COLUMNS if column.endswith("lower torso"))


def _armar_waist(lab: RetargetingLab, *locked: str) -> float:
    """Sternum error of ARMAR-III with some waist joints locked [m]."""
    if not locked:
        return lab.trial("armar3").error(*STERNUM)
    variant = "locked " + " ".join(locked)
    return lab.trial("armar3", variant, partial(with_locked, joints=locked)).error(*STERNUM)


def number_of_joints(lab: RetargetingLab) -> list[Part]:
    """H4: sternum errors of ARMAR-III with one, two and three waist joints."""
    one = _armar_waist(lab, "waist_flexion", "waist_lateral_flexion")
    two = _armar_waist(lab, "waist_lateral_flexion")
    other_two = _armar_waist(lab, "waist_flexion")
    three = _armar_waist(lab)
    numbers = {"rotation only [cm]": cm(one), "rotation + flexion [cm]": cm(two)}
    numbers |= {"rotation + lateral flexion [cm]": cm(other_two), "all three [cm]": cm(three)}
    return [Part("second joint gains more than the third", decide(one - two > two - three, lower(three, one)), numbers)]


def rotation_only(lab: RetargetingLab) -> list[Part]:
    """H5: sternum errors of ARMAR-III with waist rotation alone, and of the five robots."""
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


def waist_heights(lab: RetargetingLab) -> list[Part]:
    """H6: sternum errors and collisions of HRP-2 with its waist at several heights."""
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


def extension(lab: RetargetingLab) -> list[Part]:
    """H7: sternum errors of ARMAR-III with its own waist extension and with a human's."""
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
    "open if three joints gain nothing significant over one",
    number_of_joints,
    "in this clip the dancer bends as much sideways as forward, and lateral flexion is the third joint",
)
H5 = Hypothesis(
    "H5",
    "A waist that only rotates is very poor",
    "ARMAR-III with rotation only has at least twice its sternum error, and SURALP the largest of the five robots; "
    "the first part is open if the error stays below 1 cm",
    rotation_only,
    "the trunk bends little in this clip, so the missing joints matter little",
)
H6 = Hypothesis(
    "H6",
    "A waist near the hips lowers the sternum error and collisions with the lower torso",
    f"HRP-2 with its waist at {', '.join(f'{h:.2f}' for h in HEIGHTS)} m: lowest clearly better than highest and rank "
    "correlation of height and error at least 0.8; fewer collisions at the lowest; open if there are none at all",
    waist_heights,
    "the two waist joints of HRP-2 cannot follow the trunk motion of this clip at any height",
)
H7 = Hypothesis(
    "H7",
    "Less waist extension than a human's raises the sternum error",
    "ARMAR-III with extension -30° instead of -10° has a clearly lower sternum error; open if fewer than 1 % of the "
    "frames use more than 10°",
    extension,
    "the dancer bends backward in few frames, in which the waist trades the sternum for the other six points",
)


# -------- shoulder girdle

BENT = np.radians(10)  # lean of the spine to the side from which the dancer counts as bent sideways
OFFSETS = (0.0, 0.03, 0.06, 0.09)  # [m] girdle joints from the sternum
FREE_GIRDLE = {"girdle_elevation": (-90.0, 120.0), "girdle_protraction": (-90.0, 90.0)}  # [deg]
SMALLER = {"shoulder_flexion": (-90.0, 120.0)}  # [deg] Table 7.1


def _locked(lab: RetargetingLab) -> Trial:
    return lab.trial("we4rii", "girdle locked", partial(with_locked, joints=["girdle"]))


def locked_and_free(lab: RetargetingLab) -> list[Part]:
    """H2: errors of WE-4RII with its shoulder girdle free and locked."""
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


def compensation(lab: RetargetingLab) -> list[Part]:
    """H3: what the wrists lose with the girdle locked, next to what the shoulders lose."""
    free, locked = lab.trial("we4rii"), _locked(lab)
    shoulders, wrists = (locked.error(*k) - free.error(*k) for k in (GH, WRISTS))
    left = wrists / shoulders if shoulders > 0 else float("nan")
    numbers = {"shoulders lose [cm]": cm(shoulders), "wrists lose [cm]": cm(wrists), "remaining share": round(left, 2)}
    decidable = lower(free.error(*GH), locked.error(*GH))
    return [Part("wrists lose at least half of what shoulders lose", decide(left >= 0.5, decidable), numbers)]


def adduction(lab: RetargetingLab) -> list[Part]:
    """H10: arm errors of WE-4RII with its own adduction and with more."""
    own = lab.trial("we4rii")
    more = lab.trial("we4rii", "adduction -90", partial(with_ranges, ranges={"shoulder_abduction": (-90, 180)}))
    used = beyond(more, "shoulder_abduction", -25)
    numbers = {"adduction to -25° [cm]": cm(own.error(*ARMS)), "to -90° [cm]": cm(more.error(*ARMS))}
    numbers["frames beyond -25° [%]"] = round(100 * used, 1)
    held = lower(more.error(*ARMS), own.error(*ARMS))
    return [Part("WE-4RII: arm error lower with more adduction", decide(held, used >= 0.01), numbers)]


def offset(lab: RetargetingLab) -> list[Part]:
    """H11: ranges of the girdle used by WE-4RII, its girdle joints at several distances from the sternum."""
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


def shoulder_flexion(lab: RetargetingLab) -> list[Part]:
    """H12: arm errors of WE-4RII with shoulder flexion cut to Table 7.1, its girdle free and locked."""
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
    "shoulder error in the frames in which the spine leans more than 10° to the side; open if there are none",
    locked_and_free,
    "the girdle is often at its limits and therefore nearly locked",
)
H3 = Hypothesis(
    "H3",
    "Shoulder and elbow make up only little for a missing girdle",
    "locking WE-4RII's girdle costs the wrists at least half as much error as the shoulders; open if the shoulders "
    "lose nothing significant",
    compensation,
    "the solver balances all seven points, and the four arm joints have spare reach",
)
H10 = Hypothesis(
    "H10",
    "More adduction helps a robot with a girdle",
    "WE-4RII with adduction to -90° instead of -25° has a clearly lower error of elbows and wrists; open if fewer "
    "than 1 % of the frames use it",
    adduction,
    "the solver reaches the same arm postures by flexion and rotation",
)
H11 = Hypothesis(
    "H11",
    "Girdle joints away from the sternum need more elevation and protraction",
    f"WE-4RII, its girdle unlimited and at {', '.join(f'{d:.2f}' for d in OFFSETS)} m: the range between the 1st and "
    "99th percentile of either angle grows, rank correlation at least 0.8 and 5 % in all; open below 2° used",
    offset,
    "waist rotation and protraction have almost the same effect on the shoulders, and the solver shares the motion "
    "between them",
)
H12 = Hypothesis(
    "H12",
    "With a girdle a smaller range of shoulder flexion is enough",
    "WE-4RII with flexion -90° .. 120° (Table 7.1) has no clearly larger arm error; with its girdle locked it has; "
    "open if fewer than 1 % of the frames, free or locked, exceed it",
    shoulder_flexion,
    "arms raised forward need more than 120° of flexion, even with a girdle",
)
