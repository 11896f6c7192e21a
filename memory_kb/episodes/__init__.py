"""Episodes: what was done in sessions, and the rules and pitfalls that recur in them."""
