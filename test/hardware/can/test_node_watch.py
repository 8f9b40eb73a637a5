"""Silence of CANopen nodes on a clock of the test: a pause of this program is no silence of theirs."""

import can
import numpy as np
import pytest

from humanoid_control.hardware.can.node_watch import NodeWatch

PERIOD, CYCLE = 0.1, 0.005
RUNNING = np.zeros(2, dtype=bool)


class Nodes:
    """Two nodes and the watch over them, cycled at 200 Hz from 10 s on."""

    def __init__(self):
        self.watch, self.now = NodeWatch(("a", "b"), (1, 2), PERIOD), 10.0
        self.watch.begin((1, 2), self.now)

    def beat(self, *ids):
        for i in ids:
            self.watch.take(can.Message(arbitration_id=0x700 + i, data=b"\x05", is_extended_id=False))

    def cycle(self, seconds, *ids):
        """Cycle for some time, with a heartbeat of some nodes every period."""
        for k in range(1, round(seconds / CYCLE) + 1):
            self.now += CYCLE
            if k % round(PERIOD / CYCLE) == 0:
                self.beat(*ids)
            self.watch.update(RUNNING, self.now, False)


@pytest.fixture
def nodes():
    return Nodes()


def test_a_node_is_lost_after_three_heartbeats_that_are_missed(nodes):
    nodes.cycle(1.0, 1, 2)
    assert nodes.watch.trouble() == ""
    nodes.cycle(0.25, 1)
    assert nodes.watch.trouble() == ""
    nodes.cycle(0.15, 1)
    assert nodes.watch.trouble().startswith("b (id 2) lost: no heartbeat for 0.3")
    nodes.cycle(0.15, 1, 2)
    assert nodes.watch.trouble() == ""


@pytest.mark.parametrize("queued", [True, False])
def test_a_pause_of_this_program_is_no_silence_of_the_nodes(nodes, queued):
    """Heartbeats of the pause lie in the queue, or the queue was too short for them."""
    nodes.cycle(1.0, 1, 2)
    nodes.now += 0.8
    if queued:
        nodes.beat(*(1, 2) * 8)
    nodes.watch.update(RUNNING, nodes.now, False)
    assert nodes.watch.trouble() == ""
    nodes.cycle(0.25, 1)
    assert nodes.watch.trouble().startswith("b (id 2) lost") is not queued, "one heartbeat of the pause counts"
    nodes.cycle(0.15, 1)
    assert nodes.watch.trouble().startswith("b (id 2) lost")


def test_pauses_in_every_cycle_hide_no_silence_for_ever(nodes):
    nodes.cycle(0.5, 1, 2)
    for _ in range(4):
        nodes.now += 0.5
        nodes.beat(1)
        nodes.watch.update(RUNNING, nodes.now, False)
    assert nodes.watch.trouble().startswith("b (id 2) lost")
