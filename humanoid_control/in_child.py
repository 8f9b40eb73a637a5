"""Function calls in a child process, so that its memory is freed; termination with the parent.

Checking a robot loads pinocchio and a model, 45 MB that a monitoring process would keep.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import multiprocessing.process
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from humanoid_control.errors import EnvironmentProblem

PR_SET_PDEATHSIG = 1  # of Linux
P = ParamSpec("P")
Result = TypeVar("Result")


def in_child(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Call a function in a fork of this single-threaded process; its exceptions are raised here.

    Args:
        function: its result must be picklable.

    Raises:
        EnvironmentProblem: if the process ended without a result, as for lack of memory.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:  # nothing may return from here into the parent's code
            os.close(here)
            code = _answer(there, function, *args, **kwargs)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(there)
    try:
        with open(here, "rb") as pipe:
            told = pipe.read()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
    if not told:
        raise EnvironmentProblem(f"the process that checks the input ended early, exit status {status}")
    result, error, attributes = pickle.loads(told)
    if error is None:
        return result
    kind, arguments = error
    raised = kind.__new__(kind, *arguments)  # not by its constructor, which may take other arguments than it keeps
    raised.args = arguments
    vars(raised).update(attributes)
    raise raised


def _answer(pipe: int, function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> int:
    """Run the child's part, and return its exit code."""
    try:
        told = pickle.dumps((function(*args, **kwargs), None, None))
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        told = pickle.dumps((None, (type(e), e.args), vars(e)))
    sys.stdout.flush()
    sys.stderr.flush()
    with open(pipe, "wb") as file:
        file.write(told)
    return 0


def die_with(parent: int, ending: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """Return a function for a child process: it then gets a signal when its parent ends, or has ended."""

    def prepare() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ending)
        if os.getppid() != parent:
            os.kill(os.getpid(), ending)

    return prepare


def end_with_parent() -> None:
    """Let this process of `multiprocessing` end when its parent has ended, whatever it does then.

    Workers of a fork server are children of the server, which lives as long as they do: no signal would come.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
