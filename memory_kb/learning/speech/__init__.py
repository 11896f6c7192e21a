"""What people say in passing."""
