"""The `humanoid` command: one file per sub-command."""
