"""What nodes that play or follow a person have in common: a clip, or live markers, and the topics of both."""
