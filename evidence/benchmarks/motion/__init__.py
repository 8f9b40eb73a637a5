"""Speed of what makes motions ahead of time: optimal reaches."""
