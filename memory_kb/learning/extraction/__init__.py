"""What a language model is asked about a session, scope by scope."""
