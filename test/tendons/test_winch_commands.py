"""Commands of winches as the fields of messages."""

import numpy as np

from humanoid_control.tendons.control.commands import (
    HOLD,
    HYBRID,
    LENGTH,
    OFF,
    PAY_OUT,
    TENSION,
    WinchCommand,
    fields_of,
)


def test_commands_become_one_message_for_each_kind():
    kind = np.array([OFF, HYBRID, TENSION, LENGTH, HOLD, PAY_OUT])
    given = WinchCommand(kind, np.arange(6) / 10, 10.0 * np.arange(6), np.arange(6) / 5)
    hybrid, pulled, servoed = fields_of(given)
    assert hybrid.rows.tolist() == [1, 5] and hybrid.velocity.tolist() == [-0.1, 0.0]
    assert hybrid.effort.tolist() == [10.0, 50.0] and not len(hybrid.position)
    assert pulled.rows.tolist() == [0, 2] and pulled.effort.tolist() == [0.0, 20.0] and not len(pulled.velocity)
    assert servoed.rows.tolist() == [3] and servoed.position.tolist() == [0.6] and servoed.effort.tolist() == [30.0]


def test_a_robot_that_holds_gets_no_message():
    assert fields_of(WinchCommand(np.full(3, HOLD), *np.zeros((3, 3)))) == []
