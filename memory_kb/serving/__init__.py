"""What the HTTP servers share: host checks, worker threads, and a watcher."""
