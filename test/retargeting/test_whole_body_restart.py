"""A clip that is begun at any of its frames: the posture is soon that of the clip begun at its first."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler, at_solving_rate
from humanoid_control.robots import load_robot

STARTS, SETTLED, NEAR = 8, 0.5, 1.0  # beginnings a clip, [s] after which postures are compared, [deg]
CLIPS = ("dance_markers/dance1.trc", "dance_markers/walk1.trc", "cmu_bvh/05_02.bvh")


def departures(robot, body):
    """(STARTS,) largest difference of a joint to the clip begun at its first frame, SETTLED after each start [deg]."""
    body, _, _ = at_solving_rate(body)
    scaler = WholeBodyScaler(body, robot)
    whole = scaler.targets(body)
    forearms = whole.forearms is not None
    known = WholeBodyRetargeter(robot, forearms=forearms).solve(whole).positions
    n, found = round(SETTLED * body.rate), []
    for k in np.linspace(0.05 * len(whole), len(whole) - n - 2, STARTS).astype(int):
        part = replace(body, positions=body.positions[k : k + n + 1].copy(), missing=body.missing.copy())
        late = WholeBodyRetargeter(robot, forearms=forearms).solve(scaler.targets(part)).positions
        found.append(np.degrees(np.abs(late[n] - known[k + n]).max()))
    return np.array(found)


@pytest.mark.xfail(
    reason="redundant arms and feet that were caught elsewhere keep the posture of the start", strict=False
)
@pytest.mark.parametrize("name", ["lola", "hrp2", "wabian2"])
@pytest.mark.parametrize("clip", CLIPS)
def test_a_clip_begun_at_any_frame_comes_to_the_same_posture(name, clip, mocap):
    found = departures(load_robot(name, "floating"), load_body_points(mocap(clip)))
    assert found.max() < NEAR, f"median {np.median(found):.1f}, most {found.max():.1f} deg"
