"""Readers of motion files: C3D, TRC, CSV, BVH and ASF/AMC, each a parser from bytes to a clip of markers."""
