"""A script of goals, one after the other: how the targets get there, how long they stay, and when they jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.reach.goals import REACHABLE, Goal, GoalSampler


@dataclass(frozen=True)
class ScriptSettings:
    """What a run is made of.

    Attributes:
        speed: greatest speed of a target on its way [m/s].
        stay: how long a goal stays after the targets are there [s].
        jump_stay: how much longer where they jumped: a jump is not believed at first [s].
        unreachable: share of the goals that cannot be reached.
        jump: share of the goals to which the targets jump instead of moving there.
        faults: share of the samples, while a goal stays, that are not numbers.
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
            raise ConfigError("a script of goals needs a speed and a stay above 0, and shares between 0 and 1")


@dataclass(frozen=True)
class Leg:
    """One goal and the way to it.

    Attributes:
        number, goal: 0 is where the hands are at the beginning.
        start, arrive, end: when the targets set out, when they are there, when they leave [s].
        begin: (2, 3) from where [m]. jump: they are there at once.
    """

    number: int
    goal: Goal
    start: float
    arrive: float
    end: float
    begin: np.ndarray
    jump: bool

    def at(self, time: float) -> np.ndarray:
        """Where the targets (2, 3) are at a time [s]: on a straight way of least jerk."""
        if time >= self.arrive:
            return self.goal.points.copy()
        s = max(0.0, time - self.start) / (self.arrive - self.start)
        return self.begin + s**3 * (10 - 15 * s + 6 * s**2) * (self.goal.points - self.begin)


class ReachScript:
    """Goals in an endless row, the same ones for the same robot and seed, made when they are needed.

    The first goal is where the hands begin, so that the robot is not pulled away at once, and the second is reachable.
    Of every block of goals the settings' shares are unreachable, and jump, in random order.
    """

    BLOCK = 20

    def __init__(
        self, sampler: GoalSampler, begin: np.ndarray, seed: int = 1, settings: ScriptSettings | None = None
    ) -> None:
        """Prepare.

        Args:
            sampler: of the robot.
            begin: (2, 3) where its hands are [m].
            seed: of the random numbers.
        """
        self.sampler, self.settings = sampler, settings or ScriptSettings()
        self._random, self._faults = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        home = Goal(REACHABLE, np.array(begin, dtype=float), sampler.robot.postures["neutral"])
        self.leg = Leg(0, home, 0.0, 0.0, self.settings.stay, home.points, False)
        self._kinds: list[str] = []
        self._jumps: list[bool] = []

    def at(self, time: float) -> np.ndarray:
        """The targets (2, 3) at a time [s] since the beginning, NaN where spoilt on purpose; times must grow."""
        while self.leg.end <= time:
            self.leg = self._next()
        points = self.leg.at(time)
        if self.leg.number and time > self.leg.arrive and self._faults.random() < self.settings.faults:
            points[:] = np.nan
        return points

    def _next(self) -> Leg:
        s, before = self.settings, self.leg
        if not self._kinds:
            self._shuffle()
        goal, jump = self.sampler.sample(self._kinds.pop(), self._random), self._jumps.pop()
        far = float(np.linalg.norm(goal.points - before.goal.points, axis=1).max())
        # The way of least jerk is fastest in its middle: 15/8 of its mean speed.
        takes = 0.0 if jump else max(0.3, 1.875 * far / s.speed)
        arrive = before.end + takes
        stay = s.stay + (s.jump_stay if jump else 0.0)
        return Leg(before.number + 1, goal, before.end, arrive, arrive + stay, before.goal.points, jump)

    def _shuffle(self) -> None:
        """The kinds and jumps of the next block; taken from the end."""
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
