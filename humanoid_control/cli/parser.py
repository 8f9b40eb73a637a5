"""Argument parsers with one-line errors that suggest the nearest spelling."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from humanoid_control.errors import ConfigError, EnvironmentProblem, nearest_names
from humanoid_control.robots.names import HUMANOIDS, SETS
from humanoid_control.terminal import warn

if TYPE_CHECKING:
    from humanoid_control.mocap import BodyPoints
    from humanoid_control.robots import Robot

EXIT_BAD_INPUT = 2
HOST = "127.0.0.1"  # address of pages
CHOICE = re.compile(r"argument (?P<kind>\S+): invalid choice: '(?P<wrong>.*)' \(choose from (?P<known>.*)\)", re.S)


class Parser(argparse.ArgumentParser):
    """Argument parser without abbreviations, without a wrapped epilog, with one-line errors.

    Attributes:
        siblings: parsers next to a sub-command by name, to recognise their options.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)
        self.siblings: Mapping[str, argparse.ArgumentParser] = {}

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument; a list with commas may also be given in several options, and none of them is lost."""
        if options.get("type") is comma_list:
            options.setdefault("action", "extend")
        return super().add_argument(*names, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse, but let the sub-command reject unknown arguments.

        If only one of --robot and --robots exists, it accepts both spellings.
        """
        args = [self._own_robot_option(text) for text in (sys.argv[1:] if args is None else args)]
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown and self.siblings:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown

    def _own_robot_option(self, text: str) -> str:
        name, equals, value = text.partition("=")
        other = {"--robot": "--robots", "--robots": "--robot"}.get(name, "")
        known = self._option_string_actions
        return f"{other}{equals}{value}" if other in known and name not in known else text

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with code 2."""
        if message.startswith("unrecognized arguments:"):
            message = self._unknown(message.split(":", 1)[1].split()[0])
        elif found := CHOICE.match(message):
            known = [name.strip(" '\"") for name in found["known"].split(",")]
            near = nearest_names(found["wrong"], known)
            offer = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
            message = f"unknown {found['kind']} '{found['wrong']}': {offer}"
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _unknown(self, wrong: str) -> str:
        option = wrong.split("=")[0]
        command, _, name = self.prog.rpartition(" ")
        for other in self.siblings.values():
            for action in other._actions:
                if option in action.option_strings:
                    return f"{action.option_strings[-1]} is not for the {command.split()[-1]} '{name}'"
        near = nearest_names(option, [o for action in self._actions for o in action.option_strings])
        return f"unknown argument '{wrong}'" + (f": did you mean {' or '.join(near)}?" if near else "")


def add_commands(parser: argparse.ArgumentParser, key: str, tasks: Mapping[str, str]) -> dict[str, Parser]:
    """Create a parser for each sub-command.

    Args:
        key: key of the chosen name in the namespace, such as 'bench'.
        tasks: name -> one-line description.
    """
    group = parser.add_subparsers(
        dest=key, metavar=key, required=True, parser_class=Parser, help="one of the following:"
    )
    parsers = {
        name: group.add_parser(name, help=task, description=f"{task[0].upper()}{task[1:]}.")
        for name, task in tasks.items()
    }
    for one in parsers.values():
        one.siblings = parsers
    return parsers


# -------- Types and checks of arguments


def given(text: str) -> str:
    """Argument type: non-empty text."""
    if not text.strip():
        raise argparse.ArgumentTypeError("'' contains no name")
    return text.strip()


def comma_list(text: str) -> list[str]:
    """Argument type: non-empty, comma-separated words."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise argparse.ArgumentTypeError(f"'{text}' contains no name")
    return words


