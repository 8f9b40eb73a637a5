"""Main loop of a node process: signals, executor, deadlines, ordered shutdown."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import rclpy
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.realtime import COMPILER, SpareTimeCollector, give_back_memory
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.warm_up import report_compiling

READY = "READY"  # start of the line by which the supervisor detects readiness
EXIT_FAILED, EXIT_BAD_INPUT = 1, 2
TEARDOWN_LIMIT = 1.5  # [s] after which a process that cannot leave the network is killed
LAST = 1e-4  # [s] before the deadline of a punctual node; the executor would return too late
WAIT = 0.1  # [s] maximum wait for callbacks


def make_executor(context: Any = None) -> Any:
    """Return rclpy's events executor if available, else the single-threaded one, which is slower.

    Use `spin_once`; `spin` fails in some releases. `HUMANOID_EXECUTOR=single` selects the latter.
    """
    if os.environ.get("HUMANOID_EXECUTOR", "events") == "events":
        try:
            from rclpy.experimental import EventsExecutor

            return EventsExecutor(context=context)
        except ImportError:
            pass
    from rclpy.executors import SingleThreadedExecutor

    return SingleThreadedExecutor(context=context)


def run(node_class: type[TickNode], args: Sequence[str] | None = None) -> int:
    """Run a node until SIGINT or SIGTERM.

    rclpy's own signal handlers would shut the context down during a callback.

    Args:
        args: command line for rclpy; None: this process's.

    Returns:
        Exit code: 0 stopped, 1 failed, 2 bad input.
    """
    stop = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop.set())
    rclpy.init(args=list(args) if args is not None else None, signal_handler_options=SignalHandlerOptions.NO)
    node, executor, code = None, None, EXIT_FAILED
    try:
        node = node_class()
        executor = make_executor()
        executor.add_node(node)
        code = _start(node)
        if code == 0:
            code = EXIT_FAILED  # exit code if the loop raises
            _loop(node, executor, stop)
            code = 0
    except HumanoidError as e:
        print(f"{node_class.node_name}: {e}", file=sys.stderr, flush=True)
        code = EXIT_BAD_INPUT
    finally:
        deadline = ExitDeadline(TEARDOWN_LIMIT, code)
        _teardown(node, executor)
        # The participant leaves the network with the last reference to the node. A garbage collection would also find
        # it, but takes 0.1 to 0.25 s.
        if node is not None:
            vars(node).clear()
        node = executor = None
        rclpy.try_shutdown()
        deadline.cancel()
        gc.unfreeze()
        gc.enable()
    return code


def _start(node: TickNode) -> int:
    if node.params.autostart:
        with report_compiling(node.get_logger().info):
            if node.trigger_configure() != TransitionCallbackReturn.SUCCESS:
                print(f"{node.node_name}: {node.refused or 'could not be configured'}", file=sys.stderr, flush=True)
                return EXIT_BAD_INPUT
            node.trigger_activate()
    inspect.getframeinfo(sys._getframe())  # queried by rclpy at the first log line, which would cost 0.1 s of control
    give_back_memory(COMPILER)  # other kernels are needed soon
    print(f"{READY} {node.node_name}", flush=True)
    return 0


def _loop(node: TickNode, executor: Any, stop: threading.Event) -> None:
    """Run callbacks between deadlines and ticks on them; missed ticks are counted, not repeated."""
    # Automatic garbage collection would pause the control loop for 18 ms and more.
    collector = SpareTimeCollector()
    deadline = time.monotonic()
    while not stop.is_set() or (node.active and node.ending()):
        now = time.monotonic()
        if not node.active:
            node.heartbeat.rest()
            executor.spin_once(timeout_sec=WAIT)
            node.publish_diagnostics(now)
            collector.run(WAIT)
            deadline = time.monotonic()
            continue
        node.heartbeat.beat()
        wait = deadline - now
        # Sleep until the deadline: the executor would return too late.
        if 0 < wait <= LAST and node.punctual:
            time.sleep(wait)
            continue
        if wait > 0:
            executor.spin_once(timeout_sec=min(wait - LAST if node.punctual else wait, WAIT))
            if node.wake and node.active:
                node.wake = False
                node.run_extra_tick()
            continue
        period = 1.0 / node.rate
        skipped = int(-wait / period)
        if skipped:  # a node that misses its rate still receives messages
            executor.spin_once(timeout_sec=0)
        # Missed deadlines are skipped, so that delays do not accumulate.
        deadline += (1 + skipped) * period
        node.wake = False
        node.late = -wait
        node.run_tick(skipped)
        node.publish_diagnostics(now)
        node.run_slack_time(deadline - time.monotonic())
        collector.run(deadline - time.monotonic())


def _teardown(node: TickNode | None, executor: Any) -> None:
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, signal.SIG_IGN)
    if node is not None:
        node.active = False
        node.heartbeat.rest()
        node.close()
    if executor is not None:
        executor.shutdown()
    if node is not None:
        node.destroy_node()


class _Event(ctypes.Structure):
    """`struct sigevent` of a call in a separate thread."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("rest", ctypes.c_char * 32),
    )


class _Times(ctypes.Structure):
    """`struct itimerspec`."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "s", "ns"))


class ExitDeadline:
    """Timer that ends the process with an exit code after `limit` [s] unless cancelled.

    The middleware can deadlock at exit while holding the interpreter lock. So a C timer calls `_exit`.
    """

    IN_A_THREAD = 2  # SIGEV_THREAD

    def __init__(self, limit: float, code: int) -> None:
        self._libc, self._timer = ctypes.CDLL(None), ctypes.c_void_p()
        function = ctypes.cast(self._libc._exit, ctypes.c_void_p)
        event = _Event(value=code, notify=self.IN_A_THREAD, function=function)
        create = getattr(self._libc, "timer_create", None)  # Linux only
        # Without timers there is no deadline.
        if create is not None and not create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            times = _Times(s=int(limit), ns=int(limit % 1 * 1e9))
            self._libc.timer_settime(self._timer, 0, ctypes.byref(times), None)

    def cancel(self) -> None:
        if self._timer:
            self._libc.timer_delete(self._timer)


def main_of(node_class: type[TickNode]) -> int:
    """Run a node's executable, with Python stacks for native crashes. Does not return.

    `os._exit` skips the slow teardown of compiled kernels.
    """
    faulthandler.enable()
    code = run(node_class, sys.argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
