"""Feet without a robot, and walks through them."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pinocchio as pin

from humanoid_control.walking.footsteps import VelocityPlanner
from humanoid_control.walking.planning.lipm import follow_dcm
from humanoid_control.walking.planning.plan import CenterRequest, schedule
from humanoid_control.walking.planning.step import Footstep, StepLimits, StepTimes

OMEGA = 3.3
WIDTH = 0.2


def soles(width=WIDTH):
    return [pin.SE3(np.eye(3), np.array([0.0, s * width / 2, 0.0])) for s in (1, -1)]


def geometry(inward=0.005):
    """As `Feet`: rectangles of both soles, and where the zero-moment point stands on them."""
    lower, upper = np.array([[-0.1, -0.06]] * 2), np.array([[0.15, 0.06]] * 2)
    return SimpleNamespace(lower=lower, upper=upper, middle=np.array([[0.02, -inward], [0.02, inward]]))


def steps(command=(0.4, 0, 0), count=6, foot=1, feet=None, T=0.8):
    planner = VelocityPlanner(StepLimits(width=WIDTH, gap=0.15, nominal=T), StepTimes(nominal=T))
    planner.command = np.array(command, dtype=float)
    stance = Footstep(1 - foot, (feet or soles())[1 - foot], 0.0, 0.0, 0.0)
    return planner.next_steps(stance, np.array(command) * T, count)[0]


def request(t=0.0, lift=1.0, feet=None, count=6, command=(0.4, 0, 0), foot=1, **state):
    """A request that begins at rest between the feet, unless another state is given."""
    feet, shape = feet or soles(), geometry()
    phases = schedule(feet, steps(command, count, foot, feet), lift)
    middle = 0.5 * sum(X.act(np.array([*m, 0.0]))[:2] for X, m in zip(feet, shape.middle, strict=True))
    now = {"center": middle, "xi": middle, "zmp": middle} | state
    return CenterRequest(t, OMEGA, now["center"], now["xi"], now["zmp"], shape, feet, phases, 0.6)


def centers(path, c, times):
    """Centre of mass (k, 2) at close times, by exact steps of c' = w (xi - c)."""
    out = [np.array(c)]
    for a, b in pairwise(times):
        out.append(follow_dcm(out[-1], path.dcm(a), path.dcm(b), path.omega, b - a))
    return np.array(out)
