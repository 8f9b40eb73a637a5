"""Readers of motion files: parsers from bytes to a clip; of glTF and FBX, from a `ClipFile`; of AMC, with its ASF.

A new format: a parser here (`trc` is the shortest with markers, `bvh` with joints), and a row for its extension in
`_FORMATS` of `mocap.load`.
"""
