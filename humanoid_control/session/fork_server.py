"""Fast start of nodes: forks of a process with loaded libraries and kernels.

A fork runs the `main` of a node module like `python -m module`, with its own session, signals, output and exit code.
Nodes die with the server, and the server with the supervisor.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from humanoid_control.hardware.realtime import give_back_memory
from humanoid_control.in_child import die_with

LIBRARIES = ("numba", "scipy.linalg", "scipy.spatial", "pinocchio", "coal", "yaml")
NODE = "humanoid_control.nodes.base.runner"  # imports rclpy
# Sockets of LTTng's daemon: with tracing, rclpy starts threads in each process, and forks lose threads.
TRACING = ("/var/run/lttng", "~/.lttng")
# Message types of every node: preloading saves 5 MB and 0.1 s per node, with their dependencies.
MESSAGES = {
    "rcl_interfaces.msg": ("ParameterEvent", "Log"),
    "rcl_interfaces.srv": (
        "DescribeParameters",
        "GetParameters",
        "GetParameterTypes",
        "ListParameters",
        "SetParameters",
        "SetParametersAtomically",
    ),
    "lifecycle_msgs.msg": ("TransitionEvent",),
    "lifecycle_msgs.srv": ("ChangeState", "GetState", "GetAvailableStates", "GetAvailableTransitions"),
    "diagnostic_msgs.msg": ("DiagnosticArray",),
    "sensor_msgs.msg": ("JointState",),
    "std_msgs.msg": ("Bool", "String"),
    "std_srvs.srv": ("Trigger",),
    "visualization_msgs.msg": ("MarkerArray",),
}
LONGEST = 2**17  # [bytes] maximum size of a request
OUTPUT, EXIT = 0, 1  # descriptors passed with a request, before inherited ones


class ForkedProcess:
    """Equivalent of `subprocess.Popen` for a process of a `ForkServer`.

    Attributes:
        returncode: exit code, negative for a signal; None while running.
    """

    def __init__(self, pid: int, stdout: TextIO, end: int) -> None:
        self.pid, self.stdout, self._end = pid, stdout, end
        self.returncode: int | None = None
        self._gone: int | None = None
        with contextlib.suppress(OSError):  # it has ended already
            self._gone = os.pidfd_open(pid)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: if it runs longer than `timeout` [s].
        """
        if self.returncode is None:
            watched = [d for d in (self._end, self._gone) if d is not None]
            if not select.select(watched, [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self.returncode = self._exit_code()
            for descriptor in watched:
                os.close(descriptor)
        return self.returncode

    def _exit_code(self) -> int:
        """Return the exit code from the kernel, or from the server."""
        with contextlib.suppress(OSError):
            state, *fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            if state == "Z":
                return os.waitstatus_to_exitcode(int(fields[-1]))
        said = os.read(self._end, 16)
        # Empty: the server was killed, and its forks with it.
        return int(said) if said else -signal.SIGKILL

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Process from which nodes are forked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start the process, which then loads libraries."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", __name__, str(there.fileno())],
                stdin=subprocess.DEVNULL,
                env=dict(environment),
                pass_fds=(there.fileno(),),
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),
            )
        self._socket, self._loading = here, 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def load(self, *groups: str) -> None:
        """Start loading kernel groups of `humanoid_control.warm_up`; return at once.

        Raises:
            OSError: if the process is gone.
        """
        self._socket.send(json.dumps({"load": groups}).encode())
        self._loading += 1

    def wait_loaded(self, timeout: float) -> bool:
        """Wait up to `timeout` [s]; return True once all groups are loaded.

        Raises:
            OSError: if the process is gone.
        """
        end = time.monotonic() + timeout
        while self._loading and select.select([self._socket], [], [], max(0.0, end - time.monotonic()))[0]:
            self._answer()
            self._loading -= 1
        return not self._loading

    def _answer(self) -> bytes:
        answer = self._socket.recv(64)
        if not answer:
            raise ConnectionResetError("the process to be forked has ended")
        return answer

    def start(
        self, module: str, arguments: Sequence[str], variables: Mapping[str, str], inherited: Mapping[str, int]
    ) -> ForkedProcess:
        """Start `python -m module arguments`, after pending requests.

        Args:
            inherited: variable -> inherited descriptor; the variable is set to its number.

        Raises:
            OSError: if the process is gone.
        """
        while not self.wait_loaded(1.0):
            pass
        out, said = os.pipe()
        end, ended = os.pipe()
        job = {"module": module, "argv": list(arguments), "env": dict(variables), "inherited": list(inherited)}
        try:
            socket.send_fds(self._socket, [json.dumps(job).encode()], [said, ended, *inherited.values()])
            pid = int(self._answer())
        except OSError:
            os.close(out)
            os.close(end)
            raise
        finally:
            os.close(said)
            os.close(ended)
        return ForkedProcess(pid, open(out, errors="replace", buffering=1), end)

    def close(self) -> None:
        """End the process and its forks."""
        self._socket.close()
        self._process.kill()  # unfinished loading is no longer needed
        self._process.wait()


