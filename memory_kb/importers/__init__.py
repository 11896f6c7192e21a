"""Import notes and conversations from other tools."""
