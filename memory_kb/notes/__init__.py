"""Notes: the files people write, read leniently and written byte-exactly."""
