"""Volume editor: swept-sphere volumes of a robot drawn, dragged, mirrored, fitted and paired in the browser."""
