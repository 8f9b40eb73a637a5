"""Pairs that close within a horizon: none is passed over while the joints move, beside all pairs measured exactly."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.pair_distance import PairsFound
from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.robots import load_robot
from humanoid_control.robots.closing_pairs import Approach, ClosingPairs, find_closing_pairs

LAW = Approach(0.05, 0.06, 0.4)  # longer and farther than the gate's, so that many pairs matter


@pytest.mark.parametrize("name", ["lola", "hrp2"])
def test_no_closing_pair_is_passed_over_while_the_joints_move(name):
    """Smooth motions of all joints, and turns of single ones on the spot."""
    robot, rng = load_robot(name, "floating"), np.random.default_rng(2)
    monitor, poses, data = robot.collision_monitor(), JointPoses(robot.model), robot.model.createData()
    pairs, found = ClosingPairs.of(robot, monitor), PairsFound.buffer(monitor.count)
    middle, half = 0.5 * (robot.lower + robot.upper), 0.5 * np.minimum(robot.upper - robot.lower, 3.0)
    phase, rate, q = rng.uniform(0, 6, robot.n), rng.uniform(1, 4, robot.n), robot.q("neutral").copy()
    closed = kept = 0
    for k in range(600):
        which = np.ones(robot.n) if k < 300 else np.arange(robot.n) == (k // 10) % robot.n
        phase += 0.01 * rate * which
        q[robot.iq :] = middle + half * np.sin(phase)
        v = np.zeros(robot.nv)
        v[robot.iv :] = half * rate * np.cos(phase) * which
        count = max(find_closing_pairs(poses.tree, poses.world, pairs, q, v, LAW, found), 0)
        assert len(set(found.pair[:count])) == count
        near = monitor.update(q, LAW.near)
        pin.computeJointJacobians(robot.model, data, q)
        closing = near.distance + LAW.horizon * (near.gradient(data.J) @ v) < LAW.margin
        assert set(near.pair[closing]) <= set(found.pair[:count])
        distance = dict(zip(near.pair.tolist(), near.distance, strict=True))
        for pair, d in zip(found.pair[:count].tolist(), found.distance, strict=False):
            assert d == pytest.approx(distance[pair], abs=1e-12)
        closed, kept = closed + closing.sum(), kept + count
    assert closed > 500 and kept < 3 * closed, (closed, kept)
