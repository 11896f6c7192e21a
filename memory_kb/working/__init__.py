"""The state of work in progress: ledgers, handoffs and CONTINUITY.md."""
