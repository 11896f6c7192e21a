"""Retrieval: a query into candidates, candidates into scores, scores into hits."""
