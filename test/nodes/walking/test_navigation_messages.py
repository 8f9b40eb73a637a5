"""A walker as Nav2 meets it, over DDS: brought up by a manager of lifecycles, in simulated time, by Nav2's messages."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Polygon, TwistStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from humanoid_control.nodes.base.messages import LATCHED, seconds

pytestmark = [pytest.mark.ros, pytest.mark.patient]
QUIET = ("robot:=lola", "missed_warn:=100.0", "missed_error:=100.0")
PERIOD = 0.05  # [s] of Nav2's controller
FORWARD = 0.2  # [m/s]


def transition(graph, name):
    request = ChangeState.Request(transition=Transition(id=getattr(Transition, f"TRANSITION_{name}")))
    assert graph.call(ChangeState, "walker/change_state", request).success, name
    return graph.call(GetState, "walker/get_state").current_state.id


@pytest.mark.nightly
def test_a_manager_brings_the_walker_up_and_stamped_velocities_of_simulated_time_drive_it(graph):
    slow = ("real_time_factor:=0.3", "stamp:=sim")  # walking in real time needs a machine of its own
    graph.start("simulator", "base:=floating", "rate:=250.0", "sensor_every:=1", *slow, *QUIET)
    nav2 = ("autostart:=false", "use_sim_time:=true", "cmd_vel_type:=TwistStamped")
    graph.start("walker", *nav2, *QUIET)
    state = graph.listen(String, "walking/state", LATCHED)
    odom, outline = graph.listen(Odometry, "odom", 200), graph.listen(Polygon, "footprint")
    clock = graph.listen(Clock, "/clock", 1)
    assert transition(graph, "CONFIGURE") == State.PRIMARY_STATE_INACTIVE
    assert transition(graph, "ACTIVATE") == State.PRIMARY_STATE_ACTIVE
    velocity = graph.publisher(TwistStamped, "cmd_vel")
    graph.until(lambda: state and state[-1].data == "STAND" and odom and clock and outline, "a robot that stands")
    assert seconds(odom[-1].header.stamp) < 1e6, "simulated time"
    sent = [-np.inf]

    def drive(old=0.0, x=FORWARD):
        """As Nav2's controller at 20 Hz, by the simulator's clock."""
        now = seconds(clock[-1].clock)
        if now - sent[-1] >= PERIOD:
            sent.append(now)
            m = TwistStamped()
            m.header.frame_id = "base_footprint"
            at = max(now - old, 0.001)
            m.header.stamp.sec, m.header.stamp.nanosec = int(at), int(1e9 * (at % 1))
            m.twist.linear.x = x
            velocity.publish(m)
        del clock[:-1]

    begin = odom[-1].pose.pose.position.x
    graph.until(lambda: odom[-1].pose.pose.position.x > begin + 0.15, "0.15 m walked", meanwhile=drive)
    rate = len(sent) / (sent[-1] - sent[1])
    assert 10.0 < rate < 21.0, f"{rate:.1f} messages a simulated second"
    variance = [m.pose.covariance[0] for m in odom]
    assert variance[-1] > variance[0] > 0.0, "position drifts with the way"
    assert min(np.diag(np.reshape(odom[-1].pose.covariance, (6, 6)))) > 0.0
    assert min(np.diag(np.reshape(odom[-1].twist.covariance, (6, 6)))) > 0.0

    graph.until_said("walker", "s old by its stamp: rejected", meanwhile=lambda: drive(old=2.0))
    graph.until(lambda: state[-1].data == "STAND", "at rest without valid velocities", meanwhile=lambda: drive(old=2.0))
    assert transition(graph, "DEACTIVATE") == State.PRIMARY_STATE_INACTIVE
    assert transition(graph, "CLEANUP") == State.PRIMARY_STATE_UNCONFIGURED
