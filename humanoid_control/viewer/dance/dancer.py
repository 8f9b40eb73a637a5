"""Dancers: a robot solves a clip frame by frame during playback; views and graded motion.

```python
from humanoid_control.mocap import load_body_points
from humanoid_control.robots import load_robot
from humanoid_control.viewer.dance.dancer import WholeBodyDancer

dancer = WholeBodyDancer(load_body_points("dance"), load_robot("hrp2", "floating"))
for _ in range(100):
    dancer.step()
print(dancer.view().error)
```
"""

from __future__ import annotations

import math
import time as clock
from abc import ABC, abstractmethod
from collections import deque
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ClipError, RobotError
from humanoid_control.mocap import BodyPoints
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting.player import ClipPlayer, Figure
from humanoid_control.retargeting.retargeter import Retargeter
from humanoid_control.retargeting.scaling import POINTS, scale_to_robot
from humanoid_control.retargeting.trajectory import JointTrajectory, WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.pipeline import at_solving_rate
from humanoid_control.retargeting.whole_body.player import WholeBodyPlayer
from humanoid_control.retargeting.whole_body.retargeter import WholeBodyRetargeter
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS, WholeBodyScaler, shows_legs
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.robot import FIXED, FLOATING

SLOW, FAST = 60.0, 120.0  # [Hz] solver rates: an integer number of steps per picture keeps motion smooth
FAST_FROM = 75.0  # [Hz] clip rate from which FAST is used
SEAM = 1.2  # [s] transition from the end to the beginning of the clip
# [m], [rad] maximum distance of end and beginning for a transition; otherwise the clip restarts at once
NEAR_WAY, NEAR_TURN = 0.5, 0.6
BACK = 0.25  # [s] earlier start if no posture is found at a sought time
TIMED = 240  # steps with stored solver times
EDGES = 4  # heel and toe edges of both soles


class DancerView(NamedTuple):
    """Drawn state of a dancer: floor at z = 0, clip start at the origin.

    Attributes:
        targets: target positions (K, 3) [m].
        reached: robot points (K, 3) [m].
        figure: bone ends of the scaled person (2 B, 3) [m].
        soles: ends of the sole edges (8, 3) [m], or (0, 3).
        contacts: edges in contact (4,).
        slip: edge displacement since contact (4,) [m].
        place: root position (3,) [m].
    """

    poses: dict[str, pin.SE3]
    targets: np.ndarray
    reached: np.ndarray
    figure: np.ndarray
    soles: np.ndarray
    contacts: np.ndarray
    slip: np.ndarray
    place: np.ndarray

    @property
    def error(self) -> float:
        """Mean distance of points to targets [m]."""
        return float(np.linalg.norm(self.targets - self.reached, axis=1).mean())


class Take(NamedTuple):
    """Frame of a graded motion: q (nq,), errors (K,) [m], contacts (4,), clearance [m], fallback."""

    q: np.ndarray
    errors: np.ndarray
    contacts: np.ndarray
    clearance: float
    used_fallback: int


