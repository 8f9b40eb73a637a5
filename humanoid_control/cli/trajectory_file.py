"""Joint trajectories as files: CSV, NPZ, or a bag of joint commands."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np

from humanoid_control.imitation import JointTrajectory
from humanoid_control.whole_files import whole_file

FORMATS = (".csv", ".npz", ".mcap")


def write_trajectory(path: Path, trajectory: JointTrajectory, targets: np.ndarray) -> None:
    """Write a trajectory in the format of the file's ending; the file appears whole or not at all.

    Args:
        path: .csv, .npz or .mcap.
        trajectory: what to write.
        targets: (T, 7, 3) what it was solved for, kept in the NPZ [m].

    Raises:
        ConfigError: it cannot be written.
    """
    writer = {".csv": _csv, ".npz": _npz, ".mcap": _mcap}[path.suffix]
    with whole_file(path) as part:
        writer(part, trajectory, targets)


def _csv(path: Path, t: JointTrajectory, _: np.ndarray) -> None:
    with path.open("w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["time", *t.joint_names])
        for k, q in enumerate(t.positions):
            rows.writerow([f"{k / t.rate:.6f}", *(f"{v:.6f}" for v in q)])


def _npz(path: Path, t: JointTrajectory, targets: np.ndarray) -> None:
    np.savez_compressed(
        path,
        joint_names=np.array(t.joint_names),
        rate=t.rate,
        positions=t.positions,
        velocities=t.velocities,
        targets=targets,
        errors=t.errors,
    )


def _mcap(path: Path, t: JointTrajectory, _: np.ndarray) -> None:
    from humanoid_control.cli.bag import BagWriter, typestore

    types = typestore()
    JointState, Header = types.types["sensor_msgs/msg/JointState"], types.types["std_msgs/msg/Header"]
    Time = types.types["builtin_interfaces/msg/Time"]
    folder = path.with_suffix("")
    bag = BagWriter(folder)
    bag.add_topic("/joint_commands", "sensor_msgs/msg/JointState")
    names, none = list(t.joint_names), np.zeros(0)
    for k, (q, v) in enumerate(zip(t.positions, t.velocities, strict=True)):
        ns = round(1e9 * k / t.rate)
        header = Header(stamp=Time(sec=ns // 10**9, nanosec=ns % 10**9), frame_id="")
        message = JointState(header=header, name=names, position=q, velocity=v, effort=none)
        data = types.serialize_cdr(message, "sensor_msgs/msg/JointState")
        bag.write("/joint_commands", ns, bytes(data))
    bag.close()
    shutil.move(folder / f"{folder.name}.mcap", path)
