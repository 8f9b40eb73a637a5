"""Statements of Python code, without their expressions: four fifths of the nodes of a tree are expressions."""

import ast
from collections.abc import Iterator

BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def bodies(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Yield each list of statements, exception handlers or cases, however deep it stands, after its owner."""
    todo = [tree]
    while todo:
        node = todo.pop()
        for field in BODIES:
            body = getattr(node, field, None)
            if isinstance(body, list):
                todo += body
                yield node, body


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a tree, however deep they stand."""
    for _, body in bodies(tree):
        yield from body
