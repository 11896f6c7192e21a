"""What an agent is given before a task, within its token budget."""
