"""Which ticks of the streamer step the solver of joints, without any node running."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.estimation import Verdict
from humanoid_control.nodes.trajectory_streamer import TrajectoryStreamer


def test_a_frame_between_two_ticks_sends_its_targets_and_leaves_the_joints_to_the_next_tick():
    """The solver keeps speeds by the node's own period: a step more would make the robot faster than allowed."""
    streamer, sent, solved = TrajectoryStreamer.__new__(TrajectoryStreamer), [], []
    streamer.source = SimpleNamespace(advance=lambda now: ("points", now), current="current")
    streamer.reference = SimpleNamespace(started=True, step=solved.append, verdict=lambda now: Verdict.MOVE)
    streamer.publish = lambda points, stamp: sent.append(points)
    for ticks, frames in ((1, 0), (1, 3), (2, 1)):
        sent.clear(), solved.clear()
        for _ in range(frames):
            streamer.run_extra_tick()
        for k in range(ticks):
            streamer.tick(float(k))
        assert (len(sent), len(solved)) == (ticks + frames, ticks)
