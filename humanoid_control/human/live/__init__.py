"""Live fit and dynamics of a person from streamed markers and plates."""
