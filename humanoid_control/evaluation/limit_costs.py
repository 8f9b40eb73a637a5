"""Cost of limits: a clip solved without each limit, slower, and by other robots, with advice.

```python
from humanoid_control.evaluation import measure_limit_costs
from humanoid_control.mocap import load_body_points
from humanoid_control.robots import load_robot

costs = measure_limit_costs(load_body_points("dance"), load_robot("hrp2", "fixed"))
print(costs.verdict, costs.advice())
```
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from humanoid_control.errors import HumanoidError
from humanoid_control.evaluation.motion_quality import joint_use, measure_motion
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting.retargeter import retarget_clip
from humanoid_control.retargeting.scaling import Targets, scale_to_robot
from humanoid_control.retargeting.settings import RetargetSettings
from humanoid_control.retargeting.trajectory import JointTrajectory
from humanoid_control.robots.robot import Robot
from humanoid_control.terminal import ReportTable

LIMITS: dict[str, dict[str, Any]] = {
    "joint range": {"keep_ranges": False},
    "joint speed": {"velocity_scale": math.inf},
    "joint acceleration": {"acceleration": math.inf, "acceleration_scale": math.inf},
    "self-collision": {"avoidance": "none"},
}
"""Limit -> settings that remove it."""
REACH = "reach"  # error without any limit, due to missing joints
SLOWER = (0.75, 0.5, 0.25)  # of the current pace
HELPS, VISIBLE = 0.2, 0.002  # a change helps if it removes this share of the error, and this much [m]
BARELY = 0.005  # [m] smaller errors are not attributed
MOST_OF_IT = 0.8  # share of the best gain; the fastest pace that reaches it is advised
GRADES = ((0.02, "close"), (0.05, "recognisable"), (math.inf, "poor"))
"""Upper bound of the mean error of each grade [m]. 2 cm, half the width of a wrist, is invisible from across a room;
from 5 cm on, postures differ from the person's."""


@dataclass(frozen=True)
class TrackingTrial:
    """Tracking result of one solution.

    Attributes:
        mean: mean distance of the seven points to their targets [m].
        at_speed_limit: share of time with a joint at its speed limit.
        at_range_limit: mean share of moving joints within 1 degree of a range end.
        closest: least shape distance, at most 0.05 [m].
    """

    mean: float
    max: float
    at_speed_limit: float
    at_range_limit: float
    closest: float

    @staticmethod
    def of(robot: Robot, trajectory: JointTrajectory) -> TrackingTrial:
        """Measure a trajectory."""
        quality, _ = measure_motion(robot, trajectory)
        return TrackingTrial(
            mean=float(trajectory.errors.mean()),
            max=float(trajectory.errors.max()),
            at_speed_limit=quality.frames_at_speed_limit,
            at_range_limit=quality.at_position_limit,
            closest=float(min(trajectory.clearance.min(), 0.05)),
        )


