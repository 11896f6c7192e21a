"""The language server: help in any editor for the notes of a vault. It writes no note itself."""
