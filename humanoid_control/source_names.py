"""Names that a Python source defines, and references of each definition, from its syntax tree.

A reference is a text:

    solver.step            an attribute of a global name of the source
    =humanoid_control.ik   an absolute dotted name, or with leading dots a relative one: an import inside a function
    'solver                a string that may be the name of a module; it ends with a dot where a computed name follows
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

STATEMENTS, MAIN, FIELDS = "<module>", "<main>", ".<fields>"
_MODULE_NAME = re.compile(r"\.?[A-Za-z_]\w*(?:\.\w+)*\.?")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SKIPPED = frozenset(("ctx", "type_comment", "kind", "returns", "type_ignores"))


class Definition(NamedTuple):
    """Top-level name of a source.

    Attributes:
        digest: hash of its syntax tree without docstrings, positions and function annotations.
        references: references.
        decorators: dotted names; "(autouse)" is appended for such fixtures.
        is_class: it has another entry NAME + FIELDS.
    """

    digest: str
    references: tuple[str, ...]
    lines: tuple[int, int]
    parameters: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    is_class: bool = False


class Source(NamedTuple):
    """Names of a Python source.

    Attributes:
        imports: top-level imports with their dotted names.
        definitions: by name; STATEMENTS are bare top-level statements, MAIN those of a script.
    """

    imports: Mapping[str, str]
    for_types: frozenset[str]
    definitions: Mapping[str, Definition]


def read_source(text: str) -> Source:
    """Return the names of a source.

    Raises:
        SyntaxError: if the text is not Python.
    """
    reader = _SourceReader()
    reader.read_block(ast.parse(text).body, False, ())
    return reader.source()


class _SourceReader:
    """Collector of the top level of one source."""

    def __init__(self) -> None:
        self._imports: dict[str, str] = {}
        self._for_types: set[str] = set()
        self._parts: dict[str, list[tuple[_Walk, ast.stmt]]] = {}
        self._more: dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]] = {}

    def read_block(self, block: Iterable[ast.stmt], for_types: bool, conditions: tuple[ast.expr, ...]) -> None:
        """Read statements of the top level, or of an `if` or `try` there."""
        for statement in block:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                found = dict(_imported(statement))
                self._imports |= found
                self._for_types = self._for_types | set(found) if for_types else self._for_types - set(found)
            elif isinstance(statement, ast.If):
                if _is_main(statement.test):
                    self._add(MAIN, statement, conditions)
                    continue
                types = _dotted(statement.test).endswith("TYPE_CHECKING")
                more = conditions if types else (*conditions, statement.test)
                self.read_block(statement.body, for_types or types, more)
                self.read_block(statement.orelse, for_types, more)
            elif isinstance(statement, ast.Try):
                handlers = [each for handler in statement.handlers for each in handler.body]
                for part in (statement.body, handlers, statement.orelse, statement.finalbody):
                    self.read_block(part, for_types, conditions)
            else:
                self._read_definition(statement, conditions)

    def _read_definition(self, statement: ast.stmt, conditions: tuple[ast.expr, ...]) -> None:
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            is_class = isinstance(statement, ast.ClassDef)
            self._add(statement.name, statement, conditions)
            self._more[statement.name] = (
                tuple(_parameters(statement)), tuple(map(_decorator, statement.decorator_list)), is_class,
            )  # fmt: skip
            if is_class:
                fields = copy.copy(statement)
                fields.body = [each for each in statement.body if not isinstance(each, _FUNCTIONS)]
                self._add(statement.name + FIELDS, fields, conditions)
        elif names := list(_assigned(statement)):
            for name in names:
                self._add(name, statement, conditions)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            self._add(STATEMENTS, statement, conditions)
            for node in ast.walk(statement):  # the variable of a loop is a name of the module too
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._parts.setdefault(node.id, [])

    def _add(self, name: str, statement: ast.stmt, conditions: tuple[ast.expr, ...]) -> None:
        walk = _Walk()
        walk.read(*conditions, statement)
        self._parts.setdefault(name, []).append((walk, statement))

    def source(self) -> Source:
        definitions = {}
        for name, parts in self._parts.items():
            words = "\0".join(word for walk, _ in parts for word in walk.words)
            digest = hashlib.sha256(words.encode("utf-8", "replace"))
            references = sorted(set().union(*(walk.references for walk, _ in parts)))
            ends = [(_first_line(each), each.end_lineno or each.lineno) for _, each in parts] or [(0, 0)]
            lines = min(first for first, _ in ends), max(last for _, last in ends)
            more = self._more.get(name, ((), (), False))
            definitions[name] = Definition(digest.hexdigest()[:24], tuple(references), lines, *more)
        return Source(self._imports, frozenset(self._for_types), definitions)


class _Scope:
    """Names of a function, comprehension or class body during its visit.

    Attributes:
        bound: bound names; imports with their dotted name, others with an empty text.
        loads: used dotted names.
        elsewhere: names bound in an outer scope.
    """

    __slots__ = ("bound", "elsewhere", "loads")

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.loads: set[str] = set()
        self.elsewhere: set[str] = set()


class _Walk:
    """Digest words and references of one statement."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.references: set[str] = set()
        self._scopes = [_Scope()]
        self._functions = [self._scopes[0]]  # scopes of `:=`
        self._in_function = False

    def read(self, *nodes: ast.AST) -> None:
        """Visit top-level statements."""
        for node in nodes:
            self._visit(node)
        self.references |= self._scopes[0].loads

    def _visit(self, node: ast.AST) -> None:
        kind = type(node)
        self.words.append(kind.__name__)
        if special := _SPECIAL.get(kind):
            special(self, node)
        else:
            self._visit_children(node, _fields(kind))

    def _visit_children(self, node: ast.AST, fields: Iterable[str]) -> None:
        for field in fields:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                self._visit(value)
            elif isinstance(value, list):
                self.words.append(field)
                for child in value:
                    if isinstance(child, ast.AST):
                        self._visit(child)
                    else:
                        self.words.append(str(child))
            elif value is not None:
                self.words.append(str(value))

    def _visit_name(self, node: ast.Name) -> None:
        self.words.append(node.id)
        scope = self._scopes[-1]
        if isinstance(node.ctx, ast.Load):
            scope.loads.add(node.id)
        else:
            scope.bound.setdefault(node.id, "")

    def _visit_attribute(self, node: ast.Attribute) -> None:
        if chain := _dotted(node):
            self.words.append(chain)
            self._scopes[-1].loads.add(chain)
        else:
            self.words.append(node.attr)
            self._visit(node.value)

    def _visit_constant(self, node: ast.Constant) -> None:
        self.words.append(repr(node.value))
        if isinstance(node.value, str) and len(node.value) < 100 and _MODULE_NAME.fullmatch(node.value):
            self.references.add(f"'{node.value}")

    def _visit_function(self, node: Any) -> None:
        arguments = node.args
        if not isinstance(node, ast.Lambda):
            self.words.append(node.name)
            self._scopes[-1].bound.setdefault(node.name, "")
            self._visit_children(node, ("decorator_list",))
        self._visit_children(arguments, ("defaults", "kw_defaults"))
        outer, scope = self._in_function, _Scope()
        last: list[Any] = [arguments.vararg, arguments.kwarg]
        for kind in (arguments.posonlyargs, arguments.args, arguments.kwonlyargs, last):
            names = [each.arg if each else "" for each in kind]
            self.words.append("|".join(names))
            scope.bound.update(dict.fromkeys(names, ""))
        self._scopes.append(scope)
        self._functions.append(scope)
        self._in_function = True
        for child in [node.body] if isinstance(node, ast.Lambda) else _without_docstring(node.body):
            self._visit(child)
        self._in_function = outer
        self._functions.pop()
        self._leave()

    def _leave(self) -> None:
        """Pass unbound names of the innermost scope to the outer one."""
        scope = self._scopes.pop()
        outer = self._scopes[-1].loads
        unused = {name for name, target in scope.bound.items() if target}
        for chain in scope.loads:
            root, dot, rest = chain.partition(".")
            unused.discard(root)
            target = scope.bound.get(root) if root not in scope.elsewhere else None
            if target is None:
                outer.add(chain)
            elif target:
                self.references.add(f"={target}{dot}{rest}")
        # An unused import also counts: its module may register something.
        self.references.update(f"={scope.bound[name]}" for name in unused)

    def _visit_class(self, node: ast.ClassDef) -> None:
        self.words.append(node.name)
        self._scopes[-1].bound.setdefault(node.name, "")
        self._visit_children(node, ("bases", "keywords", "decorator_list"))
        outer, self._in_function = self._in_function, False
        self._scopes.append(_Scope())
        for child in _without_docstring(node.body):
            self._visit(child)
        self._scopes[-1].bound.clear()  # methods do not see the names of the class
        self._leave()
        self._in_function = outer

    def _visit_comprehension(self, node: ast.AST) -> None:
        self._scopes.append(_Scope())
        self._visit_children(node, _fields(type(node)))
        self._leave()

    def _visit_named(self, node: ast.NamedExpr) -> None:
        self.words.append(node.target.id)
        self._functions[-1].bound.setdefault(node.target.id, "")
        self._visit(node.value)

    def _visit_annotated(self, node: ast.AnnAssign) -> None:
        # Annotations of variables are not evaluated in functions; in a class they declare its fields.
        self._visit_children(node, ("target", "value") if self._in_function else ("target", "annotation", "value"))

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, target in _imported(node):
            self.words.append(f"{name}={target}")
            self._scopes[-1].bound[name] = target

    def _visit_outer(self, node: ast.Global | ast.Nonlocal) -> None:
        self.words += node.names
        self._scopes[-1].elsewhere.update(node.names)

    def _visit_binding(self, node: Any) -> None:
        if node.name:
            self._scopes[-1].bound.setdefault(node.name, "")
        self._visit_children(node, _fields(type(node)))


