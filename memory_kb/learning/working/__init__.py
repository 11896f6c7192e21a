"""Work in progress: ledgers and handoffs."""
