"""`humanoid doctor`: what this machine lacks, and what to do about it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from humanoid_control.errors import EXTRAS, missing_package
from humanoid_control.nodes.base.ros_env import ros_flavour
from humanoid_control.nodes.session.supervisor import SHM, leftovers, remove_leftovers
from humanoid_control.terminal import console, print_json

EXAMPLES = """examples:
  humanoid doctor              check everything
  humanoid doctor --clean      and remove shared memory that killed processes left behind
  humanoid doctor --json
"""
OK, WARN, FAIL = "ok", "warn", "fail"
PACKAGES = ("numpy", "scipy", "pinocchio", "coal", "yaml", "rosbags", "rich", "numba")


@dataclass(frozen=True)
class Check:
    """One check: its name, its state, the words for it, what to do."""

    check: str
    state: str
    found: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8080, help="port of the viewer (default: 8080)")
    parser.add_argument("--clean", action="store_true", help="remove left-over shared memory")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.clean:
        console.print(f"removed {remove_leftovers()} left-over files")
    checks: list[Callable[[], Check]] = [
        _python,
        _packages,
        *(partial(_extra, name) for name in EXTRAS if name != "bench"),
        _share,
        _kernels,
        _ros,
        _discovery,
        _loopback,
        partial(_port, args.port),
        _cores,
        _threads,
        _scheduling,
        _shared_memory,
        _browser,
    ]
    findings = []
    for check in checks:
        finding = _look(check)
        findings.append(finding)
        if not args.json:
            line = f"{finding.state:5} {finding.check}: {finding.found}"
            console.print(line + (f"\n      -> {finding.advice}" if finding.advice else ""))
    if args.json:
        print_json({"findings": [vars(f) for f in findings]})
    failed = [f.check for f in findings if f.state == FAIL]
    if not args.json:
        console.print("all well" if not failed else f"to mend: {', '.join(failed)}")
    return 1 if failed else 0


def _look(check: Callable[[], Check]) -> Check:
    """A finding, also where the check itself needs what is missing."""
    try:
        return check()
    except ModuleNotFoundError as e:
        return Check(str(e.name), WARN, "missing: something cannot be checked", str(missing_package(e) or ""))


def _python() -> Check:
    version = platform.python_version()
    good = (3, 10) <= sys.version_info[:2] <= (3, 13)
    return Check("Python", OK if good else FAIL, version, "" if good else "use Python 3.10 to 3.13")


def _packages() -> Check:
    missing = [p for p in PACKAGES if importlib.util.find_spec(p) is None]
    if missing:
        return Check("packages", FAIL, f"missing: {', '.join(missing)}", "run `make setup`, or pip install them")
    return Check("packages", OK, f"all {len(PACKAGES)} there")


def _extra(name: str) -> Check:
    missing = [p for p in EXTRAS[name] if importlib.util.find_spec(p) is None]
    if missing:
        advice = f"where it is wanted: pip install 'humanoid_control[{name}]'"
        return Check(f"extra {name}", WARN, f"missing: {', '.join(missing)}", advice)
    return Check(f"extra {name}", OK, ", ".join(EXTRAS[name]))


def _share() -> Check:
    from humanoid_control.errors import HumanoidError
    from humanoid_control.paths import share_dir

    try:
        return Check("shared files", OK, str(share_dir()))
    except HumanoidError as e:
        return Check("shared files", FAIL, str(e), "install the package again")


def _kernels() -> Check:
    if any(importlib.util.find_spec(p) is None for p in ("numba", "pinocchio", "coal")):
        return Check("compiled kernels", WARN, "cannot be looked at", "install the missing packages first")
    from humanoid_control.warm_up import retargeting as imitation
    from humanoid_control.warm_up import simulation, tendons

    advice = "compile them now: python -m humanoid_control."
    if not imitation.compiled():
        wait = "the first clip will wait for the compiler, half a minute"
        return Check("compiled kernels", WARN, wait, f"{advice}warm_up.retargeting")
    if not simulation.compiled():
        wait = "the first simulation will wait for the compiler, a minute"
        return Check("compiled kernels", WARN, wait, f"{advice}warm_up.simulation")
    if not tendons.compiled():
        wait = "the first estimate from tendons will wait for the compiler, half a minute"
        return Check("compiled kernels", WARN, wait, f"{advice}warm_up.tendons")
    return Check("compiled kernels", OK, "ready")


def _ros() -> Check:
    kind = ros_flavour()
    distro = os.environ.get("ROS_DISTRO", "")
    if kind == "none":
        advice = "run `make setup` (x86_64 Linux), or source a ROS 2 installation"
        return Check("ROS 2", FAIL, f"none for this Python ({platform.machine()})", advice)
    if kind == "wheels" and distro:
        advice = "open a shell in which ROS is not sourced, or do not use this environment: their libraries mix"
        return Check("ROS 2", FAIL, f"wheels in this environment, and ROS {distro} sourced as well", advice)
    try:
        import rclpy  # noqa: F401
    except ImportError as e:
        return Check("ROS 2", FAIL, f"rclpy does not load: {e}", "remove .venv and run `make setup` again")
    return Check("ROS 2", OK, "wheels in this environment" if kind == "wheels" else f"installed ROS {distro}")


def _discovery() -> Check:
    scope = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST (default of this package)")
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    if scope == "OFF":
        return Check("discovery", FAIL, "switched off", "unset ROS_AUTOMATIC_DISCOVERY_RANGE")
    if not (domain.isdigit() and int(domain) <= 232):
        return Check("discovery", FAIL, f"ROS_DOMAIN_ID is '{domain}'", "use a number from 0 to 101")
    return Check("discovery", OK, f"range {scope}, domain {domain}")


def _loopback() -> Check:
    """Two processes, one message."""
    if ros_flavour() == "none":
        return Check("loopback", WARN, "not checked without ROS 2")
    if os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE") == "OFF":
        return Check("loopback", WARN, "not checked while discovery is off")
    env = {**os.environ}
    env.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    command = [sys.executable, "-m", "humanoid_control.cli.ping"]
    talker = subprocess.Popen([*command, "talk"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        answer = subprocess.run([*command, "listen"], env=env, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        answer = None
    finally:
        talker.terminate()
        talker.wait()
    if answer is None or answer.returncode != 0:
        advice = "bring the loopback interface up (ip link set lo up), and let the firewall pass UDP on 127.0.0.1"
        return Check("loopback", FAIL, "a message between two processes does not arrive", advice)
    return Check("loopback", OK, f"a message between two processes arrives after {float(answer.stdout):.1f} s")


def _port(port: int) -> Check:
    from humanoid_control.viewer import port_is_free

    if port_is_free("127.0.0.1", port):
        return Check("port", OK, f"{port} is free for the viewer")
    return Check("port", WARN, f"{port} is occupied", "choose another: --port, or --set viewer.port=8081")


def _cores() -> Check:
    n = len(os.sched_getaffinity(0))
    return Check("cores", OK if n >= 2 else WARN, f"{n}", "" if n >= 2 else "two cores or more keep the rates")


def _threads() -> Check:
    n = os.environ.get("OMP_NUM_THREADS", "")
    good = n == "1"
    return Check("BLAS threads", OK if good else WARN, n or "not set", "" if good else "set OMP_NUM_THREADS=1: faster")


def _scheduling() -> Check:
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        os.sched_setscheduler(0, *before)
        return Check("real-time priority", OK, "permitted")
    except OSError:
        advice = "for steadier rates add '@GROUP - rtprio 98' to /etc/security/limits.conf (optional)"
        return Check("real-time priority", WARN, "not permitted: ordinary scheduling is used", advice)


def _shared_memory() -> Check:
    left = leftovers()
    if not SHM.is_dir() or not os.access(SHM, os.W_OK):
        return Check("shared memory", WARN, f"{SHM} cannot be written: UDP is used instead")
    free = shutil.disk_usage(SHM).free / 2**20
    if left:
        return Check("shared memory", WARN, f"{len(left)} files left behind by killed processes", "run with --clean")
    return Check("shared memory", OK if free > 64 else WARN, f"{free:.0f} MB free")


def _browser() -> Check:
    from humanoid_control.viewer import find_chromium

    path = find_chromium()
    found = path and Path(path).name
    return Check("Chromium", OK if found else WARN, found or "none: only needed for pictures and the viewer's tests")
