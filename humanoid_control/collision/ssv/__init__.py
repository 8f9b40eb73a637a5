"""collision/ssv."""
