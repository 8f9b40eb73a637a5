"""Peers whose wheels pin a pinocchio of their own: a folder of packages, and a process that knows nothing else.

TSID and crocoddyl are installed together into one folder, since their wheels agree on a pinocchio that cannot be loaded
beside another one. A peer's file is also the script that runs in the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

if TYPE_CHECKING:
    from humanoid_control.performing import DynamicMotion
    from humanoid_control.robots import Robot

VARIABLE = "HUMANOID_PEERS"
INSIDE = "cmeel.prefix/lib/python{}.{}/site-packages"  # where these wheels keep their modules
TIMEOUT = 20.0  # [s] for the process to end
SOLES = ("left_sole", "right_sole")
ARRAYS = (
    *("q", "v", "a", "center", "center_velocity", "center_acceleration", "momentum", "momentum_rate", "torque"),
    *("stands", "toe_only", "sole_rotation", "sole_position", "sole_twist", "sole_acceleration"),
)  # of the motion


def peers_folder() -> Path:
    """The folder of the packages: `HUMANOID_PEERS`, or `peers` in the environment."""
    return Path(os.environ.get(VARIABLE) or Path(sys.prefix) / "peers")


class PeerProcess:
    """A peer at work on one motion of a robot.

    Attributes:
        version: of the peer, and of the pinocchio that it brings. at: folder that both sides see.
    """

    def __init__(
        self, name: str, script: str, robot: Robot, motion: DynamicMotion, options: dict[str, Any] | None = None
    ) -> None:
        """Write the problem, and start the process.

        Args:
            name: of the package. script: file that is run. robot, motion: the problem. options: more of it.

        Raises:
            ImportError: the package is not installed, or does not load.
        """
        self.name, folder = name, peers_folder()
        inside = folder / INSIDE.format(*sys.version_info[:2])
        if not (inside / name).exists():
            raise ImportError(f"{name} is not in {folder} (`make peers` installs it there)")
        self._files = tempfile.TemporaryDirectory()
        self.at = Path(self._files.name)
        (self.at / "robot.urdf").write_text(urdf_with_soles(robot))
        (self.at / "problem.json").write_text(json.dumps(_problem(robot) | (options or {})))
        arrays = {key: getattr(motion, key) for key in ARRAYS} | {"rate": np.array(motion.rate)}
        np.savez(self.at / "motion.npz", **arrays)
        unwanted = ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
        environment = {k: v for k, v in os.environ.items() if k not in unwanted}
        environment |= {"PYTHONPATH": f"{folder}{os.pathsep}{inside}", "OMP_NUM_THREADS": "1"}
        self._said = self.at / "said.txt"
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                # -S: without this environment's own packages
                [sys.executable, "-S", "-c", f"import runpy; runpy.run_path({script!r}, run_name='__main__')"],
                cwd=self.at,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )
        self.version = str(self.line()["version"])

    def line(self) -> dict[str, Any]:
        """The next line that the process prints.

        Raises:
            ImportError: the process ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._raise()
        return dict(json.loads(line))

    def ask(self, values: np.ndarray, size: int) -> np.ndarray:
        """Send numbers, and wait for `size` numbers.

        Raises:
            ImportError: the process ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(values.tobytes())
            self._process.stdin.flush()
        answer = self._process.stdout.read(8 * size)
        if len(answer) < 8 * size:
            self._raise()
        return np.frombuffer(answer)

    def _raise(self) -> None:
        said = self._said.read_text().strip().splitlines() or ["it ended without output"]
        self.close()
        raise ImportError(f"{self.name} does not run: {said[-1]}")

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._files.cleanup()


def urdf_with_soles(robot: Robot) -> str:
    """The robot's URDF with a link at each sole and at the middle of its toe edge, and without any geometry."""
    import pinocchio as pin

    from humanoid_control.performing.source_motion import RigidSoles

    soles = RigidSoles.of(robot)
    document = ElementTree.fromstring(robot.urdf)
    children = {j.get("name"): j.find("child") for j in document.findall("joint")}
    for link in document.findall("link"):
        for kind in ("visual", "collision"):
            for element in link.findall(kind):
                link.remove(element)
    for f, name in enumerate(SOLES):
        joint = robot.model.names[soles.joints[f]]
        child = children[joint]
        assert child is not None
        X = soles.X_joint_sole[f]
        places = {name: X, f"{name}_toe": X * _at(soles.corners[f, 2:].mean(axis=0))}
        for link_name, place in places.items():
            ElementTree.SubElement(document, "link", name=link_name)
            fixed = ElementTree.SubElement(document, "joint", name=f"{link_name}_fixed", type="fixed")
            ElementTree.SubElement(fixed, "parent", link=str(child.get("link")))
            ElementTree.SubElement(fixed, "child", link=link_name)
            rpy = pin.rpy.matrixToRpy(place.rotation)
            ElementTree.SubElement(fixed, "origin", xyz=_text(place.translation), rpy=_text(rpy))
    return ElementTree.tostring(document, encoding="unicode")


def _at(place: np.ndarray) -> Any:
    import pinocchio as pin

    return pin.SE3(np.eye(3), place)


def _text(values: np.ndarray) -> str:
    return " ".join(f"{v:.9g}" for v in values)


def _problem(robot: Robot) -> dict[str, Any]:
    from humanoid_control.performing.source_motion import RigidSoles
    from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT

    return {
        "joints": list(robot.joint_names),
        "root": robot.root_link,
        "mass": robot.mass,
        "effort": robot.effort.tolist(),
        "rotor": (ROTOR_PER_EFFORT * robot.effort).tolist(),
        "corners": RigidSoles.of(robot).corners.tolist(),
    }