class Dancer(ABC):
    """Robot that follows a clip step by step.

    Attributes:
        robot: exclusively owned robot, because its buffers are overwritten.
        dt: step time [s].
        duration: duration of the clip [s].
        worst_slip: largest contact slip so far [m].
        contacts_seen: number of contacts so far.
    """

    whole_body = False
    player: ClipPlayer | WholeBodyPlayer
    _cuts: bool  # the clip ends far from its beginning

    def __init__(self, robot: Robot, clip: str, rate: float, duration: float) -> None:
        self.robot, self.clip, self.notes = robot, clip, list[str]()
        self.dt, self.duration = 1.0 / (FAST if rate > FAST_FROM else SLOW), duration
        self.loop, self.worst_slip, self.contacts_seen = True, 0.0, 0
        self._passed = SEAM  # [s] since the last transition began
        self._took: deque[float] = deque(maxlen=TIMED)
        self._take: list[Take] | None = []
        self.finished_take: list[Take] = []

    # -- abstract part

    @abstractmethod
    def begin(self, time: float = 0.0) -> None:
        """Jump to a time of the clip [s]."""

    @abstractmethod
    def step(self) -> None:
        """Advance by `dt` and solve."""

    @abstractmethod
    def view(self) -> DancerView:
        """Return the drawn state."""

    @abstractmethod
    def trajectory(self) -> JointTrajectory:
        """Return the motion of `finished_take`."""

    # -- common

    def play(self, playing: bool, speed: float = 1.0) -> None:
        """Play or pause at a relative speed."""
        p = self.player
        if playing and p.finished:
            self.begin()
        if (playing, speed) != (p.playing, p.speed) and p.time > 0.0:
            self.spoil_take()
        p.playing, p.speed = playing, speed

    def _at_end(self) -> bool:
        """Restart a finished looped clip; return True if restarted."""
        if self.player.finished and self.loop:
            self.begin()
            return True
        self.player.loop = self.loop and not self._cuts
        return False

    @property
    def time(self) -> float:
        """Time in the clip [s]."""
        return self.player.time

    @property
    def at_seam(self) -> bool:
        """Whether a transition from end to beginning is active."""
        return self._passed < SEAM

    @property
    def step_time(self) -> float:
        """Median solver time [s]; NaN at first."""
        return float(np.median(self._took)) if self._took else math.nan

    def spoil_take(self) -> None:
        """Discard the graded motion after an interruption."""
        self._take = None

    def _keep(self, take: Take, before: float, moving: bool) -> None:
        """Record a frame of an uninterrupted motion."""
        if self.finished_take:
            return
        if self.time < before or (self.time >= self.duration and moving):
            self.finished_take, self._take = self._take or [], []
        elif moving and self._take is not None:
            self._take.append(take)


