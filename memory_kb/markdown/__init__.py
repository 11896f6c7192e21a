"""Markdown text: entries, frontmatter, sections, links and byte-exact edits. No disk, no clock."""
