"""Errors that a user can correct: one line with the problem, the place and the remedy."""

from __future__ import annotations

import difflib
import importlib.util
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LONGEST = 1_000  # characters of a message


def one_line(text: str, most: int = LONGEST) -> str:
    """Return a text as one printable line, with escaped control characters and without the middle of long texts.

    Args:
        text: may quote damaged files.
        most: largest length; the end gives the remedy and is kept.
    """
    if len(text) > most:
        text = f"{text[: 2 * most // 3]} ... {text[-(most // 3) + 5 :]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(error: BaseException) -> str:
    """Return the first line of a library's error, or its class."""
    return next((line for line in str(error).splitlines() if line.strip()), error.__class__.__name__)


def shown(value: object, most: int = 60) -> str:
    """Return a value for quotation in a message: one line, truncated."""
    try:
        text = one_line(str(value), 4 * most)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= most else f"{text[: most - 3]}..."


class HumanoidError(Exception):
    """Root of all errors of bad input; the command line prints one line and exits with code 2."""

    def __str__(self) -> str:
        return one_line(super().__str__())


@contextmanager
def told_of(where: object) -> Iterator[None]:
    """Prefix the message of a HumanoidError with its place, such as a file."""
    try:
        yield
    except HumanoidError as error:
        if str(where) not in str(error):
            error.args = (f"{where}: {error}", *error.args[1:])
        raise


class UnknownNameError(HumanoidError):
    """Unknown name; the message offers the nearest known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        offer = offer_names(name, known)
        super().__init__(f"unknown {kind} '{shown(name)}': {offer}" + (f" {hint}" if hint else ""))
        self.name = name
        self.nearest = nearest_names(name, known)


class RobotError(HumanoidError):
    """Robot description that cannot be read or used."""


class ClipError(HumanoidError):
    """Motion clip that cannot be read or is incomplete."""


class PolicyError(HumanoidError):
    """Learned policy that is unreadable, inconsistent, or does not fit the robot."""


class ConfigError(HumanoidError):
    """Parameter or setting out of range or of the wrong kind."""


class NotANumberError(ConfigError):
    """External value that is not a finite number."""


def check_time_step(dt: float, where: str) -> None:
    """Reject an invalid time step.

    Raises:
        ConfigError: if dt is not positive and finite.
    """
    if not 0.0 < dt < math.inf:
        raise ConfigError(
            f"{where}: dt must be positive and finite, got {dt:g} s: give the seconds since the last step"
        )


class SizeError(ConfigError, ValueError):
    """Array of another shape than expected; also a ValueError for users of numpy."""


class SimulationError(HumanoidError):
    """Simulation that cannot continue: divergence, or a failed solver."""


class EnvironmentProblem(HumanoidError):
    """Missing part of the environment: a port, ROS 2, a package."""


EXTRAS = {
    "viewer": ("viser", "trimesh", "websockets"),
    "video": ("imageio_ffmpeg", "PIL"),
    "report": ("matplotlib",),
    "mujoco": ("mujoco",),
    "canopen": ("canopen", "can"),
    "unitree": ("cyclonedds",),
    "dynamixel": ("serial",),
    "cluster": ("distributed", "fsspec"),
    "policy": ("onnxruntime", "onnx"),
    "bench": ("pink", "mink", "qpsolvers", "filterpy"),
}
"""Extra of pip -> its optional packages, as modules."""


def missing_package(error: ModuleNotFoundError) -> EnvironmentProblem | None:
    """Return an error with the pip extra of a missing module; None if no extra provides it."""
    module = (error.name or "").split(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return EnvironmentProblem(f"{module} is not installed: pip install 'humanoid_control[{extra}]'")
    return None


def missing_extra(extra: str) -> EnvironmentProblem | None:
    """Return the error of the first missing module of an extra; None if all are installed."""
    missing = (module for module in EXTRAS[extra] if importlib.util.find_spec(module) is None)
    return next((missing_package(ModuleNotFoundError(name=module)) for module in missing), None)


def require_extra(extra: str) -> None:
    """Check that the modules of an extra are installed.

    Raises:
        EnvironmentProblem: if one is missing.
    """
    if problem := missing_extra(extra):
        raise problem


def offer_names(name: str, known: Iterable[str], what: str = "known") -> str:
    """Return advice for a mistyped name: the nearest known names, or all."""
    known = list(known)
    if not known:
        return "none available"
    near = nearest_names(name, known)
    return f"did you mean {' or '.join(near)}?" if near else f"{what}: {', '.join(known)}"


def first_few(items: Iterable[str], most: int = 4, separator: str = ", ") -> str:
    """Return the first items, and the number of the others."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return separator.join(items[:most]) + more


def nearest_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return up to n known names closest to a mistyped one, best first."""
    known = list(known)
    lower = {k.lower(): k for k in known}
    hits = difflib.get_close_matches(name.lower(), list(lower), n=n, cutoff=0.5)
    hits += [low for low in sorted(lower) if name and low.startswith(name.lower()) and low not in hits]
    return [lower[h] for h in hits[:n]]
