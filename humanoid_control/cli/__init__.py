"""The `humanoid` command: one file a sub-command."""
