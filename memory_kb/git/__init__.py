"""Git: repositories, merging entries, history, and checks of a pull request."""
