"""Static graph of Python sources: dependencies between definitions, name by name.

    graph = SourceGraph(read_sources(repository, ("humanoid_control", "test")))
    graph.why("test.ik.test_solver:test_converges", "humanoid_control.numerics.box_qp:solve")

A definition is `module:name`. `module:*` is all definitions of a module, `module:<module>` its bare statements,
`module:<main>` those of a script, `module:Name.<fields>` a class without methods. Kernels depend only on the fields of
records. Names are resolved through imports and re-exports. Objects are not followed: a method belongs to its class.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path

from humanoid_control import source_names
from humanoid_control.paths import PACKAGE, home_dir
from humanoid_control.source_names import FIELDS, MAIN, STATEMENTS, Definition, Source, read_source

ALL = "*"
PROCESSES = ("subprocess", "multiprocessing")  # the only external names in the graph
KERNELS = ("kernel", "inlined")  # decorators
MOST_KEPT = 5_000  # sources of a cache above which unused ones are dropped
COMPILER = ("numba.core", "numba.extending", "numba.np")  # importers of these extend the compiler for all their callers


def module_name(path: str) -> str:
    """Return the dotted name of a source.

    Args:
        path: with slashes, relative to the import root.
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# -------- Reading


def blob_id(data: bytes) -> str:
    """Return git's name of a file content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class SourceCache:
    """Sources by file content, cached on disk."""

    def __init__(self, path: Path | None = None) -> None:
        """Load the cache file; None: no file."""
        self._path, self._known, self._used = path, dict[str, Source](), set[str]()
        self._version = f"{sys.version_info[:2]} {blob_id(Path(source_names.__file__).read_bytes())}"
        with suppress(Exception):  # a damaged file only costs the time to read the sources
            version, known = pickle.loads(path.read_bytes()) if path else ("", {})
            self._known = known if version == self._version else {}
        self._fresh = False

    @classmethod
    def of(cls, root: Path) -> SourceCache:
        """Return the cache of the sources below a folder, in the user's cache folder."""
        name = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
        folder = Path(os.environ.get("XDG_CACHE_HOME") or home_dir() / ".cache")
        return cls(folder / PACKAGE / f"sources_{name}.pickle")

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str, data: bytes = b"") -> Source:
        """Return the source of a content; text that is not Python counts as bare statements."""
        self._used.add(key)
        if key not in self._known:
            self._fresh = True
            try:
                self._known[key] = read_source(data.decode())
            except (SyntaxError, ValueError):
                whole = Definition(key, (), (1, data.count(b"\n") + 1))
                self._known[key] = Source({}, frozenset(), {STATEMENTS: whole})
        return self._known[key]

    def save(self) -> None:
        """Write the cache to disk if it has new sources."""
        if not self._path or not self._fresh:
            return
        kept = self._known
        if len(kept) > MOST_KEPT:
            kept = {key: kept[key] for key in self._used}
        with suppress(OSError):  # without it the next process reads all sources again
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._path.parent, prefix=".writing_") as folder:
                part = Path(folder) / "part"
                part.write_bytes(pickle.dumps((self._version, kept)))
                os.replace(part, self._path)
        self._fresh = False


def read_sources(root: Path, folders: Sequence[str], cache: SourceCache | None = None) -> dict[str, Source]:
    """Read the Python sources below folders.

    Returns:
        Sources by path relative to `root`.
    """
    cache = SourceCache.of(root) if cache is None else cache
    found = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            data = path.read_bytes()
            found[path.relative_to(root).as_posix()] = cache.get(blob_id(data), data)
    cache.save()
    return found


# -------- Graph


