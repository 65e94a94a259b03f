"""What a fitted model consists of, and how good its weights are."""
