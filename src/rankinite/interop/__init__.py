"""Models of other tools: export of ours to their formats, and theirs as rankers of ours."""
