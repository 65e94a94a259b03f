"""Data sets: RankingData, files in and out, simulators."""
