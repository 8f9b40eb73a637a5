"""Parameters of the node `state_estimator`."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

from humanoid_control.nodes.base.parameters import WorldParameters, param

SOURCES = ("joints", "tendons")
# Copies of OBSERVATIONS (`tendons.estimator.settings`) and GROUPINGS (`robots.tendons`): encoders need neither module.
MODES = ("absolute", "r1", "r2", "r3", "literal")
GROUPS = ("file", "completed", "whole", "automatic")


@dataclass(frozen=True)
class StateEstimatorParameters(WorldParameters):
    """Parameters of the state estimator."""

    rate: float = param(250.0, "rate of the estimate", "Hz", 10.0, 1000.0)
    bandwidth: float = param(30.0, "bandwidth of the joint filter", "Hz", 0.5, 200.0, live=True)
    timeout: float = param(
        0.2, "silence of the sensors, or of a joint, after which nothing of it is published", "s", 0.01, 10.0, live=True
    )
    source: str = param("joints", "joints: encoders of the joints; tendons: lengths of tendons", choices=SOURCES)
    mode: str = param(
        "r2",
        "observation of the tendons: absolute needs lengths zeroed at a known posture, the others only their changes "
        "(docs/tendons.md)",
        choices=MODES,
    )
    side_by_side: bool = param(
        False, "run an absolute and a relative estimator together; ~/jae_error is how they differ"
    )
    compare: str = param(
        "", "topic of true joint states, of a simulator or encoders, that the angles from tendons are compared with"
    )
    groups: str = param("completed", "how the tendons' joints are grouped (docs/tendons.md)", choices=GROUPS)
    body_image: str = param("", "learnt body image: file of a tendon controller, or 'live': its topic; empty: none")
    mapping: str = param("", "file of a fitted joint-muscle mapping for one of the groups; empty: the geometry")
    lengths: str = param(
        "path",
        "path: lengths of the whole paths, as the geometry has them; counted: changes since some moment",
        choices=("path", "counted"),
    )
    length_noise: float = param(5e-4, "standard deviation of a measured length, model error included", "m", 1e-6, 0.1)
    step_noise: float = param(
        round(radians(0.2), 6),
        "standard deviation of the motion of an angle in a step beyond the tendon lengths",
        "rad",
        1e-6,
        1.0,
    )
    limits: str = param(
        "soft", "joint limits: pull the estimate back, clip it, or let it be", choices=("soft", "hard", "off")
    )
    gate: float = param(
        6.0, "innovation at which a tendon is left out, in standard deviations; 0: none is", "", 0.0, 100.0
    )
    slack_tension: float = param(
        1.0, "tension below which a tendon is left out, where tensions are measured", "N", 0.0, 1e4
    )
    tendon_stiffness: float = param(
        0.0, "stiffness of each wire; its stretch is added to the measured length; 0: no stretch", "N/m", 0.0, 1e9
    )
    tendon_rate: float = param(250.0, "rate at which tendon_states should come", "Hz", 1.0, 5000.0)
    start_posture: str = param(
        "neutral", "where the estimate begins: a posture of the robot, or angles [rad] as 'l_elbow=0.5,l_wrist=0'"
    )
    zero_posture: str = param(
        "neutral", "where the robot stands when ~/zero is called, as start_posture; or 'estimate'", live=True
    )
    colour: str = param(
        "innovation",
        "of tendon_markers: innovation, green where a length agrees with the others to red; tension, blue at the "
        "least to red at the greatest, grey where it is slack",
        choices=("innovation", "tension"),
        live=True,
    )
    markers_rate: float = param(10.0, "rate of tendon_markers with subscribers; 0: none", "Hz", 0.0, 100.0, live=True)
