"""Frames of CiA 402 drives: both ways give the same bytes and numbers, and ours is faster by far."""

import numpy as np
import pytest

from evidence.benchmarks.drivers import can_frames
from test.places import port


def test_canopens_objects_see_the_same_samples():
    _, state, _ = can_frames._process_data(4)
    nodes, network = can_frames._canopen_nodes(4)
    for frame in can_frames._samples(4, 0):
        network.notify(frame.arbitration_id, frame.data, 0.0)
    assert [n.tpdo[1][0].raw for n in nodes] == [can_frames.ENABLED] * 4
    assert [n.tpdo[1][1].raw for n in nodes] == [0, 100, 200, 300]
    np.testing.assert_allclose(state.q, [n.tpdo[1][1].raw * 2 * np.pi / 4096 for n in nodes])


def test_canopens_objects_send_the_same_commands():
    data, _, command = can_frames._process_data(4)
    nodes, _ = can_frames._canopen_nodes(4)
    data.pack(command)
    for k, node in enumerate(nodes):
        node.rpdo[1][0].raw, node.rpdo[1][1].raw = 0x0F, round(command.q[k] * 4096 / (2 * np.pi))
        assert bytes(node.rpdo[1].data) == data.rpdo1[k].tobytes()


@pytest.mark.timed
def test_arrays_are_many_times_faster_than_objects():
    rows = {r["name"]: r["median"] for r in can_frames.frame_times(repeats=300)}
    assert rows["canopen_write_30, times faster"] > 10 and rows["canopen_read_30, times faster"] > 10
    assert rows["canopen_write_30"] < rows["canopen_send_30"] < rows["canopen_write, canopen_30"]


@pytest.mark.timed
def test_a_cycle_with_drives_in_another_process():
    rows = {r["name"]: r["median"] for r in can_frames.pdo_loop(0.5, n=6, rate=50.0, port=port(16))}
    assert 0 < rows["pdo_loop_6 send"] < 5000 and rows["pdo_loop_6 missed"] < 50.0
