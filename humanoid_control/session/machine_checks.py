"""Checks of this machine."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from humanoid_control.errors import EXTRAS, missing_package
from humanoid_control.hardware.realtime import real_time_facts
from humanoid_control.nodes.base.ros_env import choose_discovery, ros_flavour
from humanoid_control.session.shared_memory import SHM, leftovers

OK, WARN, FAIL = "ok", "warn", "fail"
PACKAGES = ("numpy", "scipy", "pinocchio", "coal", "yaml", "rosbags", "rich", "numba")
LATE, MISSED = 0.1, 0.1  # periods of lateness allowed for 99 % of the cycles; percentage of cycles that may be missed
TOPIC, TIMEOUT = "humanoid_ping", 15.0  # topic of the loopback test; timeout [s]


@dataclass(frozen=True)
class MachineCheck:
    """Result of a check: name, state, finding, advice."""

    check: str
    state: str
    found: str
    advice: str = ""


def check_machine(port: int) -> Iterator[MachineCheck]:
    """Check packages, kernels, ROS 2, discovery, shared memory and browser."""
    checks: list[Callable[[], MachineCheck]] = [
        _python,
        _packages,
        *(partial(_extra, name) for name in EXTRAS if name != "bench"),
        _share,
        _kernels,
        _ros,
        _discovery,
        _loopback,
        partial(_port, port),
        _cores,
        _threads,
        _scheduling,
        _shared_memory,
        _browser,
    ]
    for check in checks:
        try:
            yield check()
        except ModuleNotFoundError as e:  # the check itself lacks a package
            advice = str(missing_package(e) or "")
            yield MachineCheck(str(e.name), WARN, "missing: something cannot be checked", advice)


def check_real_time(rate: float, seconds: float) -> Iterator[MachineCheck]:
    """Check real-time settings, then the lateness of a loop.

    Args:
        rate: rate of the loop [Hz].
        seconds: duration of the measurement [s].
    """
    for fact in real_time_facts():
        if fact.name == "policy":  # of this process; the loop reports its own
            continue
        yield MachineCheck(fact.name.replace("_", " "), WARN if fact.remedy else OK, fact.value, fact.remedy)
    from humanoid_control.session.loop_lateness import measure_loop  # needs ROS 2

    loop = measure_loop(rate, seconds)
    fifo = loop.scheduling.startswith("fifo")
    advice = "" if fifo else "'@GROUP - rtprio 98' in /etc/security/limits.conf, then log in again"
    yield MachineCheck("scheduling", OK if fifo else WARN, loop.scheduling, advice)
    p50, p99, p999 = (1e6 * loop.percentile(p) for p in (50, 99, 99.9))
    figures = f"{p50:.0f} / {p99:.0f} / {p999:.0f} / {1e6 * loop.late.max():.0f} us"
    missed = loop.missed_percent()
    good = missed <= MISSED and p99 <= 1e6 * LATE * loop.period
    found = f"{figures} late (p50 / p99 / p99.9 / max), {missed:.3f} % missed, {len(loop.late)} cycles at {rate:g} Hz"
    yield MachineCheck(
        "loop", OK if good else WARN, found, "" if good else "see above; also reduce other load on this machine"
    )


def _python() -> MachineCheck:
    version = platform.python_version()
    good = (3, 10) <= sys.version_info[:2] <= (3, 14)
    return MachineCheck("Python", OK if good else FAIL, version, "" if good else "use Python 3.10 to 3.14")


def _packages() -> MachineCheck:
    missing = [p for p in PACKAGES if importlib.util.find_spec(p) is None]
    if missing:
        return MachineCheck("packages", FAIL, f"missing: {', '.join(missing)}", "run `make setup`, or pip install them")
    return MachineCheck("packages", OK, f"all {len(PACKAGES)} are installed")


def _extra(name: str) -> MachineCheck:
    missing = [p for p in EXTRAS[name] if importlib.util.find_spec(p) is None]
    if missing:
        advice = f"if needed: pip install 'humanoid_control[{name}]'"
        return MachineCheck(f"extra {name}", WARN, f"missing: {', '.join(missing)}", advice)
    return MachineCheck(f"extra {name}", OK, ", ".join(EXTRAS[name]))


def _share() -> MachineCheck:
    from humanoid_control.errors import HumanoidError
    from humanoid_control.paths import share_dir

    try:
        return MachineCheck("shared files", OK, str(share_dir()))
    except HumanoidError as e:
        return MachineCheck("shared files", FAIL, str(e), "reinstall the package")


def _kernels() -> MachineCheck:
    if any(importlib.util.find_spec(p) is None for p in ("numba", "pinocchio", "coal")):
        return MachineCheck("compiled kernels", WARN, "not checked", "install the missing packages first")
    from humanoid_control.warm_up import inverse_kinematics, retargeting, simulation, tendons, walking

    for room, waits in (
        (retargeting, "the first clip waits for the compiler, half a minute"),
        (inverse_kinematics, "the first inverse kinematics node waits for the compiler, half a minute"),
        (simulation, "the first simulation waits for the compiler, one minute"),
        (tendons, "the first tendon estimate waits for the compiler, half a minute"),
        (walking, "the first walk waits for the compiler, one minute"),
    ):
        if not room.compiled():
            return MachineCheck(
                "compiled kernels", WARN, waits, f"compile them now: humanoid warm, or python -m {room.__name__}"
            )
    return MachineCheck("compiled kernels", OK, "ready")


def _ros() -> MachineCheck:
    kind = ros_flavour()
    distro = os.environ.get("ROS_DISTRO", "")
    if kind == "none":
        advice = "run `make setup` (x86_64 Linux), or source a ROS 2 installation"
        return MachineCheck("ROS 2", FAIL, f"none for this Python ({platform.machine()})", advice)
    if kind == "wheels" and distro:
        advice = "open a shell without a sourced ROS, or do not use this environment: their libraries are mixed"
        return MachineCheck("ROS 2", FAIL, f"wheels in this environment, and a sourced ROS {distro}", advice)
    try:
        import rclpy  # noqa: F401
    except ImportError as e:
        return MachineCheck("ROS 2", FAIL, f"rclpy does not load: {e}", "remove .venv and run `make setup` again")
    return MachineCheck("ROS 2", OK, "wheels in this environment" if kind == "wheels" else f"installed ROS {distro}")


def _discovery() -> MachineCheck:
    scope = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS default")
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    if scope == "OFF":
        return MachineCheck("discovery", FAIL, "switched off", "unset ROS_AUTOMATIC_DISCOVERY_RANGE")
    if not (domain.isdigit() and int(domain) <= 232):
        return MachineCheck("discovery", FAIL, f"ROS_DOMAIN_ID is '{domain}'", "use a number from 0 to 101")
    return MachineCheck("discovery", OK, f"range {scope}, domain {domain}")


def _loopback() -> MachineCheck:
    if ros_flavour() == "none":
        return MachineCheck("loopback", WARN, "not checked without ROS 2")
    if os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE") == "OFF":
        return MachineCheck("loopback", WARN, "not checked while discovery is off")
    env = {**os.environ}
    choose_discovery(env)
    command = [sys.executable, "-m", "humanoid_control.session.machine_checks"]
    talker = subprocess.Popen([*command, "talk"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        answer = subprocess.run([*command, "listen"], env=env, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        answer = None
    finally:
        talker.terminate()
        talker.wait()
    if answer is None or answer.returncode != 0:
        advice = "bring the loopback interface up (ip link set lo up), and allow UDP on 127.0.0.1 in the firewall"
        return MachineCheck("loopback", FAIL, "a message between two processes does not arrive", advice)
    return MachineCheck("loopback", OK, f"a message between two processes arrives after {float(answer.stdout):.1f} s")


def _port(port: int) -> MachineCheck:
    from humanoid_control.viewer import port_is_free

    if port_is_free("127.0.0.1", port):
        return MachineCheck("port", OK, f"{port} is free for the viewer")
    return MachineCheck("port", WARN, f"{port} is occupied", "set the parameter port of the viewer")


def _cores() -> MachineCheck:
    n = len(os.sched_getaffinity(0))
    return MachineCheck(
        "cores", OK if n >= 2 else WARN, f"{n}", "" if n >= 2 else "at least two cores are needed for the rates"
    )


def _threads() -> MachineCheck:
    n = os.environ.get("OMP_NUM_THREADS", "")
    good = n == "1"
    return MachineCheck(
        "BLAS threads", OK if good else WARN, n or "not set", "" if good else "set OMP_NUM_THREADS=1 (faster)"
    )


def _scheduling() -> MachineCheck:
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        os.sched_setscheduler(0, *before)
        return MachineCheck("real-time priority", OK, "permitted")
    except OSError:
        advice = "for steadier rates add '@GROUP - rtprio 98' to /etc/security/limits.conf (optional)"
        return MachineCheck("real-time priority", WARN, "not permitted: normal scheduling is used", advice)


def _shared_memory() -> MachineCheck:
    left = leftovers()
    if not SHM.is_dir() or not os.access(SHM, os.W_OK):
        return MachineCheck("shared memory", WARN, f"{SHM} cannot be written: UDP is used instead")
    free = shutil.disk_usage(SHM).free / 2**20
    if left:
        return MachineCheck(
            "shared memory",
            WARN,
            f"{len(left)} stale files of killed processes",
            "remove them: humanoid doctor --clean",
        )
    return MachineCheck("shared memory", OK if free > 64 else WARN, f"{free:.0f} MB free")


def _browser() -> MachineCheck:
    from humanoid_control.viewer import find_chromium

    path = find_chromium()
    found = path and Path(path).name
    return MachineCheck(
        "Chromium", OK if found else WARN, found or "none: only needed for pictures and the viewer's tests"
    )


def ping() -> int:
    """Run one of two processes that test ROS 2 communication; return the exit code.

    `talk` publishes until ended; `listen` prints the delay of the first message [s].
    """
    import rclpy
    from std_msgs.msg import Empty

    rclpy.init()
    node = rclpy.create_node(f"humanoid_ping_{sys.argv[1]}")
    begin, heard = time.monotonic(), []
    if sys.argv[1] == "talk":
        publisher = node.create_publisher(Empty, TOPIC, 10)
        node.create_timer(0.05, lambda: publisher.publish(Empty()))
    else:
        node.create_subscription(Empty, TOPIC, lambda _: heard.append(time.monotonic()), 10)
    try:
        while time.monotonic() - begin < TIMEOUT and not heard:
            rclpy.spin_once(node, timeout_sec=0.1)
    except Exception:  # the talker is ended by a signal
        return 0
    if heard:
        print(heard[0] - begin)
    node.destroy_node()
    rclpy.try_shutdown()
    return 0 if heard else 1


if __name__ == "__main__":
    sys.exit(ping())
