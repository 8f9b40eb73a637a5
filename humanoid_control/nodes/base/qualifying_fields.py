"""Rules for message fields that qualify values: frame, time, and whether values were measured.

A field is respected, or irrelevant, or its message is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping

STAMP = "time of the measurement; zero: arrival. Clock offsets are corrected or reported"
SHOWN = "shown as it is: moves nothing"
FRAMES = "unknown frames are rejected by name"
NO_FRAME = "not used: joints have no frame"
NOT_MEASURED = "first value below 0, or NaN: not measured, rejected by name"

QUALIFYING_FIELDS: Mapping[str, Mapping[str, str]] = {
    "builtin_interfaces/Time": {},
    "diagnostic_msgs/DiagnosticArray": {"header": SHOWN},
    "geometry_msgs/PoseArray": {"header": f"footsteps: {FRAMES}; live markers: one frame for all, {STAMP}"},
    "geometry_msgs/PoseStamped": {"header": f"{FRAMES}; targets: {STAMP}; others: the newest counts, for any stamp"},
    "geometry_msgs/Twist": {},
    "geometry_msgs/TwistStamped": {
        "header": "base_footprint or the root link, other frames are rejected by name; so is a stamp older than "
        "`cmd_vel_timeout`",
    },
    "geometry_msgs/WrenchStamped": {
        "header": "a foot: FOOT_sole (also if empty), or a link of its leg, transformed to the sole by measured joints "
        "without the weight of links between; a plate: a frame with a known pose; a push: a link; other frames are "
        "rejected by name. " + STAMP,
    },
    "nav_msgs/Odometry": {"header": SHOWN, "child_frame_id": SHOWN, "covariance": SHOWN},
    "nav_msgs/Path": {"header": f"of each pose, else of the path: {FRAMES}"},
    "sensor_msgs/BatteryState": {"header": SHOWN},
    "sensor_msgs/Imu": {
        "header": "a link of the robot, transformed to the root link by measured joints; other frames "
        f"are rejected by name. {STAMP}",
        "orientation_covariance": NOT_MEASURED,
        "angular_velocity_covariance": NOT_MEASURED,
        "linear_acceleration_covariance": NOT_MEASURED,
    },
    "sensor_msgs/JointState": {
        "header": f"{STAMP}. Commands older than 0.5 s are rejected by name. frame_id is {NO_FRAME}",
        "velocity": "empty: not measured. The walker rejects the message by name; other nodes differentiate positions",
        "effort": "empty: not measured; only tendon tensions are needed, and have their own reader",
    },
    "sensor_msgs/Joy": {"header": "not used: a button is held or not"},
    "std_msgs/Bool": {},
    "std_msgs/Float64": {},
    "std_msgs/Float64MultiArray": {},
    "std_msgs/String": {},
    "tf2_msgs/TFMessage": {
        "header": f"read by tf2; frames that are targets: {FRAMES}, {STAMP}",
        "child_frame_id": "read by tf2; target/NAME is a target where `tf_targets` is set",
    },
    "trajectory_msgs/JointTrajectory": {
        "header": "time at which it begins; zero: now; out of date: rejected by name. frame_id is " + NO_FRAME,
        "velocities": "empty: the segments are lines",
        "accelerations": "empty: the segments are cubics",
        "effort": "not used, reported: trajectories are of positions",
    },
    "visualization_msgs/MarkerArray": {
        "header": f"of each marker: {FRAMES}. {STAMP}",
        "action": "only markers that are added count",
        "frame_locked": "not used: the pose belongs to the stamp",
        "lifetime": "not used: a stream ends by its timeout",
        "texture": "not used: only name, text and pose are read",
    },
}
"""Message type -> fields that qualify a value -> rule."""


def qualifying_fields_table() -> list[str]:
    """Return the lines of a Markdown table of all rules."""
    rows = ["| type | field | rule |", "|---|---|---|"]
    for kind, fields in QUALIFYING_FIELDS.items():
        rows += [f"| {kind} | `{name}` | {rule} |" for name, rule in fields.items()]
    return rows
