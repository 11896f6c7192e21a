"""Claims about code, looked at again; and who was shown what."""