def number_list(text: str) -> list[float]:
    """Argument type: comma-separated numbers."""
    try:
        return [float(word) for word in comma_list(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number or a list of numbers, such as 20,50") from None


def file_path(text: str) -> Path:
    """Argument type: path of a file, not of a folder."""
    if given(text).endswith(os.sep):
        raise argparse.ArgumentTypeError(f"'{text}' is a folder: give a file")
    return Path(text)


def folder_path(text: str) -> Path:
    """Argument type: path of a folder."""
    return Path(given(text))


def is_folder(text: str) -> bool:
    """Return whether an output is a folder: it exists as one, ends with a slash, or has no suffix.

    `res.v1/` is a folder; `res.csv` is a file unless a folder has this name.
    """
    return text.endswith(os.sep) or os.path.isdir(text) or not Path(text).suffix


def add_robots(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option of one or more robots for `load_robots`; None if not given.

    Args:
        default: robots without the option, for the help.
    """
    parser.add_argument(
        "--robot",
        type=comma_list,
        metavar="ROBOT[,ROBOT]",
        help=f"robot name, path of a URDF or MJCF file, or {' or '.join((*SETS, HUMANOIDS))}; repeatable "
        f"(default: {default})",
    )


def tell_notes(robots: Iterable[Robot]) -> None:
    """Warn about lost or wrong parts of robot descriptions."""
    for robot in robots:
        for note in robot.notes:
            warn(note)


def require_range(option: str, value: float | None, low: float, high: float) -> None:
    """Check the range of a number; None passes.

    Raises:
        ConfigError: if it is outside, or not a number.
    """
    if value is not None and not low <= value <= high:
        raise ConfigError(f"--{option} must be between {low:g} and {high:g}, got {value:g}")


def require_free_port(port: int, host: str = HOST) -> None:
    """Check that the port of `--port` is free.

    Raises:
        EnvironmentProblem: if it is occupied.
        ConfigError: if port or address is invalid.
    """
    from humanoid_control.viewer import port_is_free

    if not port_is_free(host, port):
        raise EnvironmentProblem(f"port {port} is in use: choose another with --port, or stop the program that uses it")


def page_answers(url: str, seconds: float) -> bool:
    """Wait for a page up to `seconds`; return whether it answers."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2.0):
            return True
        time.sleep(0.1)
    return False


def refuse_unused(args: argparse.Namespace, options: Iterable[str], belongs: str) -> None:
    """Reject given options without effect.

    Args:
        options: names without dashes; positional arguments in capitals.
        belongs: owner of the options, for the message.

    Raises:
        ConfigError: if one was given.
    """
    for option in options:
        if getattr(args, option.lower().replace("-", "_")) not in (None, False, []):
            name = option if option.isupper() else f"--{option}"
            raise ConfigError(f"{name} applies to {belongs}")


def take_settings(
    args: argparse.Namespace, settings: Mapping[str, Mapping[str, Any]], options: Mapping[str, Mapping[str, str]]
) -> None:
    """Copy given node parameters to the options of the same meaning.

    Args:
        args: changed; options not given are None.
        settings: node -> parameter -> value.
        options: node -> parameter -> option without dashes.

    Raises:
        ConfigError: if an option was given with another value.
    """
    for node, parameters in options.items():
        for name, option in parameters.items():
            value, key = settings.get(node, {}).get(name), option.replace("-", "_")
            if value is None or (value in ("", 0.0) and not isinstance(value, int)):  # default, for these parameters
                continue
            if getattr(args, key) not in (None, value):
                raise ConfigError(f"--set {node}.{name}={value} contradicts --{option} {getattr(args, key)}: give one")
            setattr(args, key, value)


# -------- Clips

CLIP_HELP = (
    "motion clip: dance or gentle_dance (built in), or a C3D, TRC, BVH, FBX, glTF, AMC, CSV, NPZ "
    "(SMPL, landmarks), PKL or PT file; folder members and archive members work too: clips.zip:walk.bvh"
)
RATES = (0.1, 1000.0)  # [Hz] of motion capture
CLIP_OPTIONS = ("marker-set", "unit", "scale", "rate", "up")
"""Names of the options of `add_clip_options`; each is None if not given."""
CLIP_PARAMETERS = {
    "marker_set": "marker-set",
    "clip_unit": "unit",
    "clip_scale": "scale",
    "clip_rate": "rate",
    "clip_up": "up",
}
"""Parameter of the node `trajectory_streamer` -> option of `add_clip_options`."""


def add_clip_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a motion file."""
    parser.add_argument(
        "--marker-set", type=given, help="marker set of the clip: a name, or the path of a marker set file"
    )
    parser.add_argument("--unit", type=given, help="length unit of the file: mm, cm, m, inch (default: detected)")
    parser.add_argument("--scale", type=float, help="scale factor for skeletons of other sizes (default: 1)")
    parser.add_argument(
        "--rate",
        type=float,
        help="frame rate [Hz] of AMC, CSV, NPZ, PKL and PT files without one, or of BVH files with a wrong one",
    )
    parser.add_argument("--up", type=given, help="upward axis of the file: x, y, z, -x, -y, -z (default: detected)")


def add_speed(parser: argparse.ArgumentParser) -> None:
    """Add the option of a clip's pace, see `Targets.paced`."""
    parser.add_argument(
        "--speed", type=float, default=1.0, help="playback speed of the clip at an unchanged frame rate (default: 1)"
    )


def clip_options(args: argparse.Namespace) -> tuple[str | None, dict[str, Any]]:
    """Return the marker set or None, and the options of `load_clip` and `load_body_points`."""
    scale = 1.0 if args.scale is None else args.scale
    require_range("rate", args.rate, *RATES)
    return args.marker_set, {"unit": args.unit or "", "scale": scale, "rate": args.rate, "up": args.up or ""}


def clip_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given clip options as parameters of node `trajectory_streamer`."""
    chosen = {name: getattr(args, option.replace("-", "_")) for name, option in CLIP_PARAMETERS.items()}
    return {name: value for name, value in chosen.items() if value is not None}


def read_body(args: argparse.Namespace) -> BodyPoints:
    """Read the clip's body points, cleaned unless `--raw`, with warnings."""
    from humanoid_control.mocap import load_body_points, load_clip, locate_body

    marker_set, reading = clip_options(args)
    if args.raw:
        body = locate_body(load_clip(args.clip, **reading), marker_set)
    else:
        body = load_body_points(args.clip, marker_set, **reading)
    for text in body.warnings:
        warn(text)
    return body
