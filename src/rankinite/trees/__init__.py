"""The tree engine: bin, count, split, grow, place, score."""
