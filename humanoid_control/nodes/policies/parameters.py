"""Parameters of the node `policy`."""

from __future__ import annotations

from dataclasses import dataclass

from humanoid_control.nodes.base.parameters import NodeParameters, param

TWISTS = ("Twist", "TwistStamped")
OWN, SECOND = "own", "second"


@dataclass(frozen=True)
class PolicyParameters(NodeParameters):
    """Parameters of the policy."""

    policy: str = param("", "policy file, in a format of `humanoid policy`; required")
    network: str = param("", "ONNX file of the policy, instead of the one in its description")
    second: str = param("", "file of a second policy, for ~/switch; empty: none")
    second_network: str = param("", "ONNX file of the second policy, instead of the one in its description")
    catch: str = param(
        OWN, "controller of a tilting robot: own: the same policy with zero command; second: the second policy",
        choices=(OWN, SECOND),
    )  # fmt: skip
    start: bool = param(False, "start as soon as the sensors are received; false: wait for ~/start")
    stand_in: float = param(
        2.0, "time to move from the present posture to the first posture of the policy", "s", 0.1, 30.0
    )
    standing: bool = param(
        False,
        "start with the robot standing on its feet, held by the gains of its own drives; false: it hangs, "
        "and its gains increase from 0",
    )
    late: float = param(
        0.5, "observation or inference lateness, as a share of a period, after which the robot is lowered", "",
        0.1, 50.0, live=True,
    )  # fmt: skip
    sensor_lost: float = param(
        0.1, "silence of joint_states or imu after which the robot is lowered", "s", 0.01, 10.0, live=True
    )
    cmd_vel_type: str = param("Twist", "message type of cmd_vel", choices=TWISTS)
    cmd_vel_timeout: float = param(0.5, "age after which cmd_vel counts as zero", "s", 0.05, 10.0, live=True)
    reference_timeout: float = param(
        0.25, "reference silence after which a tracker returns to its idle posture", "s", 0.05, 10.0,
        live=True,
    )  # fmt: skip
    body_timeout: float = param(
        0.5, "silence of body_commands after which their joints are held", "s", 0.05, 10.0, live=True
    )
    terms_rate: float = param(20.0, "rate of ~/terms with subscribers; 0: disabled", "Hz", 0.0, 100.0, live=True)
