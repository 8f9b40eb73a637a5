"""Some benches are tested as a user runs them."""

from test.cli.conftest import humanoid  # noqa: F401
