"""The disk: walk, plan, apply, journal and undo, append-only logs."""
