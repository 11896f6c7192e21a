"""What every server over the knowledge base shares: who may speak, in which thread, and who watches."""