class WholeBodyDancer(Dancer):
    """Robot with moving root and legs, and fixed contacts."""

    whole_body = True
    player: WholeBodyPlayer

    def __init__(self, body: BodyPoints, robot: Robot) -> None:
        """Start at the first posture of the clip.

        Args:
            body: clip with legs.
            robot: robot with a floating base, legs and soles.

        Raises:
            ClipError: if legs, floor or a first posture are missing.
            RobotError: if legs or soles are missing.
        """
        body, _, notes = at_solving_rate(body)
        targets = WholeBodyScaler(body, robot).targets(body)
        self.solver = WholeBodyRetargeter.following(targets, robot)
        frames = self.solver.inputs(targets)
        self.player = WholeBodyPlayer(targets, frames, self.solver.legs.soles, SEAM, free=self.solver.problem.free)
        super().__init__(robot, targets.name, targets.rate, self.player.duration)
        self.notes += [*notes, *targets.notes]
        self._cuts = ends_elsewhere(body)
        self._corners = [(f[0], f[1]) for f in self.solver.legs.points(robot)[-2 * EDGES :]]
        self.begin()

    def begin(self, time: float = 0.0) -> None:
        p, now = self.player, self.player.playing
        time = float(np.clip(time, 0.0, max(self.duration - 1.0 / p.targets.rate, 0.0)))
        while True:
            p.restart()
            p.playing, p.time = True, time
            frame = p.advance(0.0)
            try:
                self.solver.start(frame, p.heading, self.clip)
                break
            except ClipError:  # in the air, or out of reach
                if time <= 0.0:
                    raise
                time = max(time - BACK, 0.0)
        p.playing = now
        self._home, self._home_from, self._passed = pin.SE3.Identity(), pin.SE3.Identity(), SEAM
        self._clip_at = p.X_world_clip
        self._began: list[np.ndarray | None] = [None] * EDGES
        self.worst_slip, self.contacts_seen = 0.0, 0
        self._take = [] if time <= 0.0 else None
        self._look()

    def step(self) -> None:
        p, before = self.player, self.player.time
        if self._at_end():
            return
        frame = p.advance(self.dt)
        begin = clock.perf_counter()
        self.solver.step(frame, 0, self.dt)
        self._took.append(clock.perf_counter() - begin)
        if not np.isfinite(self.solver.joints).all():  # NaN would persist in the solver
            self.begin(before)
            return
        self._glide()
        self._look()
        self._keep_frame(before)

    def _keep_frame(self, before: float) -> None:
        p, s = self.player, self.solver
        errors = np.linalg.norm(s.scratch.points[: len(BODY_POINTS)] - p.shown(), axis=1)
        take = Take(self._q.copy(), errors, s.contacts.copy(), s.clearance, s.used_fallback)
        self._keep(take, before, p.playing and (p.time > before or p.finished))

    def _glide(self) -> None:
        """Move the world during a transition, so that the robot continues at its place."""
        X = self.player.X_world_clip
        if X is not self._clip_at:
            self._clip_at, self._home_from, self._passed = X, self._home, 0.0
        if self._passed >= SEAM:
            return
        self._passed += self.dt
        s, end = minimum_jerk(min(self._passed / SEAM, 1.0)), X.inverse()
        turn = math.remainder(_yaw(end) - _yaw(self._home_from), 2 * math.pi)
        R = pin.rpy.rpyToMatrix(0.0, 0.0, _yaw(self._home_from) + s * turn)
        p = self.solver.root.translation * [1.0, 1.0, 0.0]
        # Translation t with R p + t = (1 - s) home_from p + s end p: the robot position p is interpolated.
        self._home = pin.SE3(R, (1 - s) * self._home_from.act(p) + s * end.act(p) - R @ p)

    def _look(self) -> None:
        self._q = self.robot.q(self.solver.joints, self.solver.root)
        self._poses = self.robot.link_poses(self._q)
        self._soles = np.array([self.robot.data.oMi[joint].act(place) for joint, place in self._corners])
        self._slip = np.zeros(EDGES)
        for e in range(EDGES):
            ends = self._soles[2 * e : 2 * e + 2, :2]
            began = self._began[e]
            if not self.solver.contacts[e]:
                self._began[e] = None
            elif began is None:
                self._began[e] = ends.copy()
                self.contacts_seen += 1
            else:
                self._slip[e] = np.linalg.norm(ends - began, axis=1).max()
        self.worst_slip = max(self.worst_slip, float(self._slip.max()))

    def view(self) -> DancerView:
        X, p = self._home, self.player

        def moved(points: np.ndarray) -> np.ndarray:
            return points @ X.rotation.T + X.translation

        return DancerView(
            {link: X * pose for link, pose in self._poses.items()},
            moved(p.shown()),
            moved(self.solver.scratch.points[: len(BODY_POINTS)]),
            moved(p.skeleton()),
            moved(self._soles),
            self.solver.contacts.copy(),
            self._slip,
            X.act(self.solver.root.translation),
        )

    @property
    def joints(self) -> np.ndarray:
        return self.solver.joints

    def trajectory(self) -> WholeBodyTrajectory:
        take, rate = self.finished_take, 1.0 / self.dt
        q = np.array([frame.q for frame in take])
        joints = q[:, self.robot.iq :]
        return WholeBodyTrajectory(
            **_common(self.robot, take, joints, rate, self.solver.moving),
            root_position=q[:, :3],
            root_quaternion=q[:, 3:7],
            contacts=np.array([frame.contacts for frame in take]),
            point_names=BODY_POINTS,
        )


