"""Environment of a ROS 2 process, set before rclpy is imported."""

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

LONGEST_NAMESPACE = 150  # topic names are limited to 255 characters
NAMESPACE = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*/?")
GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
DISCOVERY = "ROS_AUTOMATIC_DISCOVERY_RANGE"
BY_PROFILE = "SYSTEM_DEFAULT"  # range that leaves discovery to a profile; LOCALHOST would add shared memory
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
MIDDLEWARE, FAST_DDS = "RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"
SAID = (DISCOVERY, "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS")  # variables that express a choice of the user
PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")  # so do these variables,
PROFILES_HERE = ("DEFAULT_FASTDDS_PROFILES.xml", "DEFAULT_FASTRTPS_PROFILES.xml")  # and these files
ONE_HOST, SUPERVISED = "one_host.xml", "supervised.xml"  # profiles of the package, in `config`


def check_namespace(name: str, text: str) -> None:
    """Reject a namespace that ROS would reject after the start.

    Args:
        text: its value; empty and / mean none.

    Raises:
        ConfigError: if it is invalid.
    """
    if text not in ("", "/") and not (NAMESPACE.fullmatch(text) and len(text) <= LONGEST_NAMESPACE):
        raise ConfigError(
            f"{name} must be letters, digits and _, without a leading digit, in parts separated by /, got '{text}'"
        )


def prepare() -> None:
    """Set up the process before rclpy or numpy are imported.

    * If only the guard variable of the ROS wheels was inherited (sudo, env filters), the interpreter restarts.
    * A pip environment is added as ament prefix.
    * BLAS uses one thread.
    * `choose_discovery` and `choose_log_folder` set discovery and logs.
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
    """Limit discovery to this machine if ROS comes from wheels and the user has made no choice.

    Profiles: `config/one_host.xml`, or `config/supervised.xml` under a supervisor, unless the user has another one. An
    installed ROS keeps its network, without shared memory.

    Args:
        supervised: whether a supervisor restarts the process; None: keep the earlier choice.
    """
    named = [environment[name] for name in PROFILES if environment.get(name)]
    if ros_flavour() != "wheels":
        if not named:
            environment.setdefault(TRANSPORTS, "UDPv4")
        return
    ours = [str(share_dir() / "config" / name) for name in (ONE_HOST, SUPERVISED)]
    if named and all(name in ours for name in named) and environment.get(DISCOVERY, BY_PROFILE) != BY_PROFILE:
        for name in PROFILES:  # set by a parent process; later choices of the user have priority
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
    """Set a log folder where HOME is not writable, because rclpy would exit."""
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
    """Check that rclpy is installed.

    Raises:
        EnvironmentProblem: if it is missing.
    """
    if importlib.util.find_spec("rclpy") is None:
        raise EnvironmentProblem(
            "ROS 2 is missing: source a ROS 2 installation (Jazzy or Kilted), or on x86_64 Linux run `make setup`"
        )


def ros_flavour() -> str:
    """Return 'wheels' (in this Python environment), 'installed' (sourced) or 'none'."""
    if (Path(sys.prefix) / "lib" / "librcl.so").exists():
        return "wheels"
    return "installed" if importlib.util.find_spec("rclpy") is not None else "none"
