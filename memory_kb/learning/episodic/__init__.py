"""Episodes: what was done, and what recurs in many of them."""
