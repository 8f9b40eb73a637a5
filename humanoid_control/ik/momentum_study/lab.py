"""Walks by name, each played once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.momentum_constrained import ConstrainedWalker
from humanoid_control.ik.momentum_costs import FreeJointGains
from humanoid_control.ik.momentum_gait import GaitSettings
from humanoid_control.ik.momentum_replay import Measures, Replay, measure, replay
from humanoid_control.ik.momentum_walk import WalkTask, leg_length
from humanoid_control.ik.momentum_walkers import (
    NullSpaceWalker,
    SwingWalker,
    TrackingWalker,
    Walker,
    WeightingWalker,
)
from humanoid_control.robots import Robot

SOURCE_LEG = 0.96  # [m] from hip to sole of the robot on which the source's steps were walked
LONGEST_STEP = 1.2  # [s]
DELTAS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
ALL_AXES = (True, True, True)

Factory = Callable[[Robot, WalkTask, FreeJointGains], Walker]


def _weighting(delta: float) -> Factory:
    return lambda r, w, g: WeightingWalker(r, w, g, delta)


METHODS: dict[str, Factory] = {
    "still": lambda r, w, g: NullSpaceWalker(r, w, g),
    "method 0": lambda r, w, g: SwingWalker(r, w, g),
    "method 0 x": lambda r, w, g: SwingWalker(r, w, g, axes=(True, False, False)),
    "method 1 thesis": lambda r, w, g: TrackingWalker(r, w, g, "thesis"),
    "method 1 unit": lambda r, w, g: TrackingWalker(r, w, g, "unit"),
    "method 1 damped": lambda r, w, g: TrackingWalker(r, w, g, "damped"),
    **{f"method 2 {d:g}": _weighting(d) for d in DELTAS},
    "ours": lambda r, w, g: ConstrainedWalker(r, w),
    "ours xyz": lambda r, w, g: ConstrainedWalker(r, w, ALL_AXES),
    "method 1 thesis unclamped": lambda r, w, g: TrackingWalker(r, w, g, "thesis", clamp=False),
    "method 1 unit unclamped": lambda r, w, g: TrackingWalker(r, w, g, "unit", clamp=False),
    "method 1 damped unclamped": lambda r, w, g: TrackingWalker(r, w, g, "damped", clamp=False),
}
TRACKING = ("method 1 thesis", "method 1 unit", "method 1 damped")
MAIN = ("still", "method 0", "method 0 x", *TRACKING, *(f"method 2 {d:g}" for d in DELTAS), "ours")


@dataclass(frozen=True)
class Outcome:
    """A walk and its numbers.

    Attributes:
        axes: measures of the momentum about x, y and z.
        run: the walk itself.
        walker: who walked, with what it noticed on the way.
    """

    axes: tuple[Measures, Measures, Measures]
    run: Replay
    walker: Walker

    @property
    def z(self) -> Measures:
        """Measures of the vertical momentum."""
        return self.axes[2]


class Lab:
    """One robot and its step; every walk is played when it is first asked for.

    Attributes:
        robot: with floating base.
        gait: the step of the walks, unless one is asked for with another.
    """

    def __init__(self, robot: Robot, gait: GaitSettings, dt: float = 0.004) -> None:
        self.robot, self.gait, self.dt = robot, gait, dt
        self._known: dict[object, Outcome] = {}

    def outcome(
        self,
        method: str,
        free: str = "arms",
        gait: GaitSettings | None = None,
        gains: FreeJointGains | None = None,
        arms_in: float = 0.0,
        cycles: int = 6,
    ) -> Outcome:
        """The outcome of a walk.

        Args:
            method: one of METHODS.
            free: one of FREE, the joints that may reduce momentum.
            gait: default: the lab's.
            gains: of the costs of free joints, in the source's methods.
            arms_in: how far the arms' posture is turned towards the body, at both shoulders [rad].
            cycles: gait cycles to play.
        """
        gait, gains = gait or self.gait, gains or FreeJointGains()
        key = (method, free, gait, gains, arms_in, cycles)
        if key not in self._known:
            robot = self.robot
            walk = WalkTask(robot, gait, free, self.dt)
            for side in "lr" if arms_in else "":
                joint = robot.joint_index(robot.joint_for(f"{side}_shoulder_abduction") or f"{side}_shoulder_abduction")
                walk.posture[joint] = max(walk.posture[joint] - arms_in, robot.lower[joint])
            walker = METHODS[method](robot, walk, gains)
            run = replay(robot, walk, walker, cycles)
            x, y, z = (measure(robot, walk, run, axis) for axis in range(3))
            self._known[key] = Outcome((x, y, z), run, walker)
        return self._known[key]

    def best_tracking(self) -> str:
        """The mode of method 1 with the least peak-to-peak of L_z on the lab's step, of those that keep every range."""
        found = {m: self.outcome(m).z for m in TRACKING}
        inside = {m: z for m, z in found.items() if z.beyond_limit <= 0} or found
        return min(inside, key=lambda m: inside[m].peak_to_peak)

    def reference(self) -> str:
        """Method 0, in three directions as in the source, or along x where that drives the arms out of their reach."""
        return "method 0" if self.outcome("method 0").z.speed_share <= 1 else "method 0 x"


def find_gait(robot: Robot, length: float | None = None, time: float | None = None) -> tuple[GaitSettings, list[str]]:
    """A step that the robot's legs can take, and what had to be changed for it.

    The source's step, 0.4 m in 0.8 s, is scaled by the length of the legs. Where the baseline then leaves a joint's
    range, touches itself or is faster than 90 % of a speed limit, the step becomes 10 % shorter and lower, or 0.1 s
    longer, again and again; a step of 1.2 s becomes shorter only.

    Args:
        robot: with floating base.
        length, time: [m], [s]; what is given is not changed.

    Raises:
        ConfigError: no step was found.
    """
    scale, notes = leg_length(robot) / SOURCE_LEG, []
    wanted = 0.4 * scale if length is None else length
    gait = GaitSettings(round(wanted, 3), 0.8 if time is None else time, lift=round(0.05 * scale, 3))
    for _ in range(25):
        try:
            z = Lab(robot, gait, 0.008).outcome("still", cycles=3).z
            slow, inside = z.speed_share <= 0.9, z.beyond_limit <= 0 and z.clearance > 0
        except (ConfigError, np.linalg.LinAlgError):
            slow, inside = True, False
        if (inside or length is not None) and (slow or time is not None):
            break
        shorter = not inside or gait.step_time >= LONGEST_STEP - 1e-9 or time is not None
        if shorter and length is None:
            gait = replace(gait, step_length=round(0.9 * gait.step_length, 3), lift=round(0.9 * gait.lift, 4))
        else:
            gait = replace(gait, step_time=round(gait.step_time + 0.1, 3))
    else:
        raise ConfigError(f"{robot.name}: no step was found that its legs can take")
    if gait.step_length != round(wanted, 3):
        notes.append(f"step shortened from {wanted:.3f} m to {gait.step_length:g} m: joint ranges and speeds")
    if time is None and gait.step_time != 0.8:
        notes.append(f"step time lengthened from 0.8 s to {gait.step_time:g} s: joint speeds")
    return gait, notes
