"""Reading YAML: with the parser in C where PyYAML was built with it, which takes a tenth of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from humanoid_control.errors import RobotError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # both give the same for what is YAML


def read_yaml(path: Path) -> Any:
    """What a YAML file (UTF-8) holds: mappings, lists, texts and numbers, nothing that runs.

    Raises:
        OSError, UnicodeDecodeError, yaml.YAMLError: not readable; not text; not YAML.
    """
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)


def schema_file(path: Path, schema: str, what: str) -> dict[str, Any]:
    """The mapping in a YAML file that begins with its schema.

    Args:
        what: it is, for the message: 'file of tendons'.

    Raises:
        RobotError: not readable, or of another kind.
    """
    try:
        d = read_yaml(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise RobotError(f"{path}: not a readable {what}: {why(e)}") from None
    if not isinstance(d, dict) or d.get("schema") != schema:
        raise RobotError(f"{path}: the first key must be 'schema: {schema}'")
    return d


def why(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """Why a file could not be read, in one line, with the line of the file where that is known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem or error.context} (line {error.problem_mark.line + 1})"
    return getattr(error, "strerror", None) or str(error).splitlines()[0]
