"""A clip begun at any of its frames, or interrupted by a bad one: soon the body is where the clip has it."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler, at_solving_rate
from humanoid_control.retargeting.frame_solver import HELD
from humanoid_control.robots import load_robot
from test.walking_person import walking_person

STARTS, SETTLED = 5, 0.5  # beginnings a clip, [s] after which postures are compared


def departures(robot, body):
    """What differs from the clip played from its first frame, SETTLED after each start: distance of the root [m], by
    how much the mean error of the points is larger [m], and the angle that nine of ten joints are nearer than [deg]."""
    body, _, _ = at_solving_rate(body)
    scaler = WholeBodyScaler(body, robot)
    whole = scaler.targets(body)
    known = WholeBodyRetargeter.following(whole, robot).solve(whole)
    n, found = round(SETTLED * body.rate), []
    for k in np.linspace(0.05 * len(whole), len(whole) - n - 2, STARTS).astype(int):
        part = replace(body, positions=body.positions[k : k + n + 1].copy(), missing=body.missing.copy())
        targets = scaler.targets(part)
        late = WholeBodyRetargeter.following(targets, robot).solve(targets)
        root = np.linalg.norm(late.root_position[n] - known.root_position[k + n])
        off = np.degrees(np.abs(late.positions[n] - known.positions[k + n]))
        worse = late.errors[n, :12].mean() - known.errors[k + n, :12].mean()
        found.append((root, worse, *np.percentile(off, (50, 90))))
    return np.array(found).T


@pytest.mark.parametrize("name", ["hrp2", "wabian2"])
@pytest.mark.parametrize("clip", ["dance_markers/dance1.trc", "dance_markers/walk1.trc"])
def test_half_a_second_after_any_start_the_body_is_where_the_clip_has_it(name, clip, mocap):
    root, error, half, joints = departures(load_robot(name, "floating"), load_body_points(mocap(clip)))
    assert np.median(root) < 0.02 and root.max() < 0.15, f"root {root}"
    assert np.median(error) < 0.01 and error.max() < 0.05, f"error {error}"
    assert np.median(half) < 1.0 and half.max() < 3.0, f"half of the joints {half}"
    assert np.median(joints) < 5.0 and joints.max() < 15.0, f"joints {joints}"  # 20 to 40 where none go back to rest


def test_a_frame_of_targets_that_are_no_numbers_is_held_and_the_next_is_followed():
    robot, body = load_robot("hrp2", "floating"), walking_person()[0]
    targets = WholeBodyScaler(body, robot).targets(body)
    solver, dt = WholeBodyRetargeter.following(targets, robot), 1.0 / targets.rate
    frames = solver.inputs(targets)
    solver.start(frames, float(targets.heading[0]))
    for k in range(1, 40):
        solver.step(frames, k, dt)
    before, root, broken = solver.joints.copy(), solver.root.copy(), frames._replace(points=frames.points.copy())
    broken.points[40, 3] = np.nan
    assert np.array_equal(solver.step(broken, 40, dt), before) and solver.used_fallback == HELD
    assert solver.root.isApprox(root, 1e-12)
    for k in range(41, 60):
        assert np.isfinite(solver.step(frames, k, dt)).all() and solver.used_fallback != HELD
    assert solver.error(targets.positions[59]) < 0.05
