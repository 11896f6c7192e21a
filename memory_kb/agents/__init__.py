"""Agents that memory-kb can be installed into: their files as data, and splices that keep other people's bytes."""
