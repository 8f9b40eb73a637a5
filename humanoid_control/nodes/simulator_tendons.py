"""The tendons of the simulated robot: their lengths and tensions as measured, published as `tendon_states`."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from humanoid_control.errors import HumanoidError, RobotError
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.messages import fill_joint_state, joint_state
from humanoid_control.nodes.qos import STREAM_OUT
from humanoid_control.nodes.simulator_parameters import SimulatorParameters, imperfection_of
from humanoid_control.robots.tendon_file import WANTED
from humanoid_control.simulation import Engine
from humanoid_control.simulation.sensors.tendon_sensor import TendonSensor, parse_faults


class SimulatorTendons:
    """Publisher and sensor of a simulated robot's tendons.

    Messages are sensor_msgs/JointState: name, position = length of the whole way [m], effort = tension [N].
    """

    def __init__(self, node: Any, engine: Engine, p: SimulatorParameters) -> None:
        """Make them, and load what they need.

        Raises:
            HumanoidError: the robot has no tendons, or a parameter makes no sense.
        """
        states = engine.tendon_states()
        if states is None:
            raise RobotError(f"{engine.robot.name} has no tendons: {WANTED}, or set tendons to false")
        self.node, self.engine, self.every = node, engine, p.tendon_every
        period, wrong = p.tendon_every / p.rate, imperfection_of(p)
        self.sensor = TendonSensor(
            states.names, wrong, p.seed, p.tendon_stiffness, p.tendon_drift, p.tendon_spikes, period
        )
        self.sensor.faults = parse_faults(p.tendon_faults, states.names)
        self._faults = p.tendon_faults
        self._names, self._message = states.names, joint_state(states.names)
        self._publisher = node.create_publisher(JointState, "tendon_states", STREAM_OUT)
        self.restart()

    def restart(self) -> None:
        """Measure everything anew, with the same random numbers."""
        self._count = 0
        self.sensor.reset()

    def publish(self, stamp: Time) -> None:
        """Measure and publish, where it is due; called at every joint state."""
        self._count += 1
        if (self._count - 1) % self.every:
            return
        self._look_at_faults()
        states = self.engine.tendon_states()
        assert states is not None
        read = self.sensor.read(self.engine.time, states)
        if read is None:
            return
        if read.names != self._names:
            self._names, self._message = read.names, joint_state(read.names)
        self._publisher.publish(fill_joint_state(self._message, stamp, read.lengths, effort=read.tensions))

    def repeat(self, stamp: Time) -> None:
        """The last measurement again, while time stands still."""
        if len(self._message.position):
            self._message.header.stamp = stamp
            self._publisher.publish(self._message)

    def _look_at_faults(self) -> None:
        """Take the live parameter's new faults; an error in it is said, and changes nothing."""
        text = self.node.params.tendon_faults
        if text == self._faults:
            return
        self._faults = text
        try:
            self.sensor.faults = parse_faults(text, self.sensor.names)
            self.node.health.clear("tendon_faults")
        except HumanoidError as e:
            self.node.health.report("tendon_faults", Level.WARN, str(e))
