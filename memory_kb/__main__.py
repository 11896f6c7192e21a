"""The command `memory-kb`, run as `python -m memory_kb`."""

from memory_kb.cli import main

if __name__ == "__main__":
    main()
