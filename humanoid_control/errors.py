"""The errors a user can mend. Each message is one line: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import importlib.util
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LONGEST = 1_000  # characters of a message


def one_line(text: str, most: int = LONGEST) -> str:
    """The text as one line that a terminal can show: control characters written out, the middle of a long one left out.

    Args:
        text: may quote what a damaged file holds.
        most: characters; the end of a message says what to do, so that it is kept too.
    """
    if len(text) > most:
        text = f"{text[: 2 * most // 3]} ... {text[-(most // 3) + 5 :]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(error: BaseException) -> str:
    """What an error of a library says, in one line; its kind where it says nothing."""
    return next((line for line in str(error).splitlines() if line.strip()), error.__class__.__name__)


def shown(value: object, most: int = 60) -> str:
    """A value of a file as a message quotes it: its text in one line, cut off where it is long."""
    text = one_line(str(value), 4 * most)
    return text if len(text) <= most else f"{text[: most - 3]}..."


class HumanoidError(Exception):
    """Root of all errors raised on bad input; the command line prints it in one line and exits with code 2."""

    def __str__(self) -> str:
        return one_line(super().__str__())


@contextmanager
def told_of(where: object) -> Iterator[None]:
    """Within it, the message of a HumanoidError begins with the place that it is about, such as a file."""
    try:
        yield
    except HumanoidError as error:
        if str(where) not in str(error):
            error.args = (f"{where}: {error}", *error.args[1:])
        raise


class UnknownNameError(HumanoidError):
    """A name that is not in its catalogue; the message offers the nearest known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        offer = offer_names(name, known)
        super().__init__(f"unknown {kind} '{shown(name)}': {offer}" + (f" {hint}" if hint else ""))
        self.name = name
        self.nearest = nearest_names(name, known)


class RobotError(HumanoidError):
    """A robot description that cannot be read or used."""


class ClipError(HumanoidError):
    """A motion clip that cannot be read or lacks what is needed."""


class PolicyError(HumanoidError):
    """A learned policy whose file cannot be read, contradicts itself, or does not fit the robot."""


class ConfigError(HumanoidError):
    """A parameter or setting outside its range or of the wrong kind."""


class NotANumberError(ConfigError):
    """A value from outside that is not a number, or is infinite."""


def check_time_step(dt: float, where: str) -> None:
    """Refuse a length of a step in which nothing can move on.

    Args:
        dt: [s].
        where: start of the message: what takes the step.

    Raises:
        ConfigError: it is not positive, infinite or no number.
    """
    if not 0.0 < dt < math.inf:
        raise ConfigError(
            f"{where}: dt must be positive and finite, got {dt:g} s: give the seconds since the last step"
        )


class SizeError(ConfigError, ValueError):
    """An array of another shape than expected, which numpy's users catch as a ValueError."""


class SimulationError(HumanoidError):
    """A simulation that cannot continue: a step that diverged, a solver that gave up."""


class EnvironmentProblem(HumanoidError):
    """Something outside the program is missing: a port, ROS 2, a package."""


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
"""Optional packages, as modules, by the extra of pip that brings them."""


def missing_package(error: ModuleNotFoundError) -> EnvironmentProblem | None:
    """An error that says which extra to install; None where the module belongs to none."""
    module = (error.name or "").split(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return EnvironmentProblem(f"{module} is not installed: pip install 'humanoid_control[{extra}]'")
    return None


def missing_extra(extra: str) -> EnvironmentProblem | None:
    """As `missing_package`, for the first module of an extra that is not installed; None where all are."""
    missing = (module for module in EXTRAS[extra] if importlib.util.find_spec(module) is None)
    return next((missing_package(ModuleNotFoundError(name=module)) for module in missing), None)


def require_extra(extra: str) -> None:
    """Make sure that the modules of an extra are installed.

    Raises:
        EnvironmentProblem: one is not.
    """
    if problem := missing_extra(extra):
        raise problem


def offer_names(name: str, known: Iterable[str], what: str = "known") -> str:
    """Advice for a mistyped name: the nearest known ones, or all of them where none comes close; or that there is none.

    Args:
        name: what was typed.
        known: the names that exist.
        what: the word before the list of all.
    """
    known = list(known)
    if not known:
        return "there is none"
    near = nearest_names(name, known)
    return f"did you mean {' or '.join(near)}?" if near else f"{what}: {', '.join(known)}"


def first_few(items: Iterable[str], most: int = 4, separator: str = ", ") -> str:
    """The first few of many, and how many more there are."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return separator.join(items[:most]) + more


def nearest_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """The known names closest to a mistyped one, best first; empty when nothing comes close.

    Args:
        name: what was typed.
        known: the names that exist.
        n: how many to offer at most.
    """
    known = list(known)
    lower = {k.lower(): k for k in known}
    hits = difflib.get_close_matches(name.lower(), list(lower), n=n, cutoff=0.5)
    hits += [low for low in sorted(lower) if name and low.startswith(name.lower()) and low not in hits]
    return [lower[h] for h in hits[:n]]
