"""Parameters of the node `policy`."""

from __future__ import annotations

from dataclasses import dataclass

from humanoid_control.nodes.base.parameters import NodeParameters, param

TWISTS = ("Twist", "TwistStamped")
OWN, SECOND = "own", "second"


@dataclass(frozen=True)
class PolicyParameters(NodeParameters):
    """Parameters of the policy."""

    policy: str = param("", "file of the policy, as `humanoid policy` reads it; must be given")
    network: str = param("", "ONNX file of it, instead of the one that a description names")
    second: str = param("", "file of another policy, to which ~/switch hands over; empty: none")
    second_network: str = param("", "ONNX file of the second one, instead of the one that a description names")
    catch: str = param(
        OWN, "controller of a tilting robot: own: the same policy without a command; or the second one",
        choices=(OWN, SECOND),
    )  # fmt: skip
    start: bool = param(False, "begin by itself once the sensors are heard; false: wait for ~/start")
    stand_in: float = param(2.0, "time from where the robot is to the first posture of the policy", "s", 0.1, 30.0)
    standing: bool = param(
        False,
        "the robot stands on its feet meanwhile, held by the gains of its own drives; false: it hangs, and gets gains "
        "that grow from 0",
    )
    late: float = param(
        0.5, "share of a period by which an observation or an inference may be late before the robot is let down", "",
        0.1, 50.0, live=True,
    )  # fmt: skip
    sensor_lost: float = param(
        0.1, "silence of joint_states or imu after which the robot is let down", "s", 0.01, 10.0, live=True
    )
    cmd_vel_type: str = param("Twist", "message of cmd_vel", choices=TWISTS)
    cmd_vel_timeout: float = param(0.5, "age from which cmd_vel counts as zero", "s", 0.05, 10.0, live=True)
    reference_timeout: float = param(
        0.25, "silence of the reference after which a tracker is led back to its idle posture", "s", 0.05, 10.0,
        live=True,
    )  # fmt: skip
    body_timeout: float = param(
        0.5, "silence of body_commands after which the joints that they moved are held", "s", 0.05, 10.0, live=True
    )
    terms_rate: float = param(20.0, "rate of ~/terms with subscribers; 0: none", "Hz", 0.0, 100.0, live=True)
