"""Real ROS 2 messages for bags that tests make."""

import numpy as np
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_KILTED)
MESSAGES = {
    name.rsplit("/", 1)[1]: TYPES.types[name]
    for name in (
        "sensor_msgs/msg/JointState",
        "std_msgs/msg/Header",
        "builtin_interfaces/msg/Time",
        "visualization_msgs/msg/MarkerArray",
        "visualization_msgs/msg/Marker",
        "geometry_msgs/msg/Pose",
        "geometry_msgs/msg/Point",
        "geometry_msgs/msg/Quaternion",
        "geometry_msgs/msg/Vector3",
        "std_msgs/msg/ColorRGBA",
        "builtin_interfaces/msg/Duration",
        "sensor_msgs/msg/CompressedImage",
        "visualization_msgs/msg/MeshFile",
        "visualization_msgs/msg/UVCoordinate",
        "nav_msgs/msg/Odometry",
        "geometry_msgs/msg/PoseWithCovariance",
        "geometry_msgs/msg/TwistWithCovariance",
        "geometry_msgs/msg/Twist",
    )
}


def stamp(ns):
    return MESSAGES["Time"](sec=ns // 10**9, nanosec=ns % 10**9)


def header(ns):
    return MESSAGES["Header"](stamp=stamp(ns), frame_id="world")


def joint_state(ns, names, position=(), velocity=()):
    rows = [np.ascontiguousarray(x, dtype=float) for x in (position, velocity, ())]
    return MESSAGES["JointState"](header(ns), list(names), *rows)


def markers(ns, points, seconds, text=lambda name: "reachable"):
    """Targets, or a goal of its own number, that stay for some seconds; text(name) of each."""
    m = MESSAGES
    out = []
    for name, p in points.items():
        pose = m["Pose"](m["Point"](*map(float, p)), m["Quaternion"](0.0, 0.0, 0.0, 1.0))
        stay = m["Duration"](sec=int(seconds), nanosec=round(1e9 * (seconds % 1)))
        image = m["CompressedImage"](header(0), "", np.zeros(0, np.uint8))
        mesh = m["MeshFile"]("", np.zeros(0, np.uint8))
        out.append(
            m["Marker"](
                header(ns), name, 1, 2, 0, pose, m["Vector3"](0.1, 0.1, 0.1), m["ColorRGBA"](1.0, 1.0, 1.0, 1.0),
                stay, False, [], [], "", image, [], text(name), "", mesh, False,
            )
        )  # fmt: skip
    return m["MarkerArray"](out)


def odometry(ns, pose):
    """Pose (7,) of a root: x y z, quaternion x y z w."""
    m = MESSAGES
    at = m["Pose"](m["Point"](*map(float, pose[:3])), m["Quaternion"](*map(float, pose[3:])))
    still = m["Twist"](m["Vector3"](0.0, 0.0, 0.0), m["Vector3"](0.0, 0.0, 0.0))
    covariance = np.zeros(36)
    return m["Odometry"](
        header(ns), "root", m["PoseWithCovariance"](at, covariance), m["TwistWithCovariance"](still, covariance)
    )


def put(bag, topic, ns, message):
    """Append a message to a BagWriter."""
    bag.write(topic, ns, bytes(TYPES.serialize_cdr(message, message.__msgtype__)))
