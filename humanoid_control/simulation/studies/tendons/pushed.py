"""The source's plant of E3: tendons at constant tensions, and hands that push both arms alike."""

from __future__ import annotations

import numpy as np

from humanoid_control.simulation.settings import TENDONS, WorldSettings
from humanoid_control.simulation.studies.tendons.lab import TendonLab
from humanoid_control.simulation.worlds.tension_world import TensionWorld
from humanoid_control.tendons.mappings.mapping import Array

PERIOD, STEP = 0.01, 0.002  # of the samples and of the simulation [s]; our choice, the source gives none
HELD = 40  # samples for which a push stays the same
PUSHED = {"scapula": 35.0, "humerus": 23.0, "forearm": 16.0}  # standard deviation of each part of the force [N]


class HandPushes:
    """Moves the arms of the experiments' robot by forces on its links, which are random and mirrored."""

    def __init__(self, lab: TendonLab) -> None:
        self._lab = lab
        self._world = TensionWorld(lab.robot, WorldSettings(STEP, drives=TENDONS))
        self._joints = [lab.robot.index[j] for j in lab.whole.joint_names]

    def walk(self, steps: int, seed: int) -> tuple[Array, Array]:
        """Angles (steps + 1, J) [rad] and true lengths (steps + 1, M) [m], as `TendonLab.walk`."""
        world, rng = self._world, np.random.default_rng(seed)
        world.reset()
        q = np.empty((steps + 1, len(self._joints)))
        for k in range(steps + 1):
            q[k] = world.joints[self._joints]
            if k % HELD == 0:
                for link, size in PUSHED.items():
                    force = size * rng.standard_normal(3)
                    for side, y in (("l", 1.0), ("r", -1.0)):
                        wrench = np.concatenate([force * (1.0, y, 1.0), np.zeros(3)])
                        world.push(f"{side}_{link}", wrench, HELD * PERIOD)
            world.step(round(PERIOD / STEP))
        return q, self._lab.whole.lengths_of(q)
