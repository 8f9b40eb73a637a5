"""Goals for two hands, reachable by construction or unreachable by geometry, and scripts that play them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import shape_arrays
from humanoid_control.collision.shapes import BOX
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk
from humanoid_control.robots.robot import Robot

HANDS = ("l_wrist", "r_wrist")
REACHABLE, FAR, INSIDE = "reachable", "far", "inside"
KINDS = (REACHABLE, FAR, INSIDE)
TRIES = 20_000
MIN_HEIGHT = 0.1  # [m] minimum height of goals
FAR_SHARE = (1.15, 1.6)  # distance of far goals, relative to the longest possible arm
INSIDE_SHARE = 0.5  # a point inside the body lies within this fraction of its shape's half sizes
SAME = 1e-9  # [m]
SHORTEST_PATH = 0.3  # [s] minimum duration of a path


@dataclass(frozen=True)
class Goal:
    """Desired positions of two hands.

    Attributes:
        kind: 'reachable': both hands, in `posture`; 'far': one hand beyond its arm; 'inside': one hand inside a fixed
            body part.
        points: (2, 3) l_wrist, r_wrist in the world [m].
        posture: (n,) with every reachable goal met [rad].
    """

    kind: str
    points: np.ndarray
    posture: np.ndarray


class GoalSampler:
    """Random goals for a robot with a fixed base.

    A reachable goal has the wrists of a random posture: within limits, in front, with a collision-free straight joint
    path. A far goal exceeds the sum of all link lengths; an inside goal lies in a fixed shape.
    """

    def __init__(self, robot: Robot, clearance: float = 0.03, share: float = 0.5) -> None:
        """Create the sampler.

        Args:
            robot: fixed base, points l_wrist and r_wrist.
            clearance: minimum distance of shapes in a goal posture [m].
            share: central fraction of each joint range.

        Raises:
            RobotError: if wrists or their joints are missing, or the base floats.
        """
        if robot.base != "fixed":
            raise RobotError(f"{robot.name}: goals of the hands need a fixed base")
        missing = [h for h in HANDS if h not in robot.points]
        if missing:
            raise RobotError(
                f"{robot.name} lacks the points {', '.join(missing)}: name its wrists in a robot file next to its URDF "
                "(docs/adding_a_robot.md; `humanoid robots map` guesses one)"
            )
        self.robot, self.clearance = robot, clearance
        self.frames = [robot.point_frame(h) for h in HANDS]
        chains = [_chain(robot.model, f) for f in self.frames]
        if not all(chains):
            raise RobotError(f"{robot.name}: no joint moves the hands")
        self.moved = np.array([robot.joint_index(robot.model.names[j]) for j in sorted({*chains[0], *chains[1]})])
        lower, upper = robot.range_within(np.pi)
        middle, half = (lower + upper) / 2, share * (upper - lower) / 2
        self._lower, self._upper = (middle - half)[self.moved], (middle + half)[self.moved]
        self._pairs = robot.collision_monitor("shapes") if len(robot.pairs) else None
        self._shapes = shape_arrays(robot.model, robot.shapes)
        spans = [_span(robot, chain, f) for chain, f in zip(chains, self.frames, strict=True)]
        self.origins, self.lengths = [s[0] for s in spans], [s[1] for s in spans]
        self._front = min(o[0] for o in self.origins)
        self.bodies = [self._bodies(f) for f in self.frames]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of goals for this robot."""
        return KINDS if any(self.bodies) else (REACHABLE, FAR)

    def sample(self, kind: str, rng: np.random.Generator) -> Goal:
        """Return a random goal of a kind.

        Raises:
            RobotError: if no collision-free posture is found.
        """
        posture = self._posture(rng)
        points = self.robot.frame_positions(self.robot.q(posture), self.frames)
        if kind == FAR:
            hand = int(rng.integers(len(HANDS)))
            points[hand] = self._far(hand, rng)
        elif kind == INSIDE:
            hand = int(rng.choice([k for k, shapes in enumerate(self.bodies) if shapes]))
            points[hand] = self._inside(hand, rng)
        return Goal(kind, points, posture)

    def _posture(self, rng: np.random.Generator) -> np.ndarray:
        r = self.robot
        for _ in range(TRIES):
            joints = r.postures["neutral"].copy()
            joints[self.moved] = rng.uniform(self._lower, self._upper)
            q = r.q(r.follow(joints))
            if ((joints < r.lower) | (joints > r.upper)).any():
                continue
            hands = r.frame_positions(q, self.frames)
            if hands[:, 2].min() > MIN_HEIGHT and (hands[:, 0] > self._front).all() and self._is_free(joints):
                return joints
        raise RobotError(f"{r.name}: no posture of the arms keeps {self.clearance:g} m between its shapes")

    def _is_free(self, joints: np.ndarray) -> bool:
        """Return True if posture and straight joint path are collision-free."""
        r, home = self.robot, self.robot.postures["neutral"]
        if self._pairs is None:
            return True
        if len(self._pairs.update(r.q(joints), self.clearance)):
            return False
        between = (r.q(home + s * (joints - home)) for s in np.linspace(0.1, 0.9, 9))
        return not any(len(self._pairs.update(q, 0.0)) for q in between)

    def _far(self, hand: int, rng: np.random.Generator) -> np.ndarray:
        """Return an unreachable point on the hand's side, not behind."""
        while True:
            d = rng.normal(size=3)
            d /= np.linalg.norm(d)
            side = d[1] if HANDS[hand].startswith("l") else -d[1]
            p = self.origins[hand] + rng.uniform(*FAR_SHARE) * self.lengths[hand] * d
            if side > 0 and d[0] > -0.3 and p[2] > MIN_HEIGHT:
                return p

    def _inside(self, hand: int, rng: np.random.Generator) -> np.ndarray:
        k, s = int(rng.choice(self.bodies[hand])), self._shapes
        half = s.sizes[k, :3] + [0.0, 0.0, s.sizes[k, 3]]
        return s.p[k] + s.R[k] @ (INSIDE_SHARE * rng.uniform(-1.0, 1.0, 3) * half)

    def _bodies(self, frame: int) -> list[int]:
        checked = {frozenset(pair) for pair in self.robot.pairs.tolist()}
        joint = self._shapes.joint
        around = [k for k in np.flatnonzero(joint) if self._is_around(int(k), frame)]
        return [
            int(k) for k in np.flatnonzero(joint == 0) if any(frozenset((int(k), int(a))) in checked for a in around)
        ]

    def _is_around(self, shape: int, frame: int) -> bool:
        """Return True if a shape contains a frame's origin and moves with it."""
        r, s = self.robot, self._shapes
        seen = []
        for joints in (r.postures["neutral"], *r.range_within(np.pi)):
            p = r.frame_positions(r.q(joints), [frame])[0]
            X = r.data.oMi[int(s.joint[shape])]
            seen.append(s.R[shape].T @ (X.actInv(p) - s.p[shape]))
        return bool(np.ptp(seen, axis=0).max() < SAME) and _contains(int(s.kinds[shape]), s.sizes[shape], seen[0])