@dataclass(frozen=True)
class LimitCosts:
    """Error of a robot on a clip, with all limits and without each.

    Attributes:
        without: name of LIMITS -> without that limit; REACH -> without any.
        slower: pace relative to the clip -> with all limits.
        joints: joints mostly at a range end -> share of time.
    """

    robot: str
    clip: str
    speed: float
    kept: TrackingTrial
    without: Mapping[str, TrackingTrial]
    slower: Mapping[float, TrackingTrial]
    others: Mapping[str, TrackingTrial]
    joints: Mapping[str, float]

    def cost(self, limit: str) -> float:
        """Return the mean error caused by a limit [m]; for REACH, the error without any limit."""
        other = self.without[limit].mean
        return other if limit == REACH else self.kept.mean - other

    @property
    def costliest(self) -> str | None:
        """Costliest limit of LIMITS, or REACH; None if no cost is visible."""
        name = max(self.without, key=self.cost)
        return name if self.kept.mean > BARELY and self._helps(self.kept.mean - self.cost(name)) else None

    @property
    def grade(self) -> str:
        """Word of GRADES for the mean error."""
        return next(word for bound, word in GRADES if self.kept.mean < bound)

    @property
    def better_speed(self) -> float | None:
        """Fastest pace with most of the gain of slowing down; None if slower does not help."""
        best = min(self.slower.values(), key=lambda t: t.mean, default=self.kept).mean
        if not self._helps(best):
            return None
        enough = self.kept.mean - MOST_OF_IT * (self.kept.mean - best)
        return max(speed for speed, t in self.slower.items() if t.mean <= enough)

    @property
    def better_robot(self) -> str | None:
        """Best other robot; None if none helps."""
        best = min(self.others, key=lambda name: self.others[name].mean, default=None)
        return best if best is not None and self._helps(self.others[best].mean) else None

    def _helps(self, mean: float) -> bool:
        saved = self.kept.mean - mean
        return saved > VISIBLE and saved > HELPS * self.kept.mean

    @property
    def verdict(self) -> str:
        """One sentence: error, cost and main cause."""
        k = self.kept
        apart = f"shapes touch by {-1000 * k.closest:.0f} mm" if k.closest < 0 else "nothing touches"
        head = f"{self.robot}: {self.grade}, {_cm(k.mean)} on average, {_cm(k.max)} at most, {apart}"
        name = self.costliest
        if name is None:
            return f"{head}; no limit has a visible cost"
        if name == REACH:
            head += f"; most of it is missing reach: {_cm(self.cost(name))} remain without any limit"
            name = max(LIMITS, key=self.cost)
            if not self._helps(self.without[name].mean):
                return head
        often = ", ".join(f"{joint} {100 * share:.0f} %" for joint, share in self.joints.items())
        where = f" (share of time at an end: {often})" if name == "joint range" and often else ""
        return f"{head}; {name} costs most: without it {_cm(self.without[name].mean)}{where}"

    def advice(self) -> list[str]:
        """Return tried options that help, or that slower does not help."""
        lines = []
        if (speed := self.better_speed) is not None:
            lines.append(f"slower helps: --speed {speed:g} comes to {_cm(self.slower[speed].mean)}")
        elif self.slower and self.costliest is not None:
            least = min(self.slower)
            lines.append(f"slower does not help: at --speed {least:g} it is {_cm(self.slower[least].mean)}")
        if (robot := self.better_robot) is not None:
            lines.append(f"another robot helps: --robot {robot} comes to {_cm(self.others[robot].mean)}")
        return lines

    def table(self) -> ReportTable:
        """Return all solutions as a table."""
        rows = [_row("every limit kept", self.kept)]
        rows += [_row(f"without {k}" if k != REACH else "without any limit", t) for k, t in self.without.items()]
        rows += [_row(f"--speed {k:g}", t) for k, t in self.slower.items()]
        rows += [_row(f"--robot {k}", t) for k, t in self.others.items()]
        columns = ["", "mean cm", "max cm", "time at speed limit %", "joints at range limit %", "closest mm"]
        note = "The clip was solved again for each row, without nodes."
        return ReportTable(f"{self.robot} on '{self.clip}': what limits cost", columns, rows, note)

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lengths in metres."""
        out = asdict(self)
        out["slower"] = {f"{speed:g}": asdict(t) for speed, t in self.slower.items()}
        return out | {"verdict": self.verdict, "costliest": self.costliest, "advice": self.advice()}


def measure_limit_costs(
    body: BodyPoints,
    robot: Robot,
    speed: float = 1.0,
    seconds: float = math.inf,
    others: Sequence[Robot] = (),
    settings: RetargetSettings | None = None,
) -> LimitCosts:
    """Solve a clip with all limits, without each, slower, and for other robots.

    Args:
        seconds: used part of the clip at that pace [s].
        others: alternative robots; unsuitable ones are skipped.
        settings: with all limits; None: defaults.

    Raises:
        ClipError: if no first posture is found.
        RobotError: if the robot lacks imitation points.
    """
    scaled = scale_to_robot(body, robot)
    targets = _played(scaled, speed, seconds)
    settings = settings or RetargetSettings()
    solved = retarget_clip(targets, robot, settings)
    nothing = {key: value for change in LIMITS.values() for key, value in change.items()}
    changes = {**LIMITS, REACH: nothing}
    uses = joint_use(robot, solved.positions)
    moving = {robot.joint_names[k] for k in robot.imitation_joints}  # other joints may always be at a range end
    ends = sorted(((max(u.at_lower, u.at_upper), u.joint) for u in uses if u.joint in moving), reverse=True)
    return LimitCosts(
        robot.name,
        body.name,
        speed,
        TrackingTrial.of(robot, solved),
        {name: _tried(robot, targets, replace(settings, **change)) for name, change in changes.items()},
        {speed * s: _tried(robot, _played(scaled, speed * s, seconds / s), settings) for s in SLOWER},
        dict(_by_others(body, others, speed, seconds, settings)),
        {joint: share for share, joint in ends[:2] if share > 0.05},
    )


def _by_others(
    body: BodyPoints, others: Sequence[Robot], speed: float, seconds: float, settings: RetargetSettings
) -> Iterator[tuple[str, TrackingTrial]]:
    for robot in others:
        with contextlib.suppress(HumanoidError):  # unsuitable robots are not advised
            yield robot.name, _tried(robot, _played(scale_to_robot(body, robot), speed, seconds), settings)


def _played(targets: Targets, speed: float, seconds: float) -> Targets:
    """Return the first seconds of the targets at a pace, at least two frames."""
    paced = targets.paced(speed)
    count = int(min(len(paced), max(2, 1 + seconds * paced.rate)))
    forearms = None if paced.forearms is None else paced.forearms[:count]
    return replace(paced, positions=paced.positions[:count], body=paced.body[:count], forearms=forearms)


def _tried(robot: Robot, targets: Targets, settings: RetargetSettings) -> TrackingTrial:
    return TrackingTrial.of(robot, retarget_clip(targets, robot, settings))


def _cm(length: float) -> str:
    return f"{100 * length:.1f} cm"


def _row(what: str, t: TrackingTrial) -> list[Any]:
    shares = (round(100 * t.at_speed_limit, 1), round(100 * t.at_range_limit, 1))
    return [what, round(100 * t.mean, 1), round(100 * t.max, 1), *shares, round(1000 * t.closest, 1)]
