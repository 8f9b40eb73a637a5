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

    rate: float = param(250.0, "estimation rate", "Hz", 10.0, 1000.0)
    bandwidth: float = param(30.0, "bandwidth of the joint filter", "Hz", 0.5, 200.0, live=True)
    timeout: float = param(
        0.2,
        "silence of the sensors, or of a joint, after which its estimate is not published",
        "s",
        0.01,
        10.0,
        live=True,
    )
    source: str = param("joints", "joints: joint encoders; tendons: tendon lengths", choices=SOURCES)
    mode: str = param(
        "r2",
        "tendon observation: absolute needs lengths zeroed at a known posture, the others only length "
        "changes (docs/tendons.md)",
        choices=MODES,
    )
    side_by_side: bool = param(
        False, "run an absolute and a relative estimator in parallel; ~/jae_error is their difference"
    )
    compare: str = param(
        "", "topic of true joint states, from a simulator or encoders, to compare with the tendon estimates"
    )
    groups: str = param("completed", "grouping of the tendon-driven joints (docs/tendons.md)", choices=GROUPS)
    body_image: str = param("", "learnt body image: file of a tendon controller, or 'live': its topic; empty: none")
    mapping: str = param("", "file of a fitted joint-muscle mapping of one group; empty: the geometry")
    lengths: str = param(
        "path",
        "path: total path lengths, as in the geometry; counted: changes since an unknown moment",
        choices=("path", "counted"),
    )
    length_noise: float = param(5e-4, "standard deviation of a measured length, including model error", "m", 1e-6, 0.1)
    step_noise: float = param(
        round(radians(0.2), 6),
        "process noise of an angle per step, in addition to the tendon length changes",
        "rad",
        1e-6,
        1.0,
    )
    limits: str = param(
        "soft", "joint limits: pull the estimate back, clip it, or ignore them", choices=("soft", "hard", "off")
    )
    gate: float = param(
        6.0, "innovation above which a tendon is excluded, in standard deviations; 0: never", "", 0.0, 100.0
    )
    slack_tension: float = param(
        1.0, "tension below which a tendon is excluded, if tensions are measured", "N", 0.0, 1e4
    )
    tendon_stiffness: float = param(
        0.0, "stiffness of each wire, whose stretch is added to the measured length; 0: no stretch", "N/m", 0.0, 1e9
    )
    tendon_rate: float = param(250.0, "expected rate of tendon_states", "Hz", 1.0, 5000.0)
    start_posture: str = param(
        "neutral", "initial estimate: a posture of the robot, or angles [rad] such as 'l_elbow=0.5,l_wrist=0'"
    )
    zero_posture: str = param(
        "neutral", "posture of the robot during ~/zero, same format as start_posture; or 'estimate'", live=True
    )
    colour: str = param(
        "innovation",
        "colour of tendon_markers: innovation (green: consistent, red: contradicting) or tension (blue: "
        "lowest, red: highest, grey: slack)",
        choices=("innovation", "tension"),
        live=True,
    )
    markers_rate: float = param(
        10.0, "rate of tendon_markers with subscribers; 0: disabled", "Hz", 0.0, 100.0, live=True
    )
