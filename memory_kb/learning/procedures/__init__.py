"""Skills: steps that worked."""