class UpperBodyDancer(Dancer):
    """Robot with a fixed pelvis, for robots or clips without legs."""

    player: ClipPlayer

    def __init__(self, body: BodyPoints, robot: Robot) -> None:
        """Start at the first posture of the clip.

        Args:
            robot: fixed base.

        Raises:
            ClipError: if a segment has zero length, or no first posture is found.
            RobotError: if imitation points are missing.
        """
        robot.require_imitation_points()
        targets = scale_to_robot(body, robot)
        self.player = ClipPlayer(targets, robot.point_positions(robot.q("neutral"), POINTS), SEAM)
        self.solver = Retargeter(robot)
        self.figure = Figure(targets, 0.0)
        self._cuts = ends_elsewhere(body)
        super().__init__(robot, targets.name, targets.rate, self.player.duration)
        self._place = robot.X_world_root.translation.copy()
        self.begin()

    def begin(self, time: float = 0.0) -> None:
        self.player.seek(min(time, max(self.duration - self.dt, 0.0)))
        self.player.advance(SEAM)  # skip the lead-in
        self._passed = SEAM
        try:
            self.solver.start(self.player.points(), self.clip)
        except ClipError:
            if time <= 0.0:
                raise
            self.solver.start_at(self.solver.joints)
        self._take = [] if time <= 0.0 else None

    def step(self) -> None:
        p, before = self.player, self.player.time
        if self._at_end():
            return
        p.advance(self.dt)
        self._passed = 0.0 if p.time < before else self._passed + self.dt
        points, begin = p.points(), clock.perf_counter()
        self.solver.step(points, self.dt)
        self._took.append(clock.perf_counter() - begin)
        take = Take(
            self.robot.q(self.solver.joints),
            self.solver.errors(points),
            np.zeros(EDGES, dtype=bool),
            self.solver.clearance,
            self.solver.used_fallback,
        )
        self._keep(take, before, p.playing and (p.time > before or p.finished))

    def view(self) -> DancerView:
        solver, p = self.solver, self.player
        return DancerView(
            {link: pose.copy() for link, pose in self.robot.link_poses(self.robot.q(solver.joints)).items()},
            p.points(),
            solver.points(solver.joints[solver.moving])[0],
            self.figure.segments(p.body()),
            np.empty((0, 3)),
            np.zeros(EDGES, dtype=bool),
            np.zeros(EDGES),
            self._place,
        )

    @property
    def joints(self) -> np.ndarray:
        return self.solver.joints

    def trajectory(self) -> JointTrajectory:
        joints = np.array([frame.q for frame in self.finished_take])
        return JointTrajectory(
            **_common(self.robot, self.finished_take, joints, 1.0 / self.dt, self.robot.imitation_joints)
        )


def _common(robot: Robot, take: list[Take], joints: np.ndarray, rate: float, moving: np.ndarray) -> dict:
    change = np.diff(joints, axis=0)
    velocities, saturated = np.zeros_like(joints), np.zeros(len(joints))
    velocities[:-1] = change * rate
    saturated[1:] = np.mean(np.abs(change[:, moving]) >= robot.velocity[moving] / rate - 1e-9, axis=1)
    return {
        "joint_names": robot.joint_names,
        "rate": rate,
        "positions": joints,
        "velocities": velocities,
        "errors": np.array([frame.errors for frame in take]),
        "saturated": saturated,
        "clearance": np.array([frame.clearance for frame in take]),
        "used_fallback": np.array([frame.used_fallback for frame in take]),
    }


def _yaw(X: pin.SE3) -> float:
    return math.atan2(X.rotation[1, 0], X.rotation[0, 0])


def ends_elsewhere(body: BodyPoints) -> bool:
    """Test whether the clip's end is too far from its beginning for a transition."""
    way = np.linalg.norm((body.mid_hip[-1] - body.mid_hip[0])[:2])
    turn = math.remainder(float(body.heading[-1] - body.heading[0]), 2 * math.pi)
    return float(way) > NEAR_WAY or abs(turn) > NEAR_TURN


def make_dancer(body: BodyPoints, name: str) -> WholeBodyDancer | UpperBodyDancer:
    """Return a whole-body dancer if clip and robot have legs, else an upper-body one.

    Raises:
        RobotError: if the robot cannot imitate.
        UnknownNameError: if the robot is unknown.
        ClipError: see the dancers.
    """
    why = "the clip has no knees, ankles and toes"
    if shows_legs(body):
        try:
            return WholeBodyDancer(body, load_robot(name, FLOATING))
        except RobotError:
            why = "its robot file defines no legs with soles"
    dancer = UpperBodyDancer(body, load_robot(name, FIXED))
    dancer.notes.append(f"{dancer.robot.title} moves its upper body only: {why}")
    return dancer


def advance(dancer: Dancer, seconds: float) -> float:
    """Step a dancer through `seconds` [s]; return the remainder [s]."""
    while seconds >= dancer.dt - 1e-9:
        dancer.step()
        seconds -= dancer.dt
    return max(seconds, 0.0)
