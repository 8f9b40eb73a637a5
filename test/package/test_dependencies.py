"""The table of dependencies is that of setup.py and constraints.txt, and its licences are where it says."""

import re
import runpy
from importlib import metadata
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[2]
NAME = r"[A-Za-z0-9_.\-]+"


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def table():
    """Package -> (needed by, range, tested versions, licence)."""
    text = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$", text, flags=re.MULTILINE)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def required():
    """Package -> (extras that need it, "library" for none; range), of setup.py."""
    told = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", told.update)
        patch.chdir(ROOT)
        runpy.run_path(str(ROOT / "setup.py"))
    found = {}
    for extra, rows in {"library": told["install_requires"], **told["extras_require"]}.items():
        for row in rows if extra != "all" else ():
            name, wanted = re.match(rf"({NAME})(?:\[[^\]]*\])?([^;]*)", row).groups()
            by, _ = found.setdefault(normal(name), (set(), wanted.strip() or "any"))
            by.add(extra)
    return {name: (by - {"test"} or {"test"}, wanted) for name, (by, wanted) in found.items()}


def test_every_package_that_is_required_has_its_row(table, required):
    assert sorted(table) == sorted(required)
    for name, (by, wanted) in required.items():
        assert (table[name][0], table[name][1]) == (", ".join(sorted(by)), wanted), name


def test_tested_versions_are_those_of_the_constraints(table):
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if match := re.match(rf"({NAME})==([^;\s]+)", line):
            pinned.setdefault(normal(match[1]), set()).add(match[2])
    for name, (by, _, versions, _) in table.items():
        if name in pinned:
            assert versions == ", ".join(sorted(pinned[name])), name
        else:
            assert versions.startswith("not pinned: "), name
            assert {*by.split(", ")} <= {"bench", "bench-crocoddyl", "bench-opensim", "bench-placo", "docs", "parquet"}


def test_licences_are_stated_where_the_table_says(table):
    for name, (*_, licence) in table.items():
        try:
            found = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        classifiers = [c for c in found.get_all("Classifier") or [] if c.startswith("License ::")]
        states = bool(found.get("License-Expression") or (found.get("License") or "").strip() or classifiers)
        assert licence.endswith("(metadata)") == states, f"{name}: {licence}"
