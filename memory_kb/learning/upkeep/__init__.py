"""Looking after what is there: counting, merging, promoting, retiring."""
