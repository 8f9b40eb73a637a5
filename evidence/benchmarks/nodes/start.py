"""From a command to a robot that moves: starts, nodes that are killed, kernels compiled again, all of it from nothing.

Everything is heard from outside, by a node of this process that listens to the stack's topics: a robot moves when
another process receives commands that differ, and a killed node is back when something that it stamped after its death
arrives.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence import benchmarks
from evidence.benchmarks import Row, row_of
from evidence.benchmarks.nodes.command_arrival import COMMAND_STAMP, MARKER_STAMP, stamp_at
from humanoid_control.errors import ConfigError
from humanoid_control.nodes import require_ros
from humanoid_control.nodes.base.ros_env import choose_discovery
from humanoid_control.robots.loadable import check_robot
from humanoid_control.session import Session, StackFailure, find_stack
from humanoid_control.session.runs import write_parameters
from humanoid_control.session.supervisor import child_environment, node_command
from humanoid_control.terminal import progress
from humanoid_control.viewer import page_address

COLUMNS = [*benchmarks.COLUMNS, "what"]
STACK, PORT = "imitation", 8097
KILLS = 3  # of each node, which is how often one is started again within a minute
SETTLE = 2.0  # [s] between two kills
MOVED = 1e-3  # [rad] by which commands differ
TIMEOUT, COLD_TIMEOUT = 60.0, 600.0  # [s] for a start, for kernels and for an installation
COMMANDS = "joint_commands"
# What each node publishes all the time, and where the stamp of that lies; the viewer has a page instead.
STREAMS = {
    "simulator": ("joint_states", COMMAND_STAMP),
    "state_estimator": ("estimated_joint_states", COMMAND_STAMP),
    "trajectory_streamer": ("targets", MARKER_STAMP),
    "whole_body_ik": (COMMANDS, COMMAND_STAMP),
}
DANCE = ("inverse_kinematics", "simulation", "retargeting")  # groups of kernels that a first dance needs
FOREIGN = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "PIP_CACHE_DIR")  # variables that a new checkout is without


def measure(robot: str = "hrp2", rounds: int = 5, cold: bool = False, quiet: bool = True) -> list[Row]:
    """Rows [s]: start_s, ready_NODE_s, stop_s, alone_s, killed_NODE_s; with `cold` compile_dance_s
    and compile_all_s with their processor time, and nothing_installed_s and nothing_moving_s.

    Args:
        robot: of the catalogue, or path of a URDF.
        rounds: how often the stack is started.
        cold: also compile all kernels, and start a demo in a new checkout: minutes, with the network.

    Raises:
        EnvironmentProblem: ROS 2 is missing. ConfigError: not 1 to 100 rounds.
        StackFailure: nothing moves, or a killed node does not come back.
    """
    require_ros()
    if not 1 <= rounds <= 100:
        raise ConfigError(f"rounds must be between 1 and 100, got {rounds}")
    check_robot(robot)  # a robot that is none leaves no run behind
    if Path(robot).is_file():
        robot = str(Path(robot).resolve())  # a demo in a new checkout has another folder
    total, done = 2.0 * rounds + KILLS + (2 if cold else 0), 0
    seconds: dict[str, list[float]] = {}
    with Ear() as ear, progress("measuring", total, quiet) as show:
        for _ in range(rounds):
            for name, value in (*_by_command(robot, ear).items(), ("alone_s", _each_alone(robot, ear))):
                seconds.setdefault(name, []).append(value)
            show(done := done + 2)
        with Session(STACK, robot, {"viewer": {"port": PORT}}, quiet=True) as session:
            session.wait_first_motion()
            for _ in range(KILLS):
                for name in session.stack.executables:
                    session.run(SETTLE)
                    seconds.setdefault(f"killed_{name}_s", []).append(_killed(session, name, ear))
                show(done := done + 1)
        for part in (_compiled, lambda: _from_nothing(robot, ear)) if cold else ():
            seconds |= {name: [value] for name, value in part().items()}
            show(done := done + 1)
    return [row_of(name, "s", values, what=_what(name)) for name, values in seconds.items()]


def _what(name: str) -> str:
    kind, _, node = name.removesuffix("_s").partition("_")
    node_words = {
        "ready": f"{node}: from its start until it reports ready",
        "killed": f"{node}: from its kill to its next message",
        "killed_viewer": "viewer: from its kill to its page",
    }
    words = {
        "start_s": "from the command to the first motion",
        "stop_s": "from the signal to the end of the command",
        "alone_s": "to the first motion if all nodes start at once, each by itself",
        "compile_dance_s": "kernels of a first dance compiled",
        "compile_dance_cpu_s": "processor time for that",
        "compile_all_s": "all other kernels compiled",
        "compile_all_cpu_s": "processor time for that",
        "nothing_installed_s": "from a new checkout to the complete installation",
        "nothing_moving_s": "from a new checkout to the first motion",
    }
    return words.get(name) or node_words.get(name.removesuffix("_s")) or node_words[kind]


class Ear:
    """A node that notes what arrives from the nodes of a stack; use as a context manager."""

    def __enter__(self) -> Ear:
        self._environment = dict(os.environ)
        choose_discovery(os.environ, supervised=True)  # hears what the nodes of the stack hear of each other
        import rclpy
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from rclpy.serialization import deserialize_message
        from rclpy.signals import SignalHandlerOptions
        from sensor_msgs.msg import JointState
        from visualization_msgs.msg import MarkerArray

        from humanoid_control.nodes.base.runner import make_executor

        self._stamps: dict[str, int] = {}
        self._first: Sequence[float] | None = None
        self._moved = threading.Event()
        self._moved_at = 0.0
        self._read: Callable[[bytes], Any] = lambda raw: deserialize_message(raw, JointState)
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        node: Any = rclpy.create_node("start_listener", context=self._context)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        for name, (topic, place) in STREAMS.items():
            kind = MarkerArray if place == MARKER_STAMP else JointState
            node.create_subscription(kind, topic, self._hearer(name, topic, place), qos, raw=True)
        self._node, self._executor = node, make_executor(context=self._context)
        self._executor.add_node(node)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()
        os.environ.clear()
        os.environ.update(self._environment)

    def _listen(self) -> None:
        while not self._ended.is_set():
            self._executor.spin_once(timeout_sec=0.05)

    def _hearer(self, name: str, topic: str, place: int) -> Callable[[bytes], None]:
        def hear(raw: bytes) -> None:
            if len(raw) < place + 8:
                return
            self._stamps[name] = stamp_at(raw, place)
            if topic == COMMANDS and not self._moved.is_set():
                now, position = time.monotonic(), self._read(raw).position
                if self._first is None or len(self._first) != len(position):
                    self._first = position
                elif max(abs(a - b) for a, b in zip(self._first, position, strict=True)) > MOVED:
                    self._moved_at = now
                    self._moved.set()

        return hear

    def forget(self) -> None:
        """Wait for the next start."""
        self._moved.clear()
        self._first = None

    def wait_motion(self, timeout: float, alive: Callable[[], bool]) -> float:
        """When the first command came that differs from the first of all, on the monotonic clock [s].

        Args:
            timeout: for it [s]. alive: whether what should move still runs.

        Raises:
            StackFailure: none came.
        """
        end = time.monotonic() + timeout
        while not self._moved.wait(0.1):
            if not alive():
                raise StackFailure("the process that should move the robot ended; try `humanoid doctor`")
            if time.monotonic() > end:
                raise StackFailure(f"no motion was received in {timeout:g} s; try `humanoid doctor`")
        return self._moved_at

    def heard_since(self, name: str, stamp: int) -> bool:
        """Whether a node has published something that was stamped after a time [ns]."""
        return self._stamps.get(name, 0) > stamp


@contextlib.contextmanager
def _running(command: list[str], **options: Any) -> Iterator[subprocess.Popen]:
    """A process, as leader of a group that is gone afterwards."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, text=True, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=TIMEOUT)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """Of a user's shell: without what this process chose for itself."""
    environment = dict(os.environ)
    choose_discovery(environment, supervised=False)
    return environment