def _contains(kind: int, size: np.ndarray, p: np.ndarray) -> bool:
    if kind == BOX:
        return bool((np.abs(p) < size[:3]).all())
    over = max(abs(p[2]) - size[3], 0.0)
    if over >= size[2]:
        return bool(over == 0 and np.hypot(p[0] / size[0], p[1] / size[1]) < 1)
    return bool((p[0] / size[0]) ** 2 + (p[1] / size[1]) ** 2 + (over / size[2]) ** 2 < 1)


def _chain(model: pin.Model, frame: int) -> list[int]:
    return [j for j in model.supports[model.frames[frame].parentJoint].tolist() if j > 0]


def _span(robot: Robot, chain: list[int], frame: int) -> tuple[np.ndarray, float]:
    """Return the position (3,) of the first joint, and an upper bound of the frame's distance from it [m]."""
    # Distances between successive joints are constant; a prismatic joint adds its range.
    model = robot.model
    origin = model.jointPlacements[chain[0]].translation
    steps = [np.linalg.norm(model.jointPlacements[j].translation) for j in chain[1:]]
    steps.append(np.linalg.norm(model.frames[frame].placement.translation))
    slides = [j for j in chain if model.joints[j].shortname().startswith("JointModelP")]
    indices = [robot.joint_index(model.names[j]) for j in slides]
    steps += [max(abs(robot.lower[k]), abs(robot.upper[k])) for k in indices]
    return np.array(origin), float(sum(steps))


