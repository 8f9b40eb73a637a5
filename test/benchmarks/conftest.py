"""Some benches are tested as a user runs them."""

from test.cli.conftest import humanoid, warm_process  # noqa: F401
