"""Height of the centre of mass over supports: no jump, up after touch-down, down before lift-off (0.1 s)."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.walking.ground.center_height import ABOVE, CenterHeight, support_heights
from humanoid_control.walking.planning.plan import schedule
from humanoid_control.walking.planning.step import Footstep


def phases(heights, feet=(0.0, 0.0)):
    soles = [pin.SE3(np.eye(3), np.array([0.0, y, z])) for y, z in zip((0.1, -0.1), feet, strict=True)]
    steps = []
    for k, z in enumerate(heights):
        foot = (k + 1) % 2
        X = pin.SE3(np.eye(3), np.array([0.3 * (k + 1), 0.1 if foot == 0 else -0.1, z]))
        steps.append(Footstep(foot, X, 0.8, 0.2, 0.06))
    return schedule(soles, steps, 1.0)


def test_changes_add_up_without_a_jump_and_new_plans_do_not_disturb_those_that_have_begun():
    h = CenterHeight(0.9)
    h.change(0.1, 1.0, 2.0)
    h.change(-0.2, 5.0, 6.0)
    before = h.at(1.5)
    h.truncate(1.5)
    assert h.at(1.5) == before and h.goal == pytest.approx(1.0), "what has not begun is forgotten"
    h.change(0.05, 1.7, 2.5)
    t = np.linspace(0.5, 4, 2000)
    z = np.array([h.at(x) for x in t])
    assert np.abs(np.diff(z)).max() < 5e-4 and h.at(4) == pytest.approx(1.05)
    h.truncate(3.0)
    assert not h.rises and h.at(3.0) == pytest.approx(1.05)


def test_stairs_up_and_down_and_a_slope_across():
    up = support_heights([0.0, 0.0], phases([0.1, 0.2, 0.3, 0.3]))
    walk = phases([0.1, 0.2, 0.3, 0.3])
    assert [r.begin for r in up][:3] == pytest.approx([p.land for p in walk][:3]), "from touch-down on"
    assert up[1].end == pytest.approx(walk[1].end + 0.4) and [r.amount for r in up][:2] == pytest.approx([0.1, 0.2])
    assert up[-1].amount == pytest.approx(0.3)
    down = support_heights([0.0, 0.0], phases([-0.1, -0.2, -0.3, -0.3]))
    assert down[1].begin == pytest.approx(0.5 * (walk[1].lift + walk[1].land)) and down[1].end == walk[1].end
    for r, z in zip(down, (-0.1, -0.2, -0.3, -0.3), strict=True):
        assert r.amount <= z + ABOVE + 1e-12, "never far above the sole that stands"
    across = support_heights([0.01, -0.01], phases([-0.01, 0.01, -0.01, 0.01], (0.01, -0.01)))
    assert [r.amount for r in across] == pytest.approx([0.0] * 4, abs=1e-12)
    assert support_heights([0.0, 0.0], []) == []
