"""Environment of a ROS 2 process, set before rclpy is imported: libraries, ament prefix, threads, discovery, log."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.paths import PACKAGE, home_dir, share_dir

LONGEST_NAMESPACE = 150  # names of topics may have 255 characters
NAMESPACE = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*/?")
GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
DISCOVERY = "ROS_AUTOMATIC_DISCOVERY_RANGE"
BY_PROFILE = "SYSTEM_DEFAULT"  # range that leaves discovery to a profile; LOCALHOST would add shared memory to it
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
MIDDLEWARE, FAST_DDS = "RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"
SAID = (DISCOVERY, "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS")  # one of these is a word of the user's
PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")  # so is one of these,
PROFILES_HERE = ("DEFAULT_FASTDDS_PROFILES.xml", "DEFAULT_FASTRTPS_PROFILES.xml")  # or of these files
ONE_HOST, SUPERVISED = "one_host.xml", "supervised.xml"  # the package's own, in `config`


def check_namespace(name: str, text: str) -> None:
    """Refuse a namespace that ROS would refuse after the nodes were started.

    Args:
        name: of the option. text: its value; empty and / are no namespace.

    Raises:
        ConfigError: it is not one.
    """
    if text not in ("", "/") and not (NAMESPACE.fullmatch(text) and len(text) <= LONGEST_NAMESPACE):
        raise ConfigError(f"{name} must be letters, digits and _, not a digit first, parts divided by /, got '{text}'")


def prepare() -> None:
    """Call before importing rclpy or numpy; does nothing the second time.

    * The ROS wheels restart the interpreter once with their libraries on LD_LIBRARY_PATH and leave a guard variable.
      Where the guard was inherited but the path was not (sudo, env filters, a parent in another environment), the
      imports would fail: restart again.
    * A pip environment is not an ament prefix by itself: add it, so that the package's share directory is found.
    * Small matrices are slower on several BLAS threads than on one.
    * Discovery and the folder of the logs, as `choose_discovery` and `choose_log_folder` say.
    """
    choose_discovery(os.environ)
    choose_log_folder(os.environ)
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


def choose_discovery(environment: MutableMapping[str, str], supervised: bool | None = None) -> None:
    """Keep nodes to this machine where ROS comes from wheels and the user has said nothing about discovery.

    Two who try the package in one network would otherwise command each other's robots. Nodes of one machine talk as
    `config/one_host.xml` says, those that a supervisor starts again when they hang as `config/supervised.xml` does,
    unless the user has profiles or a middleware of his own; a user who says LOCALHOST means the same. Whoever sources
    an installed ROS, or says something else, has a network of nodes, and expects these among them: there these only do
    without shared memory, for the reason that `config/one_host.xml` gives.

    Args:
        environment: changed in place.
        supervised: of a process that is started again, or not; None: what was chosen before stays.
    """
    named = [environment[name] for name in PROFILES if environment.get(name)]
    if ros_flavour() != "wheels":
        if not named:
            environment.setdefault(TRANSPORTS, "UDPv4")
        return
    ours = [str(share_dir() / "config" / name) for name in (ONE_HOST, SUPERVISED)]
    if named and all(name in ours for name in named) and environment.get(DISCOVERY, BY_PROFILE) != BY_PROFILE:
        for name in PROFILES:  # chosen by a parent of this process; what the user says since counts
            environment.pop(name, None)
        named = []
    said = {name for name in SAID if environment.get(name)}
    own = any(name not in ours for name in named) or any(Path(name).exists() for name in PROFILES_HERE)
    if own or environment.get(MIDDLEWARE, FAST_DDS) not in ("", FAST_DDS) or not Path(ours[0]).exists():
        if not said:
            environment[DISCOVERY] = "LOCALHOST"
    elif not said or (
        said == {DISCOVERY} and environment[DISCOVERY] in ("LOCALHOST", *([BY_PROFILE] if named else []))
    ):
        environment[DISCOVERY] = BY_PROFILE
        if not named or supervised is not None:
            environment[PROFILES[0]] = ours[1] if supervised else ours[0]
    else:
        environment.setdefault(TRANSPORTS, "UDPv4")


def choose_log_folder(environment: MutableMapping[str, str]) -> None:
    """Name a folder for the logs where rclpy would find none, and end: without HOME, or with one it cannot write to."""
    if environment.get("ROS_LOG_DIR") or environment.get("ROS_HOME"):
        return
    home = environment.get("HOME")
    if home and os.access(home, os.W_OK | os.X_OK):
        return
    folder = home_dir() if not home else Path(home)
    if not os.access(folder, os.W_OK | os.X_OK):
        folder = Path(tempfile.gettempdir()) / f"{PACKAGE}_{os.getuid()}"
    environment["ROS_LOG_DIR"] = str(folder / ".ros" / "log")


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