def _finish(command: list[str], environment: dict[str, str]) -> None:
    """Run a command to its end.

    Raises:
        StackFailure: it is not there, or failed, with the last line that it said.
    """
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    except OSError as e:
        raise StackFailure(f"{command[0]} cannot be started: {e.strerror}") from None
    except subprocess.CalledProcessError as e:
        raise StackFailure(f"{' '.join(command)}: {last_line(e.stderr) or f'exit code {e.returncode}'}") from None


def last_line(text: str) -> str:
    """The last line of an output that is not empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _humanoid(*words: str) -> list[str]:
    return [sys.executable, "-m", "humanoid_control.cli.main", *words]


def _by_command(robot: str, ear: Ear) -> dict[str, float]:
    """Times of one `humanoid up`."""
    ear.forget()
    begin = time.monotonic()
    command = _humanoid("up", STACK, "--robot", robot, "--set", f"viewer.port={PORT}")
    silent = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with _running(command, env=_environment(), **silent) as process:
        moving = ear.wait_motion(TIMEOUT, lambda: process.poll() is None)
        begun = _lines_until(process, "running")  # the robot may move before the page is ready
        time.sleep(SETTLE)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=TIMEOUT)
        ended = time.monotonic()
    lines = [*begun, *said.splitlines()]
    ready = [line.strip().split(": ready after ") for line in lines if ": ready after " in line]
    times = {f"ready_{name}_s": float(text.removesuffix(" s")) for name, text in ready}
    return {"start_s": moving - begin, **times, "stop_s": ended - asked}


def _lines_until(process: subprocess.Popen[str], beginning: str) -> list[str]:
    """Lines of an output up to the one that begins so; all of them where the process ends before, or is too slow."""
    assert process.stdout is not None
    lines = list[str]()
    end = threading.Timer(TIMEOUT, process.kill)
    end.start()
    for line in process.stdout:
        lines.append(line)
        if line.startswith(beginning):
            break
    end.cancel()
    return lines


def _each_alone(robot: str, ear: Ear) -> float:
    """Time to the first motion where each of the same nodes is started by itself, as by `ros2 launch`."""
    stack = find_stack(STACK)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as nodes:
        directory = Path(folder)
        settings: Mapping[str, Mapping[str, Any]] = {"viewer": {"port": PORT}}
        parameters = write_parameters(directory, stack.ros_parameters({"robot": robot}, settings))
        environment = child_environment(directory, _environment())
        ear.forget()
        begin = time.monotonic()
        started = []
        for spec in stack.nodes:
            command = node_command(spec.module, parameters, "", stack.remaps.get(spec.executable))
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(nodes.enter_context(_running(command, env=environment, **silent)))
        needed = [p for p, spec in zip(started, stack.nodes, strict=True) if spec.essential]
        return ear.wait_motion(TIMEOUT, lambda: all(p.poll() is None for p in needed)) - begin


def _killed(session: Session, name: str, ear: Ear) -> float:
    """Time from the kill of a node to what it publishes next; of the viewer: to its page."""
    child = session.supervisor.children[name]
    assert child.process is not None
    begin, stamp = time.monotonic(), time.time_ns()
    os.kill(child.process.pid, signal.SIGKILL)
    back = (lambda: ear.heard_since(name, stamp)) if name in STREAMS else _page_is_there
    returned = threading.Event()
    times = []

    def look() -> None:
        while not returned.wait(0.002):
            if back():
                times.append(time.monotonic() - begin)
                return

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        while not times and not session.stopped.is_set() and time.monotonic() - begin < TIMEOUT:
            session.run(0.1)
    finally:
        returned.set()
        watching.join()
    if not times:
        raise StackFailure(f"{name} was killed and published nothing afterwards: see {session.directory}")
    return times[0]


def _page_is_there() -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(page_address(PORT), timeout=1.0) as answer:
        return bool(answer.status == 200)
    return False


def _compiled() -> dict[str, float]:
    """Time and processor for all kernels, kept in a folder of their own."""
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for name, groups in (("dance", DANCE), ("all", ())):
            before, begin = os.times(), time.monotonic()
            _finish(_humanoid("warm", *groups), environment)
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            times |= {f"compile_{name}_s": time.monotonic() - begin, f"compile_{name}_cpu_s": used}
    return times


def _from_nothing(robot: str, ear: Ear) -> dict[str, float]:
    """Times of `make demo` in a new checkout; nothing where this is not one."""
    tree = Path(__file__).resolve().parents[3]
    if not (tree / ".git").exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        _finish(["git", "clone", "-q", str(tree), str(checkout)], _environment())
        environment = {k: v for k, v in _environment().items() if k not in FOREIGN} | {"PIP_NO_CACHE_DIR": "1"}
        own = str(Path(sys.executable).parent)  # the environment of this process is none that a user has
        environment["PATH"] = os.pathsep.join(p for p in environment["PATH"].split(os.pathsep) if p != own)
        ear.forget()
        begin, wall = time.monotonic(), time.time()
        command = ["make", "demo", f"ROBOT={robot}", f"PORT={PORT}"]
        log = Path(folder) / "log"
        with log.open("w") as said, _running(command, cwd=checkout, env=environment, stdout=said, stderr=said) as make:
            try:
                moving = ear.wait_motion(COLD_TIMEOUT, lambda: make.poll() is None)
            except StackFailure as e:
                raise StackFailure(f"{' '.join(command)}: {last_line(log.read_text()) or e}") from None
            installed = (checkout / ".venv" / ".installed").stat().st_mtime
    return {"nothing_installed_s": installed - wall, "nothing_moving_s": moving - begin}


def notes(rows: list[Row]) -> list[str]:
    """Lines on what is counted."""
    by = {r["name"]: r for r in rows}
    said = [
        "start_s: `humanoid up imitation`, from the start of its interpreter to the first changed command in another "
        "process.",
        "alone_s: the same nodes without a supervisor, as separate processes that are started at once and load "
        "everything themselves, as under `ros2 launch`.",
        "killed: from SIGKILL to the first message with a later stamp in another process; viewer: to its page. "
        "Supervised as by `humanoid up`. The subscriber announces itself five times per second, like the nodes of a "
        "stack; others may discover a new node up to a second later.",
    ]
    if "compile_dance_s" in by:
        said.append("compile: `humanoid warm`, the kernels of a dance first, then all others, into an empty cache.")
    if "nothing_moving_s" in by:
        said.append("nothing: `make demo` in a new clone of the last commit, without pip's cache: the network counts.")
    elif "compile_dance_s" in by:
        said.append("No row for a new checkout: the package does not run from one.")
    return said
