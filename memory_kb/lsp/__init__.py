"""The language server: completion, links and checks for notes in any editor. It writes no note itself."""
