"""Models behind ports: what embeds texts and what fills in forms."""
