"""`humanoid bench reaching`: its tasks, the best of ten starts, and that a peer is given the same arm."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from evidence.benchmarks.motion import reaching


def test_a_reach_is_judged_by_the_best_of_ten():
    task = reaching.tasks()["swing_2_ms"]
    best = reaching.best_of_ten(task)
    found = task.solve()
    assert best <= found.cost * 1.02 and found.cost < 1.2 * best
    straight = replace(task, settings=replace(task.settings, starts=1)).solve()
    assert best <= straight.cost * 1.02


@pytest.mark.parametrize("name", ["reach_7_ms", "mtc_4_ms"])
def test_the_peer_s_model_is_the_same_arm(name):
    arm = reaching.tasks()[name].arm
    model = reaching.pinocchio_model(arm)
    q, v, a = np.random.default_rng(0).normal(size=(3, arm.n))
    assert np.allclose(pin.rnea(model, model.createData(), q, v, a), arm.torque(q, v, a), atol=1e-10)


def test_crocoddyl_finds_the_same_cost_where_there_is_one_optimum():
    """Without gravity; with it the two end in different optima."""
    pytest.importorskip("crocoddyl")
    task = reaching.tasks()["swing_2_ms"]
    settings = replace(task.settings, limits=False, gravity=False, segments=8)
    task = replace(task, arm=task.arm.without_gravity(), settings=settings)
    assert reaching.crocoddyl_reach(task)() == pytest.approx(task.solve().cost, rel=0.01)
