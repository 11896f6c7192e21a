"""The verbs of a knowledge base, by what they are about; `memory_kb.kb` puts them together."""
