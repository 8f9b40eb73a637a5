"""evaluation/report."""
