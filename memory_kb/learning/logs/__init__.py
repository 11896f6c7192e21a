"""What happens in sessions, and how the logs of other tools are read."""
