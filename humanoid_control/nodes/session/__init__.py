"""Sessions: stacks of node processes under supervision."""
