"""Good recordings of a run, and the ground that it was on; and what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader, BagWriter, typestore
from humanoid_control.evaluation.reaching import read_reach
from humanoid_control.evaluation.recorded_run import read_run
from humanoid_control.robots import load_robot
from humanoid_control.simulation.contact.ground_recipe import ground_of
from test.good_files.kinds import FileKind, finite
from test.good_files.robots import small_robot


def _heights(folder: Path) -> None:
    heights = 0.01 * np.arange(30.0).reshape(6, 5)
    np.savetxt(folder / "a.txt", heights)
    np.savez(folder / "a.npz", heights=heights, spacing=np.array([0.1, 0.1]), origin=np.array([0.0, -1.0]))


def _bag(folder: Path) -> None:
    """A bag of joint states, commands, targets, goals and diagnostics, a few of each."""
    store = typestore()
    t = {name.rpartition("/")[2]: cls for name, cls in store.types.items() if "/msg/" in name}
    bag = BagWriter(folder / "bag")
    joints = ["l_hip", "l_knee", "r_hip", "r_knee", "neck"]
    for topic in ("/joint_states", "/joint_commands"):
        bag.add_topic(topic, "sensor_msgs/msg/JointState")
    for topic in ("/targets", "/goals"):
        bag.add_topic(topic, "visualization_msgs/msg/MarkerArray", latched=True)
    bag.add_topic("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")

    def put(topic: str, k: int, message: Any) -> None:
        bag.write(topic, 10**9 + 10**7 * k, bytes(store.serialize_cdr(message, message.__msgtype__)))

    def marker(header: Any, name: str) -> Any:
        pose = t["Pose"](t["Point"](0.1, 0.2, 0.3), t["Quaternion"](0.0, 0.0, 0.0, 1.0))
        image = t["CompressedImage"](header, "", np.zeros(0, np.uint8))
        mesh = t["MeshFile"]("", np.zeros(0, np.uint8))
        size, color, stay = t["Vector3"](0.1, 0.1, 0.1), t["ColorRGBA"](1.0, 1.0, 1.0, 1.0), t["Duration"](1, 0)
        return t["Marker"](
            header, name, 1, 2, 0, pose, size, color, stay, False, [], [], "", image, [], "reachable", "", mesh, False
        )

    points = ("l_elbow", "r_elbow", "l_wrist", "r_wrist", "l_gh", "r_gh", "sternum", "l_hand", "r_hand")
    for k in range(8):
        header = t["Header"](t["Time"](1, 10**7 * k), "world")
        q = 0.01 * k + np.arange(5.0) / 10
        for topic in ("/joint_states", "/joint_commands"):
            put(topic, k, t["JointState"](header, joints, q, np.ones(5), np.zeros(0)))
        put("/targets", k, t["MarkerArray"]([marker(header, p) for p in points]))
        if k % 4 == 0:
            put("/goals", k, t["MarkerArray"]([marker(header, p) for p in points]))
            values = [t["KeyValue"]("rate", "100.0"), t["KeyValue"]("late", "3")]
            status = t["DiagnosticStatus"](0, "ik", "ok", "small", values)
            put("/diagnostics", k, t["DiagnosticArray"](header, [status]))
    bag.close()


def _bag_and_robot(folder: Path) -> None:
    small_robot(folder)
    _bag(folder)


def use_heights(path: Path) -> None:
    ground = ground_of(f"file:path={path}")
    finite("height", ground.height(0.1, 0.2))


def use_bag(path: Path) -> None:
    """Read what `humanoid replay` reads, then what the reports do, which may find too little in it."""
    bag = BagReader(path)
    bag.rates()
    for _ in bag.messages(set(bag.topics)):
        pass
    bag.close()
    robot = load_robot(path.parent / "r.urdf")
    for read in (read_run, read_reach):
        try:
            read(path, robot)
        except ConfigError as error:
            if "\n" in str(error):
                raise AssertionError("more than one line") from error


RUN_KINDS: dict[str, FileKind] = {
    "heights": FileKind(_heights, ("a.txt",), "a.txt", use_heights),
    "heights npz": FileKind(_heights, ("a.npz",), "a.npz", use_heights),
    "bag": FileKind(_bag_and_robot, ("bag/bag.mcap", "bag/metadata.yaml"), "bag", use_bag),
}