_SPECIAL: dict[type, Any] = {
    ast.Name: _Walk._visit_name,
    ast.Attribute: _Walk._visit_attribute,
    ast.Constant: _Walk._visit_constant,
    ast.ClassDef: _Walk._visit_class,
    ast.NamedExpr: _Walk._visit_named,
    ast.AnnAssign: _Walk._visit_annotated,
    ast.Import: _Walk._visit_import,
    ast.ImportFrom: _Walk._visit_import,
    ast.Global: _Walk._visit_outer,
    ast.Nonlocal: _Walk._visit_outer,
    ast.ExceptHandler: _Walk._visit_binding,
    ast.MatchAs: _Walk._visit_binding,
    ast.MatchStar: _Walk._visit_binding,
    **dict.fromkeys((*_FUNCTIONS, ast.Lambda), _Walk._visit_function),
    **dict.fromkeys(_COMPREHENSIONS, _Walk._visit_comprehension),
}


def _named_fields(kind: Any) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in _SKIPPED)


_fields: Any = functools.cache(_named_fields)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, with their dotted names."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            yield alias.asname or root, alias.name if alias.asname else root
            if not alias.asname and root != alias.name:
                yield alias.name, alias.name  # the submodule, which the import loads too
        return
    home = "." * node.level + (f"{node.module}." if node.module else "")
    for alias in node.names:
        yield alias.asname or alias.name, home + alias.name


def _dotted(node: ast.AST) -> str:
    """Return the text of `a.b.c`; empty for other expressions."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _decorator(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return _dotted(node)
    autouse = any(k.arg == "autouse" and isinstance(k.value, ast.Constant) and k.value.value for k in node.keywords)
    return _dotted(node.func) + "(autouse)" * autouse


def _parameters(node: ast.AST) -> Iterator[str]:
    functions = [node] if isinstance(node, _FUNCTIONS) else list(ast.iter_child_nodes(node))
    for each in functions:
        if isinstance(each, _FUNCTIONS):
            yield from (a.arg for a in (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs))


def _assigned(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that an assignment binds; none for other statements and element assignments."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        targets = [statement.name] if hasattr(ast, "TypeAlias") and isinstance(statement, ast.TypeAlias) else []
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _is_main(test: ast.expr) -> bool:
    """Return True for the condition of a script's main block."""
    return isinstance(test, ast.Compare) and _dotted(test.left) == "__name__"


def _first_line(statement: ast.stmt) -> int:
    return min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", []))])


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    value = first.value if isinstance(first, ast.Expr) else None
    return body[1:] if isinstance(value, ast.Constant) and isinstance(value.value, str) else body
