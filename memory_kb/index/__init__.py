"""The index: a derived, disposable database over the notes."""
