"""`python -m memory_kb` is the command `memory-kb`."""

from memory_kb.cli import main

if __name__ == "__main__":
    main()
