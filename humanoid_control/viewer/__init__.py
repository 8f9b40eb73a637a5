"""The browser view: scene, panel and traces, on viser. Shows numbers that others computed."""
