"""What an editor does to a vault: drafts, renamed and moved notes, the text of an entry."""
