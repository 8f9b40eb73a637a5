"""Environment of a ROS 2 process, set before rclpy is imported: library path of the wheels, ament prefix, threads."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.paths import PACKAGE

GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


def prepare() -> None:
    """Call before importing rclpy or numpy; does nothing the second time.

    * The ROS wheels restart the interpreter once with their libraries on LD_LIBRARY_PATH and leave a guard variable.
      Where the guard was inherited but the path was not (sudo, env filters, a parent in another environment), the
      imports would fail: restart again.
    * A pip environment is not an ament prefix by itself: add it, so that the package's share directory is found.
    * Small matrices are slower on several BLAS threads than on one.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lib = Path(sys.prefix) / "lib"
    path = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if (lib / "librcl.so").exists() and os.environ.get(GUARD) and str(lib) not in path:
        env = {k: v for k, v in os.environ.items() if k != GUARD}
        os.execve(sys.executable, sys.orig_argv, env)
    prefix = Path(sys.prefix)
    if (prefix / "share/ament_index/resource_index/packages" / PACKAGE).exists():
        known = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        if str(prefix) not in known:
            os.environ["AMENT_PREFIX_PATH"] = os.pathsep.join([*known, str(prefix)])


def require_ros() -> None:
    """Raise a clear error where ROS 2 is missing.

    Raises:
        EnvironmentProblem: rclpy cannot be found.
    """
    if importlib.util.find_spec("rclpy") is None:
        raise EnvironmentProblem(
            "ROS 2 is missing: source a ROS 2 installation (Jazzy or Kilted), or on x86_64 Linux run `make setup`"
        )


def ros_flavour() -> str:
    """'wheels' where ROS 2 comes from this Python environment, 'installed' for a sourced ROS, 'none' without."""
    if (Path(sys.prefix) / "lib" / "librcl.so").exists():
        return "wheels"
    return "installed" if importlib.util.find_spec("rclpy") is not None else "none"