# -------- Script


@dataclass(frozen=True)
class ScriptSettings:
    """Settings of a script.

    Attributes:
        speed: maximum of a target [m/s].
        stay: time at a goal [s].
        jump_stay: additional time after a jump [s].
        unreachable: fraction of goals.
        jump: fraction of goals reached by a jump.
        faults: fraction of non-finite samples at a goal.
    """

    speed: float = 0.5
    stay: float = 1.2
    jump_stay: float = 1.0
    unreachable: float = 0.4
    jump: float = 0.25
    faults: float = 0.02

    def __post_init__(self) -> None:
        shares = (self.unreachable, self.jump, self.faults)
        if not (self.speed > 0 and self.stay > 0 and self.jump_stay >= 0 and all(0 <= s <= 1 for s in shares)):
            raise ConfigError("a script of goals needs a speed and a dwell time above 0, and shares between 0 and 1")


@dataclass(frozen=True)
class ReachLeg:
    """Goal and the path to it.

    Attributes:
        number: 0 for the initial hands.
        goal: the goal.
        start: departure [s].
        arrive: arrival [s].
        end: end of the stay [s].
        begin: (2, 3) start [m].
        jump: arrives at once.
    """

    number: int
    goal: Goal
    start: float
    arrive: float
    end: float
    begin: np.ndarray
    jump: bool

    def at(self, time: float) -> np.ndarray:
        """Return the targets (2, 3) at a time [s], on a minimum-jerk straight line."""
        if time >= self.arrive:
            return self.goal.points.copy()
        s = max(0.0, time - self.start) / (self.arrive - self.start)
        return self.begin + minimum_jerk(s) * (self.goal.points - self.begin)


class ReachScript:
    """Endless, reproducible sequence of goals, starting at the hands; the first goal is reachable.

    Each block has the set fractions of unreachable goals and jumps.
    """

    BLOCK = 20

    def __init__(
        self, sampler: GoalSampler, begin: np.ndarray, seed: int = 1, settings: ScriptSettings | None = None
    ) -> None:
        """Create the script; `begin` (2, 3) are the initial hands [m]."""
        self.sampler, self.settings = sampler, settings or ScriptSettings()
        self._random, self._faults = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        home = Goal(REACHABLE, np.array(begin, dtype=float), sampler.robot.postures["neutral"])
        self.leg = ReachLeg(0, home, 0.0, 0.0, self.settings.stay, home.points, False)
        self._kinds: list[str] = []
        self._jumps: list[bool] = []

    def at(self, time: float) -> np.ndarray:
        """Return the targets (2, 3) at a time [s], NaN for faults; times must increase."""
        while self.leg.end <= time:
            self.leg = self._next()
        points = self.leg.at(time)
        if self.leg.number and time > self.leg.arrive and self._faults.random() < self.settings.faults:
            points[:] = np.nan
        return points

    def _next(self) -> ReachLeg:
        s, before = self.settings, self.leg
        if not self._kinds:
            self._shuffle()
        goal, jump = self.sampler.sample(self._kinds.pop(), self._random), self._jumps.pop()
        far = float(np.linalg.norm(goal.points - before.goal.points, axis=1).max())
        takes = 0.0 if jump else max(SHORTEST_PATH, PEAK_SPEED * far / s.speed)
        arrive = before.end + takes
        stay = s.stay + (s.jump_stay if jump else 0.0)
        return ReachLeg(before.number + 1, goal, before.end, arrive, arrive + stay, before.goal.points, jump)

    def _shuffle(self) -> None:
        s, others = self.settings, [k for k in self.sampler.kinds if k != REACHABLE]
        many = round(s.unreachable * self.BLOCK)
        kinds = [others[k % len(others)] for k in range(many)] + [REACHABLE] * (self.BLOCK - many)
        jumps = np.arange(self.BLOCK) < round(s.jump * self.BLOCK)
        self._kinds = [kinds[k] for k in self._random.permutation(self.BLOCK)]
        self._jumps = self._random.permutation(jumps).tolist()
        if self.leg.number == 0 and REACHABLE in self._kinds:
            k = self._kinds.index(REACHABLE)
            self._kinds[-1], self._kinds[k] = self._kinds[k], self._kinds[-1]
            self._jumps[-1] = False
