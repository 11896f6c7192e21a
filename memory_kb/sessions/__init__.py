"""What is read from the log of a session: commands, answers of tools, failures, and what a task came to."""
