#!/usr/bin/env python3
"""Every dependency of package.xml beside rosdistro: released in each distribution, from Ubuntu, or by pip alone.

usage: python .ci/check_rosdistro.py                  beside the stored extract, test/reference/rosdistro.yaml
       python .ci/check_rosdistro.py --clone DIR      write the extract anew from a clone of github.com/ros/rosdistro

bloom refuses keys that pip alone provides: package.xml takes them only where HUMANOID_PIP is `yes`, which `rosdep
install` sees and bloom does not. Exit code 1 where a key is unknown, or one of pip has no such condition.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
EXTRACT = ROOT / "test" / "reference" / "rosdistro.yaml"
DISTRIBUTIONS = ("jazzy", "kilted", "lyrical")
UBUNTU = {"jazzy": "noble", "kilted": "noble", "lyrical": "resolute"}
CONDITION = "$HUMANOID_PIP == yes"
TAGS = ("depend", "build_depend", "exec_depend", "test_depend")
APT, PIP, RELEASED, UNKNOWN = "apt", "pip", "released", "unknown"


def declared() -> dict[str, str]:
    """Key of package.xml -> its condition, empty for none."""
    root = ET.parse(ROOT / "package.xml").getroot()
    return {d.text or "": d.get("condition", "") for tag in TAGS for d in root.findall(tag)}


def kind_of(key: str, extract: dict[str, Any], distribution: str) -> tuple[str, str]:
    """Where a key comes from in a distribution: one of APT, PIP, RELEASED, UNKNOWN, and the version or the package."""
    if key in extract["distributions"][distribution]:
        return RELEASED, extract["distributions"][distribution][key]
    rule = extract["rosdep"].get(key)
    if isinstance(rule, dict) and "pip" not in rule:
        rule = rule.get(UBUNTU[distribution], rule.get("*"))
    if rule is None:
        return UNKNOWN, ""
    if isinstance(rule, dict):
        return (PIP, ", ".join(rule["pip"]["packages"])) if "pip" in rule else (UNKNOWN, "")
    return APT, ", ".join(rule)


def problems(extract: dict[str, Any]) -> list[str]:
    """What stands against a release, a line a key."""
    found = []
    for key, condition in sorted(declared().items()):
        kinds = {d: kind_of(key, extract, d)[0] for d in DISTRIBUTIONS}
        if missing := [d for d, kind in kinds.items() if kind == UNKNOWN]:
            found.append(f"package.xml: {key} is no key of rosdep and is not released in {', '.join(missing)}")
        if PIP in kinds.values() and condition != CONDITION:
            found.append(f"package.xml: pip alone provides {key}: bloom refuses it without condition='{CONDITION}'")
        if PIP not in kinds.values() and condition:
            found.append(f"package.xml: {key} is released, its condition leaves it out")
    return found


def write_extract(clone: Path) -> None:
    """Keep what package.xml names, with commit and date."""

    def shown(path: str) -> Any:
        done = subprocess.run(["git", "show", f"HEAD:{path}"], cwd=clone, capture_output=True, text=True, check=True)
        return yaml.safe_load(done.stdout)

    commit = subprocess.run(
        ["git", "log", "-1", "--format=%H %cs"], cwd=clone, capture_output=True, text=True, check=True
    )
    rules = {**shown("rosdep/base.yaml"), **shown("rosdep/python.yaml")}
    released = {}
    for d in DISTRIBUTIONS:
        packages = {}
        for name, row in shown(f"{d}/distribution.yaml")["repositories"].items():
            release = row.get("release") or {}
            if version := release.get("version"):
                packages |= dict.fromkeys(release.get("packages", [name]), version)
        released[d] = {key: packages[key] for key in sorted(declared()) if key in packages}
    ubuntu = {key: rules[key].get("ubuntu") for key in sorted(declared()) if key in rules}
    source = dict(zip(("commit", "date"), commit.stdout.split(), strict=True))
    text = yaml.safe_dump(
        {
            "source": {"repository": "https://github.com/ros/rosdistro", **source},
            "rosdep": ubuntu,
            "distributions": released,
        }
    )
    EXTRACT.write_text(
        f"# What rosdistro says of the keys of package.xml; made by .ci/check_rosdistro.py --clone\n{text}"
    )


def main() -> int:
    """Print a row a key, and the problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clone", type=Path)
    if clone := parser.parse_args().clone:
        write_extract(clone)
    extract = yaml.safe_load(EXTRACT.read_text())
    print(f"rosdistro of {extract['source']['date']}, commit {extract['source']['commit'][:9]}\n")
    print(f"| key | {' | '.join(DISTRIBUTIONS)} |\n|---|{'---|' * len(DISTRIBUTIONS)}")
    for key in declared():
        print(f"| {key} | {' | '.join(' '.join(kind_of(key, extract, d)) for d in DISTRIBUTIONS)} |")
    found = problems(extract)
    print("\n" + ("\n".join(found) or "nothing stands against a release"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