class SourceGraph:
    """Definitions of sources and their references.

    Attributes:
        edges: references of each definition.
        compiler: modules that extend the compiler; each of their definitions depends on all others.
        dynamic: modules that import computed names.
    """

    def __init__(self, sources: Mapping[str, Source]) -> None:
        """Resolve all references of `read_sources`."""
        self.sources = {module_name(path): source for path, source in sources.items()}
        self._packages = {module_name(path) for path in sources if path.endswith("__init__.py")}
        self._resolved: dict[str, str] = {}
        self._below: dict[str, dict[str, list[str]]] = {}
        self._tops = {module.partition(".")[0] for module in self.sources}
        self.dynamic = {module for module, source in self.sources.items() if _imports_by_name(source)}
        self.compiler = {
            module
            for module, source in self.sources.items()
            if any(target.startswith(COMPILER) for target in source.imports.values())
        }
        self.kernels = {
            f"{module}:{name}"
            for module, source in self.sources.items()
            for name, definition in source.definitions.items()
            if self._is_kernel(module, definition)
        }
        self.edges: dict[str, tuple[str, ...]] = {}
        for module in self.sources:
            self._link(module)
        self._users: dict[str, list[str]] = {}

    def definition(self, node: str) -> Definition | None:
        """Return the definition of a node; None for a module."""
        module, _, name = node.partition(":")
        source = self.sources.get(module)
        return source.definitions.get(name) if source else None

    def reach(self, *nodes: str) -> set[str]:
        """Return all direct and indirect dependencies of nodes, and the nodes."""
        return set(_search(self.edges, nodes))

    def reached_by(self, *nodes: str) -> dict[str, int]:
        """Return the direct and indirect users of nodes, with the length of the shortest chain."""
        distance = dict.fromkeys(nodes, 0)
        for node, nearer in _search(self.users, nodes).items():
            if nearer:
                distance[node] = distance[nearer] + 1
        return distance

    def why(self, user: str, used: str) -> list[str]:
        """Return the shortest chain between two definitions, or an empty list."""
        return next(self.chains(used, {user}), (user, []))[1]

    def chains(self, used: str, users: Set[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield users of a definition, nearest first, each with the shortest chain to it."""
        nearer = _search(self.users, (used,))
        for node in nearer:
            if node in users:
                chain = [node]
                while nearer[chain[-1]]:
                    chain.append(nearer[chain[-1]])
                yield node, chain

    @property
    def users(self) -> Mapping[str, Sequence[str]]:
        """Definitions that refer to each definition."""
        if not self._users:
            users = defaultdict(list)
            for node, targets in self.edges.items():
                for target in targets:
                    users[target].append(node)
            self._users = dict(users)
        return self._users

    def resolve(self, module: str, name: str) -> str:
        """Return the definition of a name in a module; empty for external names.

        Args:
            name: may have attributes, `solver.step`.
        """
        source, (root, dot, rest) = self.sources[module], name.partition(".")
        if root in source.definitions:
            return f"{module}:{root}"
        if root not in source.imports:
            return ""
        return self._resolve(self._absolute(module, source.imports[root]) + dot + rest)

    def _absolute(self, module: str, dotted: str) -> str:
        name = dotted.lstrip(".")
        if level := len(dotted) - len(name):
            up = level - (module in self._packages)
            home = module.rsplit(".", up)[0] if up else module
            return f"{home}.{name}"
        return name

    def _resolve(self, dotted: str) -> str:
        if dotted not in self._resolved:
            self._resolved[dotted] = ""  # ends circular imports
            self._resolved[dotted] = self._find(dotted)
        return self._resolved[dotted]

    def _find(self, dotted: str) -> str:
        module, rest = dotted, ""
        while module not in self.sources:
            module, dot, name = module.rpartition(".")
            if not dot:
                return f"{name}:" if name in PROCESSES else ""
            rest = f"{name}.{rest}" if rest else name
        if not rest:
            return f"{module}:{ALL}"
        found = self.resolve(module, rest)
        outside = rest.startswith("__") or rest.partition(".")[0] in self.sources[module].imports
        return found or ("" if outside else f"{module}:{ALL}")

    def _link(self, module: str) -> None:
        source = self.sources[module]
        statements = self._registrations(module)
        if STATEMENTS in source.definitions:
            statements |= self._targets(module, source.definitions[STATEMENTS])
        has_statements = bool(statements) or STATEMENTS in source.definitions
        for name, definition in source.definitions.items():
            node = f"{module}:{name}"
            targets = statements if name == STATEMENTS else self._targets(module, definition)
            if node in self.kernels or name.endswith(FIELDS):
                targets = {self._fields_of(each) for each in targets}
            elif definition.is_class:
                targets.add(node + FIELDS)
            if has_statements and name not in (STATEMENTS, MAIN):
                targets.add(f"{module}:{STATEMENTS}")
            if module in self.compiler:
                targets.add(f"{module}:{ALL}")
            self.edges[node] = tuple(sorted(targets - {node}))
        if has_statements:
            self.edges.setdefault(f"{module}:{STATEMENTS}", tuple(sorted(statements)))
        self.edges[f"{module}:{ALL}"] = tuple(f"{module}:{name}" for name in source.definitions)

    def _registrations(self, module: str) -> set[str]:
        """Return modules that are imported only for their statements."""
        source = self.sources[module]
        if module in self._packages:
            return set()
        roots = {ref.partition(".")[0] for each in source.definitions.values() for ref in each.references}
        found = set()
        for name, target in source.imports.items():
            if name not in roots and "." not in name and name not in source.for_types:
                node = self._resolve(self._absolute(module, target))
                home, _, what = node.partition(":")
                if what == ALL:
                    found.add(node)
                elif home in self.sources and STATEMENTS in self.sources[home].definitions:
                    found.add(f"{home}:{STATEMENTS}")
        return found

    def _targets(self, module: str, definition: Definition) -> set[str]:
        targets = set[str]()
        for reference in definition.references:
            if reference[0] == "'":
                targets.update(self._modules_named(module, reference[1:]))
            elif reference[0] == "=":
                targets.add(self._resolve(self._absolute(module, reference[1:])))
            elif reference == "__file__":
                if MAIN in self.sources[module].definitions:  # it runs itself in another process
                    targets.add(f"{module}:{MAIN}")
            else:
                targets.add(self.resolve(module, reference))
        return targets - {""}

    def _modules_named(self, module: str, text: str) -> Iterator[str]:
        """Yield the modules or definitions that a string names."""
        name = text.strip(".")
        if name.partition(".")[0] in self._tops and "." in name:
            if text.endswith("."):
                yield from (f"{each}:{ALL}" for each in self.sources if each.startswith(text))
            home, _, last = name.rpartition(".")
            if name in self.sources or (home in self.sources and last in self.sources[home].definitions):
                yield self._resolve(name)
        if module in self.dynamic:
            yield from self._tails(module if module in self._packages else module.rpartition(".")[0]).get(name, ())

    def _tails(self, package: str) -> Mapping[str, Sequence[str]]:
        """Return the modules below a package by the ends of their dotted names."""
        if package not in self._below:
            tails = defaultdict(list)
            for module in self.sources:
                if module.startswith(f"{package}."):
                    parts = module[len(package) + 1 :].split(".")
                    for k in range(len(parts)):
                        tails[".".join(parts[k:])].append(f"{module}:{ALL}")
            self._below[package] = dict(tails)
        return self._below[package]

    def _fields_of(self, node: str) -> str:
        definition = self.definition(node)
        return node + FIELDS if definition and definition.is_class else node

    def _is_kernel(self, module: str, definition: Definition) -> bool:
        for decorator in definition.decorators:
            home, _, name = self.resolve(module, decorator).partition(":")
            if name in KERNELS and home.rpartition(".")[2] == "jit":
                return True
        return False


def _imports_by_name(source: Source) -> bool:
    ends = ("import_module", "lazy.attach", "__import__")
    return any(ref.endswith(ends) for each in source.definitions.values() for ref in each.references)


def _search(edges: Mapping[str, Sequence[str]], begin: Iterable[str]) -> dict[str, str]:
    """Return reachable nodes, nearest first, each with its predecessor; empty for start nodes."""
    before = dict.fromkeys(begin, "")
    waiting = deque(before)
    while waiting:
        node = waiting.popleft()
        for target in edges.get(node, ()):
            if target not in before:
                before[target] = node
                waiting.append(target)
    return before


def changed_definitions(old: Mapping[str, Source], new: Mapping[str, Source]) -> set[str]:
    """Return the added, removed and changed definitions between two versions of sources by path."""
    changed = set()
    for path in old.keys() | new.keys():
        if old.get(path) is new.get(path):
            continue
        before, after = (side[path].definitions if path in side else {} for side in (old, new))
        for name in before.keys() | after.keys():
            if name not in before or name not in after or before[name].digest != after[name].digest:
                changed.add(f"{module_name(path)}:{name}")
    return changed
