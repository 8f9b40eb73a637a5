"""Topic `joint_gains`: gains of the `joint_commands` with equal stamp.

Messages are sensor_msgs/JointState: name, position = kp [N m/rad], velocity = kd [N m s/rad].
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sensor_msgs.msg import JointState

from humanoid_control.nodes.base.command_owner import COMMANDS_IN
from humanoid_control.nodes.base.health import Level
from humanoid_control.nodes.base.tick_node import TickNode

GAINS = "joint_gains"
KEPT = 16  # stored gains whose command has not arrived
PATIENCE = 0.1  # [s] for which commands wait for gains before a report

Take = Callable[[JointState, JointState | None], None]


class GainedCommands:
    """Pairing of commands with gains of equal stamp, in any order of arrival.

    Commands of a publisher without gains pass at once; others wait, because targets without gains would be wrong.
    """

    def __init__(self, node: TickNode, take: Take) -> None:
        """Subscribe to gains; `command` takes commands.

        Args:
            take: called with a command and its gains, or None.
        """
        self._node, self._take = node, take
        node.listen(JointState, GAINS, self._on_gains, COMMANDS_IN)
        node.reports.append(self._report)
        self.restart()

    def restart(self) -> None:
        self._gains: dict[tuple[int, int], JointState] = {}
        self._waiting: JointState | None = None
        self._publisher, self._waits_for, self._gained = b"", b"", 0.0

    def command(self, m: JointState, publisher: bytes) -> None:
        """Accept a command of a publisher identity (`command_owner.gid_of`)."""
        self._waiting, self._publisher = None, publisher
        stamp = (m.header.stamp.sec, m.header.stamp.nanosec)
        if (gains := self._gains.pop(stamp, None)) is not None:
            self._hand_over(m, gains)
        elif publisher and publisher == self._waits_for:
            self._waiting = m
        else:
            self._take(m, None)

    def _hand_over(self, m: JointState, gains: JointState) -> None:
        self._waiting, self._waits_for, self._gained = None, self._publisher, time.monotonic()
        self._take(m, gains)

    def _on_gains(self, gains: JointState) -> None:
        stamp, waiting = (gains.header.stamp.sec, gains.header.stamp.nanosec), self._waiting
        if waiting is not None and stamp == (waiting.header.stamp.sec, waiting.header.stamp.nanosec):
            self._hand_over(waiting, gains)
            return
        if any(stamp):  # unstamped gains belong to no command
            self._gains[stamp] = gains
            while len(self._gains) > KEPT:
                del self._gains[next(iter(self._gains))]

    def _report(self, now: float) -> None:
        late = self._waiting is not None and now - self._gained > PATIENCE
        text = f"joint_commands without the {GAINS} of their stamp: ignored"
        self._node.health.check("gains", late, Level.WARN, text)


def gains_of(m: JointState) -> tuple[list[str], Any, Any]:
    """Return names, kp and kd of a message."""
    return list(m.name), m.position, m.velocity
