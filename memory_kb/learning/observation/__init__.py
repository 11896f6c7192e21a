"""What a session shows without anybody saying it."""
