"""Readers of policy files.

A format has a module with a function `read_NAME(...) -> PolicyModel`; short YAML files of makers stand together in
`makers`, each with a row in its table `MAKERS`. `reader.read_policy` asks the formats in turn.
"""
