"""Tests that a change reaches, by the static graph of names.

A test depends on its function, its fixtures, the statements of its file and of the conftest files above it, not on the
hooks of pytest there. A changed file that is not in the graph selects the tests that depend on a definition that
mentions the name of the file.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree import ElementTree

from humanoid_control.source_graph import (
    ALL,
    PROCESSES,
    SourceCache,
    SourceGraph,
    blob_id,
    changed_definitions,
    module_name,
)
from humanoid_control.source_names import STATEMENTS, Source

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDERS = ("humanoid_control", "evidence", "test", "examples")
# Tests with these are left out, as are tests that start processes.
MARKS = ("ros", "browser", "stack", "drives", "processes", "timed", "nightly", "thorough")
UNKNOWN = 0.2  # [s] of a test that no earlier run has measured
FAR = 1_000  # steps of a test that only lies near a changed file
COMMANDS = "humanoid_control.cli.main"  # imports the module of a command when it runs it
# They read the sources themselves, so they run for every change of the package.
READ_SOURCES = ("test/package/test_house.py", "test/package/test_layers.py")
_WORD = re.compile(r"[A-Za-z_]\w*")


class Tree(NamedTuple):
    """Sources of a version.

    Attributes:
        sources: by path.
        text: returns the text of a source.
    """

    sources: Mapping[str, Source]
    text: Callable[[str], str]


class Change(NamedTuple):
    """Difference of two versions.

    Attributes:
        before: sources of the first version.
        after: all sources of the second.
        files: paths of all changed files, also of those that are not Python.
    """

    before: Mapping[str, Source]
    after: Tree
    files: frozenset[str]


class ReachedTest(NamedTuple):
    """A test function, or a class of tests.

    Attributes:
        nodeid: as pytest writes it, without parameters.
        distance: steps of the shortest chain to a changed name.
        seconds: that its cases took in an earlier run.
        left_out: reason why it does not run; empty where it does.
    """

    nodeid: str
    distance: int
    seconds: float
    left_out: str


# -------- Versions


def git(*args: str, root: Path = REPOSITORY, given: bytes = b"") -> bytes:
    """Return the output of a git command; empty where it fails."""
    return subprocess.run(["git", "-C", str(root), *args], input=given, capture_output=True).stdout


def _names(output: bytes) -> list[str]:
    return [name for name in output.decode().split("\0") if name]


def in_graph(path: str) -> bool:
    return path.endswith(".py") and path.partition("/")[0] in FOLDERS


def committed(revision: str, cache_of: SourceCache, root: Path = REPOSITORY, only: Iterable[str] | None = None) -> Tree:
    """Return the sources of a commit.

    Args:
        revision: of the commit.
        cache_of: sources that are known.
        root: of the repository.
        only: paths to read; by default all.
    """
    rows = [row.split("\t") for row in _names(git("ls-tree", "-r", "-z", revision, root=root))]
    blobs = {path: info.split()[2] for info, path in rows if in_graph(path) and (only is None or path in only)}
    new = [blob for blob in dict.fromkeys(blobs.values()) if blob not in cache_of]
    texts = _contents(new, root)
    whole = cache(lambda: _contents(sorted(set(blobs.values())), root))
    sources = {path: cache_of.get(blob, texts.get(blob, b"")) for path, blob in blobs.items()}
    return Tree(sources, lambda path: whole()[blobs[path]].decode())


def _contents(blobs: list[str], root: Path) -> dict[str, bytes]:
    data, at, found = git("cat-file", "--batch", root=root, given="\n".join(blobs).encode()) if blobs else b"", 0, {}
    for blob in blobs:
        end = data.index(b"\n", at)
        size = int(data[at:end].split()[2])
        found[blob] = data[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def working(cache_of: SourceCache, root: Path = REPOSITORY) -> Tree:
    """Return the sources as they lie in the working tree."""
    found = {}
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*.py")):
        data = path.read_bytes()
        found[path.relative_to(root).as_posix()] = cache_of.get(blob_id(data), data)
    return Tree(found, lambda path: (root / path).read_text())


def default_base(root: Path = REPOSITORY) -> str:
    """Return where the work on this branch began; the last commit if the tree has changes, else the one before it."""
    head = git("rev-parse", "HEAD", root=root).strip()
    begin = git("merge-base", "origin/main", "HEAD", root=root).strip()
    if begin and begin != head:
        return begin.decode()
    return "HEAD" if git("status", "--porcelain", root=root).strip() else "HEAD~1"


def change_since(revision: str, cache_of: SourceCache, root: Path = REPOSITORY) -> Change:
    """Return the change from a commit to the working tree, with new files that git does not ignore."""
    files = _names(git("diff", "--name-only", "--no-renames", "-z", revision, root=root))
    files += _names(git("ls-files", "--others", "--exclude-standard", "-z", root=root))
    before = committed(revision, cache_of, root, only=files)
    return Change(before.sources, working(cache_of, root), frozenset(files))


def change_of(revision: str, cache_of: SourceCache, root: Path = REPOSITORY) -> Change:
    """Return the change that a commit made."""
    files = _names(git("diff", "--name-only", "--no-renames", "-z", f"{revision}^", revision, root=root))
    before = committed(f"{revision}^", cache_of, root, only=files)
    return Change(before.sources, committed(revision, cache_of, root), frozenset(files))


# -------- Tests and fixtures


class Suite:
    """Test functions of a version and the definitions that each depends on."""

    def __init__(self, tree: Tree) -> None:
        self.graph = SourceGraph(tree.sources)
        self._paths = {module_name(path): path for path in tree.sources}
        self._homes = cache(self._find_homes)
        self._visible = cache(self._find_fixtures)
        self._starting = set[str]()
        waiting = [f"{each}:" for each in PROCESSES]
        while waiting:
            users = {each for each in self.graph.users.get(waiting.pop(), ()) if each.startswith("test.")}
            waiting += users - self._starting
            self._starting |= users

    def tests(self) -> Iterator[tuple[str, str]]:
        """Yield module and name of each test function and class of tests."""
        for module, source in self.graph.sources.items():
            if module.startswith("test.") and module.rpartition(".")[2].startswith("test_"):
                for name, definition in source.definitions.items():
                    if name.startswith("Test" if definition.is_class else "test_") and definition.lines[1]:
                        yield module, name

    def nodeid(self, module: str, name: str) -> str:
        return f"{self._paths[module]}::{name}"

    def dependencies(self, module: str, name: str) -> set[str]:
        """Return the definitions that pytest runs for a test."""
        found = {f"{module}:{name}"}
        if "pytestmark" in self.graph.sources[module].definitions:
            found.add(f"{module}:pytestmark")
        fixtures, everyone = self._visible(module)
        waiting = [f"{module}:{name}", *everyone]
        for home in self._homes(module)[1:]:
            if STATEMENTS in self.graph.sources[home].definitions:
                found.add(f"{home}:{STATEMENTS}")
        seen = set[str]()
        while waiting:
            node = waiting.pop()
            definition = self.graph.definition(node)
            if node in seen or definition is None:
                continue
            seen.add(node)
            wanted = set(definition.parameters)
            if "request" in wanted or any(each.endswith("usefixtures") for each in definition.decorators):
                wanted |= {text[1:] for text in definition.references if text[0] == "'"}
            waiting += [fixtures[each] for each in wanted if each in fixtures]
        return found | seen

    def marks(self, module: str, name: str) -> set[str]:
        """Return the marks of a test, also those of its module."""
        definitions = self.graph.sources[module].definitions
        texts = list(definitions[name].decorators)
        if "pytestmark" in definitions:
            texts += definitions["pytestmark"].references
        return {text.removeprefix("pytest.mark.") for text in texts if text.startswith("pytest.mark.")}

    def starts_processes(self, nodes: Iterable[str]) -> bool:
        """True where the code of the tests itself starts processes for these definitions."""
        return not self._starting.isdisjoint(nodes)

    def _find_homes(self, module: str) -> list[str]:
        """The module itself, then the conftest modules above it, the nearest first."""
        parts = module.split(".")[:-1]
        above = [".".join([*parts[: len(parts) - k], "conftest"]) for k in range(len(parts))]
        return [module, *(each for each in above if each in self.graph.sources)]

    def _find_fixtures(self, module: str) -> tuple[Mapping[str, str], list[str]]:
        """Fixtures that a module sees, by name, and those that every test gets."""
        found, everyone = dict[str, str](), list[str]()
        for home in self._homes(module):
            source = self.graph.sources[home]
            for name in (*source.definitions, *source.imports):
                node = self.graph.resolve(home, name)
                definition = self.graph.definition(node)
                kinds = (
                    [d for d in definition.decorators if d.partition("(")[0].endswith("fixture")] if definition else []
                )
                if kinds:
                    found.setdefault(name, node)
                    everyone += [node] * any("autouse" in kind for kind in kinds)
        return found, everyone


# -------- Selection


class Reach:
    """Distances of definitions from the changed ones.

    The command line imports the modules of all commands by name. Code depends on a command there only where the command
    is named: by the test, by code of the tests that it uses, or by the source that calls the command line.
    """

    def __init__(self, suite: Suite, tree: Tree, changed: Iterable[str]) -> None:
        self._graph, self._text = suite.graph, cache(lambda path: tree.text(path).splitlines())
        self._paths = {module_name(path): path for path in tree.sources}
        self._words = cache(self._find_words)
        self._sure: dict[str, int] = {}
        self._by_command: dict[str, dict[str, int]] = defaultdict(dict)
        waiting = deque((node, "", 0) for node in changed)
        while waiting:
            node, command, distance = waiting.popleft()
            known = self._by_command[node] if command else self._sure
            if node in self._sure or (key := command or node) in known:
                continue
            known[key] = distance
            for user in self._graph.users.get(node, ()):
                waiting.append((user, self._condition(node, command, user), distance + 1))

    def _condition(self, node: str, command: str, user: str) -> str:
        """Name of the command that a test must name to depend on a changed definition through this user; or empty."""
        home, _, name = node.partition(":")
        if (
            user.startswith(f"{COMMANDS}:")
            and name == ALL
            and home.startswith(("humanoid_control.cli.", "evidence.commands."))
            and home != COMMANDS
        ):
            return home.rpartition(".")[2]
        if command and home == COMMANDS and not user.startswith(f"{COMMANDS}:"):
            is_test = user.startswith("test.")
            definition = self._graph.definition(user)
            is_named = definition is not None and f"'{command}" in definition.references
            if name.isupper() if is_test else is_named:
                return ""
        return command

    def distance(self, nodes: Iterable[str]) -> int | None:
        """Return the steps from the nearest of these definitions to a changed one; None where there is no chain."""
        nodes = set(nodes)
        found = [self._sure[node] for node in nodes if node in self._sure]
        conditions = [pair for node in nodes for pair in self._by_command.get(node, {}).items()]
        if conditions and not found:
            words = set().union(*map(self._words, self._tests_below(nodes)))
            found = [distance for command, distance in conditions if command in words]
        return min(found, default=None)

    def _tests_below(self, nodes: Iterable[str]) -> set[str]:
        waiting, seen = list(nodes), set[str]()
        while waiting:
            node = waiting.pop()
            if node not in seen and node.startswith("test."):
                seen.add(node)
                waiting += self._graph.edges.get(node, ())
        return seen

    def _find_words(self, node: str) -> frozenset[str]:
        definition = self._graph.definition(node)
        if definition is None:
            return frozenset()
        first, last = definition.lines
        lines = self._text(self._paths[node.partition(":")[0]])[first - 1 : last]
        return frozenset(_WORD.findall("\n".join(lines)))


def reached_tests(change: Change, seconds: Mapping[str, float]) -> tuple[list[ReachedTest], int]:
    """Return the tests that a change reaches, the nearest and quickest first, and the number of all tests.

    Args:
        change: of the sources.
        seconds: that tests took earlier, by their ids without parameters; and that files took, by their paths.
    """
    suite = Suite(change.after)
    reach = Reach(suite, change.after, _changed_nodes(change, suite.graph))
    near = set(_near_folders(change, suite.graph))
    tests, found = list(suite.tests()), []
    in_file = Counter(suite.nodeid(module, name).partition("::")[0] for module, name in tests)
    for module, name in tests:
        nodes = suite.dependencies(module, name)
        nodeid = suite.nodeid(module, name)
        distance = reach.distance(nodes)
        if distance is None and any(nodeid.startswith(f"{folder}/") for folder in near):
            distance = FAR
        if distance is None:
            continue
        marks = sorted(suite.marks(module, name).intersection(MARKS))
        reason = marks[0] if marks else "processes" if suite.starts_processes(nodes) else ""
        file = nodeid.partition("::")[0]
        expected = seconds[file] / in_file[file] if file in seconds else UNKNOWN
        found.append(ReachedTest(nodeid, distance, seconds.get(nodeid, expected), reason))
    return sorted(found, key=lambda test: (test.distance, test.seconds)), len(tests)


def cut_at(tests: Iterable[ReachedTest], budget: float) -> list[ReachedTest]:
    """Return the first tests that take no longer than the budget together.

    Args:
        tests: in their order.
        budget: [s]
    """
    chosen, total = [], 0.0
    for test in tests:
        if total + test.seconds <= budget:
            chosen.append(test)
            total += test.seconds
    return chosen


def _changed_nodes(change: Change, graph: SourceGraph) -> set[str]:
    old = {path: source for path, source in change.before.items() if path in change.files}
    new = {path: source for path, source in change.after.sources.items() if path in change.files}
    changed = changed_definitions(old, new)
    # A name that is gone is resolved to its whole module where something still uses it.
    changed |= {f"{node.partition(':')[0]}:{ALL}" for node in changed if graph.definition(node) is None}
    for path in _other_files(change):
        changed |= set(_mentions(PurePosixPath(path).name, change.after))
    return changed


def _other_files(change: Change) -> list[str]:
    """Changed files that nothing imports: data, documents, scripts, examples."""
    return [path for path in change.files if not in_graph(path) or path.startswith("examples/")]


def _mentions(name: str, tree: Tree) -> Iterator[str]:
    """Definitions of the tests and of the package with the name of a file in their lines."""
    for path, source in tree.sources.items():
        text = tree.text(path)
        if name not in text:
            continue
        rows = [k for k, line in enumerate(text.splitlines(), 1) if name in line]
        for each, definition in source.definitions.items():
            if any(definition.lines[0] <= row <= definition.lines[1] for row in rows):
                yield f"{module_name(path)}:{each}"


def _near_folders(change: Change, graph: SourceGraph) -> Iterator[str]:
    """Folders of tests that lie nearest to changed files that no source mentions."""
    folders = {
        str(PurePosixPath(module.replace(".", "/")).parent) for module in graph.sources if module.startswith("test.")
    }
    for path in _other_files(change):
        if not any(_mentions(PurePosixPath(path).name, change.after)):
            parts = PurePosixPath(path).parts[:-1]
            parts = parts[1:] if parts and parts[0] in ("humanoid_control", "evidence", "test") else parts
            for k in range(len(parts), 0, -1):
                if (folder := "/".join(("test", *parts[:k]))) in folders:
                    yield folder
                    break


# -------- Durations


def seconds_of_functions(durations: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of the cases of each test.

    Args:
        durations: by the ids of pytest.
    """
    total: dict[str, float] = defaultdict(float)
    for nodeid, seconds in durations.items():
        path, _, name = nodeid.partition("::")
        total[f"{path}::{name.partition('[')[0].partition('::')[0]}"] += seconds
    return dict(total)


def durations_of_reports(paths: Iterable[Path]) -> dict[str, float]:
    """Return durations by the ids of pytest from its reports in XML."""
    found = {}
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            parts = case.get("classname", "").split(".")
            classes = [part for part in parts if part.startswith("Test")]
            file = "/".join(part for part in parts if part not in classes) + ".py"
            found["::".join([file, *classes, case.get("name", "")])] = float(case.get("time", 0.0))
    return found
