"""The best round by tiers, round by round, in the most obvious code."""

from __future__ import annotations


def best_rounds(rows, tolerances, min_improvement=0.0):
    """Return the best round and the last that improved, after every round: a loop with a flag."""
    bests, improvements = [], []
    best, values, tops, improved, mark = 0, None, None, 0, None
    for number, row in enumerate(rows, 1):
        takes_over = None
        if best == 0:
            takes_over, tops = True, list(row)
        for i, tolerance in enumerate(tolerances):
            if takes_over is None and row[i] > tops[i]:
                tops[i] = row[i]
                if values[i] < tops[i] - tolerance:
                    takes_over = True
                    tops[i + 1 :] = row[i + 1 :]
            elif takes_over is None and row[i] < tops[i] - tolerance:
                takes_over = False
        if takes_over is None:
            takes_over = row[-1] > values[-1] + min_improvement
        if takes_over:
            best, values = number, row
        if takes_over or (tolerances and tops[0] > mark + min_improvement):
            improved, mark = number, tops[0]
        bests.append(best)
        improvements.append(improved)
    return bests, improvements
