"""Context: what an agent is given before a task, within a token budget."""
