"""The index: a disposable view of the notes that answers quickly."""
