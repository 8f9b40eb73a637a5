"""Names of what an editor holds."""

from humanoid_control.viewer.volume_editor import edits


def names(editor, segment=None):
    document = editor.document
    return [v.name for v in edits.segment_of(document.file, segment or document.selection.segment).volumes]
