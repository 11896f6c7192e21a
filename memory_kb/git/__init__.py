"""Git: merging entries, history, commits, and checks of a pull request."""
