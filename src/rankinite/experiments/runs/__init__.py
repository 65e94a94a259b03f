"""Runs: a recipe carried out in a folder, unit by unit; what is there already is not done again."""
