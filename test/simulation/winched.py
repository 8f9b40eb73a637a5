"""A robot on winches for tests, and a plain hybrid law on its true angles that moves it."""

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.control.commands import HYBRID, WinchCommand

KAPPA = 8.0  # [1/s]


class TrueAngles:
    """Hybrid law by numpy on the true angles: w_c = -G (v_r + kappa e), tensions of least squares that hold theta_r."""

    def __init__(self, world):
        self.world, self.plant = world, world.winches.plant
        self.joints, m = self.plant.joints, len(self.plant.names)
        self.data, self.kind = world.model.createData(), np.full(m, HYBRID)

    def step(self, goal, velocity):
        """Command the winches for joint angles and velocities (D,) of the crossed joints."""
        world = self.world
        G = self.plant.measure(world.joints)[1].copy()
        q = world.joints.copy()
        q[self.joints] = goal
        weight = pin.computeGeneralizedGravity(world.model, self.data, world.robot.q(q))[world.robot.iv :]
        f = self.plant.tensions(G, weight[self.joints])
        w = -G @ (velocity + KAPPA * (goal - world.joints[self.joints]))
        world.set_tendon_commands(WinchCommand(self.kind, w, f, np.zeros(len(f))))


def reach(worlds, goals, seconds, period=0.004):
    """Move several worlds alike, by a cosine from where they are to goals (D,); angles (T, n)."""
    laws = [TrueAngles(w) for w in worlds]
    starts = [w.joints[law.joints].copy() for w, law in zip(worlds, laws, strict=True)]
    out = [[] for _ in worlds]
    for k in range(round(seconds / period)):
        t = min(k * period / (0.5 * seconds), 1.0)
        share, rate = 0.5 - 0.5 * np.cos(np.pi * t), 0.5 * np.pi * np.sin(np.pi * t) / (0.5 * seconds)
        for w, law, start, rows in zip(worlds, laws, starts, out, strict=True):
            law.step(start + share * (goals - start), rate * (goals - start))
            w.step(round(period / w.settings.step))
            rows.append(w.joints.copy())
    return [np.array(rows) for rows in out]
