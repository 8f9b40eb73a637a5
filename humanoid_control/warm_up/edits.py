"""Kernels that an edit of a source recompiles, and the names that lead to them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from humanoid_control.errors import ConfigError, shown
from humanoid_control.source_graph import ALL, SourceGraph, changed_definitions, module_name, read_sources
from humanoid_control.source_names import FIELDS, MAIN, STATEMENTS, Source, read_source

MOST_CHAINS, LONGEST_CHAIN = 8, 5  # printed per name; names per chain
PACKAGE_FOLDER = Path(__file__).parents[1]


class NameUse(NamedTuple):
    """Name of an edited source and dependent kernels.

    Attributes:
        name: in the source; "any name" for a compiler extension.
        kernels: each with the shortest chain of definitions to the name, nearest first.
        changed: since the last commit.
    """

    name: str
    kernels: Mapping[str, list[str]]
    changed: bool


def explain_edit(file: Path, root: Path = PACKAGE_FOLDER) -> Iterator[str]:
    """Yield lines with the kernels that an edit recompiles, and the reasons.

    Raises:
        ConfigError: if the file is not a source of the package.
    """
    path = _source_path(file, root)
    sources = read_sources(root.parent, (root.name,))
    old = _committed(root, path)
    graph = SourceGraph(sources)
    uses = name_uses(graph, sources, path, old)
    total = len(set().union(*(use.kernels for use in uses)))
    yield f"{path}: an edit can drop {total} of {len(graph.kernels)} kernels"
    home = f"{root.name}."
    for use in uses:
        mark = " (changed)" if use.changed else ""
        yield f"  {use.name}{mark}: {len(use.kernels)} kernel{'s' * (len(use.kernels) != 1)}"
        for chain in list(use.kernels.values())[:MOST_CHAINS]:
            yield f"    {_shown_chain(chain, home)}"
        if len(use.kernels) > MOST_CHAINS:
            yield f"    and {len(use.kernels) - MOST_CHAINS} more"
    if old is None:
        yield "no earlier version in git: all names count as unchanged"
        return
    dropped = set().union(*(use.kernels for use in uses if use.changed))
    changed = sorted(n for n in (c.partition(":")[2] for c in changed_definitions({path: old}, {path: sources[path]}))
                     if not n.endswith(FIELDS))  # fmt: skip
    if changed:
        yield f"changed since the last commit: {', '.join(changed)}; {len(dropped)} kernels are dropped"
    else:
        yield "no code has changed since the last commit: no kernel is dropped"


def name_uses(graph: SourceGraph, sources: Mapping[str, Source], path: str, old: Source | None) -> list[NameUse]:
    """Return the names of a source that kernels depend on, changed ones first.

    Args:
        old: its version in the last commit, or None.
    """
    module = module_name(path)
    changed = changed_definitions({path: old}, {path: sources[path]}) if old else set[str]()
    if module in graph.compiler:
        kernels = dict(graph.chains(f"{module}:{ALL}", graph.kernels))
        return [NameUse("any name", kernels, bool(changed))]
    uses = []
    before = SourceGraph({**sources, path: old}) if old and changed else graph
    for node in sorted({f"{module}:{name}" for name in sources[path].definitions} | changed):
        name = node.partition(":")[2]
        there = graph if name in sources[path].definitions else before  # removed names: from the old graph
        kernels = dict(there.chains(node, there.kernels))
        if kernels and name != MAIN:
            uses.append(NameUse(_shown(name), kernels, node in changed))
    return sorted(uses, key=lambda use: not use.changed)


def _source_path(file: Path, root: Path) -> str:
    """Return the path of a source relative to the package's parent folder."""
    if not file.exists():
        raise ConfigError(f"{shown(file, 200)} not found: give a source file of {root.name}")
    real = file.resolve()
    if real.suffix != ".py" or not real.is_file() or not real.is_relative_to(root.resolve()):
        raise ConfigError(f"{shown(file, 200)} is not a source of {root.name}: give a .py file below {root}")
    return real.relative_to(root.resolve().parent).as_posix()


def _committed(root: Path, path: str) -> Source | None:
    try:
        name = f"HEAD:./{path.partition('/')[2]}"
        found = subprocess.run(["git", "-C", str(root), "show", name], capture_output=True, check=True)
        return read_source(found.stdout.decode())
    except (OSError, subprocess.CalledProcessError, SyntaxError, ValueError):
        return None


def _shown(name: str) -> str:
    if name == STATEMENTS:
        return "its statements"
    return f"fields of {name.removesuffix(FIELDS)}" if name.endswith(FIELDS) else name


def _shown_chain(chain: list[str], home: str) -> str:
    """Return the text of a chain: modules where they change, long middles omitted."""
    names, last = list[str](), ""
    for node in chain:
        module, _, name = node.partition(":")
        text = "all names" if name == ALL else _shown(name)
        names.append(text if module == last else f"{module.removeprefix(home)}: {text}")
        last = module
    if len(names) > LONGEST_CHAIN:
        names = [*names[:2], "...", *names[-(LONGEST_CHAIN - 3) :]]
    return " > ".join(names)