def _try(work: Callable[[], object]) -> None:
    """Run work that may fail without ending the server."""
    try:
        work()
    except Exception:
        traceback.print_exc()


def _load_kernels(group: str) -> None:
    importlib.import_module(f"humanoid_control.warm_up.{group}").compile_kernels()


class _Server:
    """Server side."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        # descriptor that signals an end -> process, descriptor of the report
        self._ends: dict[int, tuple[int, int]] = {}

    def run(self) -> None:
        """Serve until the client closes the socket."""
        while True:
            for key, _ in self._selector.select():
                if key.fd != self._requests.fileno():
                    self._bury(key.fd)
                    continue
                message, descriptors, *_ = socket.recv_fds(self._requests, LONGEST, 16)
                if not message:
                    return
                job = json.loads(message)
                if "load" in job:
                    self._load(job["load"])
                else:
                    self._fork(job, descriptors)

    def _load(self, groups: Sequence[str]) -> None:
        from humanoid_control.warm_up import compile_first

        if groups:  # in parallel, with a message
            _try(functools.partial(compile_first, *groups))
        for group in groups:
            _try(functools.partial(_load_kernels, group))
        give_back_memory()
        gc.freeze()  # otherwise garbage collection in each fork would copy these objects
        self._requests.send(b"loaded")

    def _fork(self, job: dict, descriptors: list[int]) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                die_with(parent)()
                for pidfd, (_, end) in self._ends.items():
                    os.close(pidfd)
                    os.close(end)
                os.close(descriptors[EXIT])
                self._selector.close()
                self._requests.close()
                os._exit(_become(job, descriptors))
            os._exit(1)
        watch = os.pidfd_open(pid)
        self._ends[watch] = pid, descriptors[EXIT]
        self._selector.register(watch, selectors.EVENT_READ)
        for descriptor in (descriptors[OUTPUT], *descriptors[EXIT + 1 :]):
            os.close(descriptor)
        self._requests.send(str(pid).encode())

    def _bury(self, watch: int) -> None:
        pid, end = self._ends.pop(watch)
        self._selector.unregister(watch)
        os.close(watch)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):
            os.write(end, str(code).encode())
        os.close(end)


def _become(job: dict, descriptors: list[int]) -> int:
    os.setsid()
    os.environ.update(job["env"])
    os.environ.update(zip(job["inherited"], map(str, descriptors[EXIT + 1 :]), strict=True))
    os.dup2(descriptors[OUTPUT], 1)
    os.dup2(descriptors[OUTPUT], 2)
    os.close(descriptors[OUTPUT])
    sys.argv = [job["module"], *job["argv"]]
    with contextlib.suppress(ImportError):  # sets the process title of a normal start, so that it can be found by name
        import setproctitle

        setproctitle.setproctitle(" ".join([sys.executable, "-m", *sys.argv]))
    return run_main(job["module"])


def run_main(module: str) -> int:
    """Run the `main` of a module; return the exit code of its process."""
    try:
        code = importlib.import_module(module).main()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code or 0


def load_messages() -> None:
    """Load the type support of common messages."""
    for module, names in MESSAGES.items():
        for name in names:
            with contextlib.suppress(ImportError, AttributeError):
                type(getattr(importlib.import_module(module), name)).__import_type_support__()


def traced() -> bool:
    """Test whether rclpy must not be imported before a fork."""
    return any(Path(place).expanduser().exists() for place in TRACING)


def main() -> None:
    """Run the server process of a `ForkServer`."""
    # Python 3.12 warns of LTTng's two threads: they come with rclpy, and only wait for a daemon that is not here.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for name in (*LIBRARIES, *([] if traced() else [NODE])):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    load_messages()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as requests, contextlib.suppress(ConnectionError):
        requests.set_inheritable(False)
        _Server(requests).run()
    os._exit(0)


if __name__ == "__main__":
    main()
