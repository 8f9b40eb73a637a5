"""Readers of motion files, each a parser from bytes to a clip."""
