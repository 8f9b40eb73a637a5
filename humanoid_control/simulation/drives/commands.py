"""What the drives of a robot are told to do: position, velocity or torque, joint by joint."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.gains import DriveGains

POSITION, VELOCITY, EFFORT = 0, 1, 2


class DriveCommands:
    """The references of all drives. One rule for every engine.

    All three kinds are one law, torque = kp (q_ref - q) + kd (v_ref - v) + effort, clipped at the effort limit:

    * position: `q_ref` is held; between commands it moves on with the commanded velocity, for at most `coast`.
    * velocity: `q_ref` moves on with `v_ref` for as long as it is wanted, so the drive carries a load without
      falling behind; it never runs further ahead of the joint than the effort limit can pull.
    * effort: kp = kd = 0.

    Attributes:
        mode: (n,) POSITION, VELOCITY or EFFORT.
        q_ref [rad], v_ref [rad/s], effort [N m]: (n,) references and feed-forward.
        lead: (n,) how far a velocity drive's reference may be ahead of the joint [rad].
        since: time of the last command [s].
        driven: (n,) 1 where kp and kd act, 0 for joints under effort command.
    """

    def __init__(self, robot: Robot, gains: DriveGains, coast: float) -> None:
        self.robot, self.coast, self._limit = robot, coast, gains.effort
        with np.errstate(divide="ignore"):
            self.lead = np.where(gains.kp > 0, gains.effort / gains.kp, np.inf)
        self.reset(robot.joints(robot.q()))

    def reset(self, joints: np.ndarray, time: float = 0.0) -> None:
        """Hold a posture (n,) [rad] at rest from now on."""
        n = self.robot.n
        self.mode = np.full(n, POSITION)
        self.q_ref, self.v_ref, self.effort = np.array(joints, dtype=float), np.zeros(n), np.zeros(n)
        self.driven, self.since = np.ones(n), time

    def set(
        self,
        time: float,
        joints: np.ndarray,
        positions: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        efforts: np.ndarray | None = None,
    ) -> None:
        """Take a command; see `Engine.command`.

        Args:
            time: now [s]. joints: (n,) where they are [rad].
            positions, velocities, efforts: (n,) each or None; entries that are not numbers are not given.
        """
        r = self.robot
        q, v, tau = (
            np.full(r.n, np.nan) if x is None else np.asarray(x, float) for x in (positions, velocities, efforts)
        )
        by_q = np.isfinite(q)
        by_v = ~by_q & np.isfinite(v)
        by_tau = ~by_q & ~by_v & np.isfinite(tau)
        starts = by_v & (self.mode != VELOCITY)
        self.mode = np.select([by_q, by_v, by_tau], [POSITION, VELOCITY, EFFORT], self.mode)
        self.q_ref = np.where(by_q, np.clip(q, r.lower, r.upper), np.where(starts, joints, self.q_ref))
        given = by_q | by_v | by_tau
        speed = np.where(by_tau, 0.0, np.clip(np.nan_to_num(v, nan=0.0), -r.velocity, r.velocity))
        held = np.where(self.mode == POSITION, 0.0, self.v_ref)
        self.v_ref = np.where(given, speed, held)
        tau = np.clip(np.where(np.isfinite(tau), tau, 0.0), -self._limit, self._limit)
        self.effort = np.where(given, tau, self.effort)
        self.since = time
        self.driven = (self.mode != EFFORT).astype(float)

    @property
    def moving(self) -> bool:
        """Whether a reference moves by itself."""
        return bool(self.v_ref.any())

    def advance(self, time: float, joints: np.ndarray, h: float) -> None:
        """Move the references on by a step of length h."""
        r = self.robot
        silent = time - self.since >= self.coast
        advance_references(self.mode, self.q_ref, self.v_ref, self.lead, r.lower, r.upper, joints, silent, h)


@kernel
def advance_references(mode, q_ref, v_ref, lead, lower, upper, joints, silent, h):
    """Move the references (n,) on by a step of length h, in place.

    Args:
        silent: no command for longer than references of position drives coast.
        lead: how far the reference of a velocity drive may be ahead of its joint. The others: see `DriveCommands`.
    """
    for k in range(mode.shape[0]):
        if silent and mode[k] != VELOCITY:
            v_ref[k] = 0.0
        if v_ref[k] != 0.0:
            q = min(max(q_ref[k] + h * v_ref[k], lower[k]), upper[k])
            if mode[k] == VELOCITY:
                q = min(max(q, joints[k] - lead[k]), joints[k] + lead[k])
            q_ref[k] = q
