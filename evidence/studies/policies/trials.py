"""Policies of a study, and a player whose sensors are noisy, old, mirrored or late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.paths import test_data
from humanoid_control.policy import (
    Examination,
    Limiter,
    Policy,
    PolicyPlayer,
    PolicyTargets,
    RobotState,
    examine,
    policy_engine,
    read_policy,
)
from humanoid_control.robots import Robot, load_robot

PUBLIC = (
    "holosoma/ppo_g1_29dof.onnx",
    "holosoma/fastsac_g1_29dof.onnx",
    "unitree_rl_lab_g1_velocity/params/deploy.yaml",
    "agile_leapp/unitree_g1_velocity_e2e.yaml",
    "holosoma/fastsac_g1_29dof_dancing.onnx",
)  # of $HUMANOID_TEST_DATA/policies: those whose files say enough
NOISE_Q, NOISE_V, NOISE_GYRO, NOISE_TILT = 0.003, 0.1, 0.05, 0.01  # [rad], [rad/s], [rad/s], [rad] standard deviations


def chosen_policies(given: Sequence[str]) -> list[str]:
    """Policies of a study: a path each, or 'description.yaml,network.onnx'; default: public ones that are here.

    Raises:
        ConfigError: no such file, or none at all.
    """
    found = [str(path) for name in PUBLIC if (path := test_data(f"policies/{name}")) is not None]
    chosen = list(dict.fromkeys(given)) or found
    for one in chosen:
        for part in one.split(","):
            if not Path(part).exists():
                raise ConfigError(f"no file {part}: give a policy, or its description and its network: a.yaml,b.onnx")
    if not chosen:
        raise ConfigError("no policy: name one, --policy policy.onnx")
    return chosen


@lru_cache(maxsize=8)
def examined(spec: str, robot: str) -> Examination:
    """A policy of `chosen_policies` with all that was found about it."""
    path, _, network = spec.partition(",")
    return examine(*read_policy(Path(path), Path(network) if network else None), load_robot(robot, "floating"))


def policy_name(spec: str) -> str:
    """Name of a policy for a table: of its file, or of the folder where that says more."""
    path = Path(spec.split(",")[0])
    if path.stem in ("deploy", "config"):
        return path.resolve().parent.parent.name if path.parent.name == "params" else path.resolve().parent.name
    return path.stem


class Senses(NamedTuple):
    """What lies between a robot and a policy.

    Attributes:
        change: of the sensed state at a time [s]; None: nothing. mirrored: places of joints, in the robot's order, that
            are sensed and driven with the other sign. delay: periods by which all is old.
        late: by which inferences are late [s], from `onset` [s] on.
    """

    change: Callable[[RobotState, float], RobotState] | None = None
    mirrored: tuple[int, ...] = ()
    delay: int = 0
    late: float = 0.0
    onset: float = 0.0


def noisy(seed: int) -> Senses:
    """Sensors with noise."""
    random = np.random.default_rng(seed)

    def change(state: RobotState, time: float) -> RobotState:
        turn = pin.exp3(random.normal(size=3) * NOISE_TILT)
        R = pin.Quaternion(state.orientation).toRotationMatrix() @ turn
        return state._replace(
            q=state.q + random.normal(size=len(state.q)) * NOISE_Q,
            v=state.v + random.normal(size=len(state.v)) * NOISE_V,
            orientation=pin.Quaternion(R).coeffs(),
            angular_velocity=state.angular_velocity + random.normal(size=3) * NOISE_GYRO,
        )

    return Senses(change)


class DisturbedPlayer(PolicyPlayer):
    """A player whose policy senses and drives through `Senses`.

    Attributes:
        senses: between the robot and the policy.
    """

    def __init__(
        self, policy: Policy, engine: str, limiter: Limiter | None, senses: Senses, supervised: bool = False
    ) -> None:
        """Begin; args as of PolicyPlayer.

        Args:
            engine: name of the engine.
        """
        self.senses = senses
        self._sign = np.ones(policy.robot.n)
        self._sign[list(senses.mirrored)] = -1.0
        self._seen: deque[RobotState] = deque(maxlen=senses.delay + 1)
        self._before: PolicyTargets | None = None
        super().__init__(policy, policy_engine(policy.robot, engine), limiter, supervised)

    def state(self) -> RobotState:
        """See PolicyPlayer."""
        true, s = super().state(), self.senses
        state = true._replace(q=self._sign * true.q, v=self._sign * true.v)
        self._seen.append(state)
        state = self._seen[0]
        return state if s.change is None else s.change(state, self.engine.time)

    def decide(self) -> PolicyTargets:
        """See PolicyPlayer; late targets are those of the period before."""
        late = self.senses.late if self.engine.time >= self.senses.onset else 0.0
        if self.supervisor is not None:
            made = self.supervisor.step(self.state(), self.command, late)
        else:
            made = self._held(self.policy.step(self.state(), self.command))
        targets = made._replace(q=self._sign * made.q, v=self._sign * made.v, tau=self._sign * made.tau)
        before, self._before = self._before, PolicyTargets(*(a.copy() for a in targets))
        return before if late > 0.5 * self.policy.period and before is not None else targets


def robot_of(name: str) -> Robot:
    """The robot of a study, with a base that floats."""
    return load_robot(name, "floating")
