"""Models of other tools: their files read, and ours written as theirs."""
