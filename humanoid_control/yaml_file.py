"""Reading YAML: with the parser in C where PyYAML was built with it, which takes a tenth of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # both give the same for what is YAML


def read_yaml(path: Path) -> Any:
    """What a YAML file (UTF-8) holds: mappings, lists, texts and numbers, nothing that runs.

    Raises:
        OSError, UnicodeDecodeError, yaml.YAMLError: not readable; not text; not YAML.
    """
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)
