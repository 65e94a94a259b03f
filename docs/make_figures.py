"""Draw the figures of docs/explanation: ``python docs/make_figures.py [NAME ...]``.

Every function draws one figure, from numbers that the library computes. The same library draws the
same figures: all data are simulated from fixed seeds.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import rankinite as rk
from rankinite.core.figures import subplots
from rankinite.core.files import atomic_write
from rankinite.core.types import Floats, Integers
from rankinite.trees.grower import MOST_DOCS_WITH_PACKED_HESSIANS, PACKED_BITS, SUM_BITS

FOLDER = Path(__file__).parent / "images" / "explanation"
# From documents that are not relevant to the best ones: readable in print and for the colour-blind.
GRADE_COLOURS = ("#b8bcc4", "#8fc3e0", "#4a90c4", "#f0a030", "#c8401c")
UP, DOWN, LINE, QUIET = "#1a7f4b", "#b03a2e", "#2b5f9e", "#8a8f98"
MEASURE = "NDCG@10"
# So many that lines stay smooth; a file is then a third as large.
COLOURS = 96


def save_small(figure: Any, path: Path) -> None:
    """Write a figure as a PNG file with a palette."""
    whole = io.BytesIO()
    figure.savefig(whole, format="png", metadata={"Software": None})
    with Image.open(whole) as image, atomic_write(path) as file:
        image.convert("RGB").quantize(COLOURS).save(file, "png", optimize=True)


# Lambda gradients


def ranked_list(path: Path) -> None:
    """Draw the gradients of one query's documents as arrows beside the ranked list."""
    labels = np.array([2, 0, 1, 0, 0, 4, 0, 1, 0, 3])
    scores = np.linspace(2.0, -2.5, len(labels))
    figure, panels = subplots(3, height=4.4)
    figure.set_size_inches(8.4, 4.4)
    for axes, measure in zip(panels, ("RankNet", "NDCG", "NDCG@3"), strict=True):
        gradient, _ = rk.lambda_gradients(measure, scores, labels, [0, len(labels)], top_grade=4)
        reach = 3.2 * gradient / np.abs(gradient).max()
        for rank, (grade, push) in enumerate(zip(labels, reach, strict=True), 1):
            axes.barh(rank, 1.0, 0.72, color=GRADE_COLOURS[grade])
            axes.text(0.5, rank, f"grade {grade}", ha="center", va="center", fontsize=9)
            # Every arrow has a place of its own, so that none covers another.
            place = 1.05 + 0.085 * rank
            if abs(push) > 0.1:
                arrow = {"arrowstyle": "-|>", "color": UP if push > 0 else DOWN, "linewidth": 2,
                         "shrinkA": 0, "shrinkB": 0}  # fmt: skip
                axes.annotate("", (place, rank - push), (place, rank), arrowprops=arrow)
            axes.text(1.98, rank, f"{gradient[rank - 1]:+.2f}", va="center", fontsize=9)
        axes.set(title=measure, xlim=(0, 2.4), ylim=(10.7, 0.3), xticks=[])
        axes.set_yticks(range(1, len(labels) + 1))
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.tick_params(left=False)
    panels[0].set_ylabel("Rank")
    save_small(figure, path)


def gradient_by_rank(path: Path) -> None:
    """Draw the gradient of a pair of neighbours in the wrong order, by their rank."""
    n_docs = 30
    figure, (axes,) = subplots(height=3.4)
    ranks = np.arange(1, n_docs)
    for measure in ("RankNet", "NDCG", "NDCG@10", "ERR"):
        pushes = np.array([_push(measure, n_docs, rank) for rank in ranks])
        style = {"color": "black", "linestyle": "--"} if measure == "RankNet" else {}
        # Nothing is drawn where there is no gradient: the scale is logarithmic.
        axes.plot(ranks, np.where(pushes > 0, pushes / pushes[0], np.nan), label=measure, **style)
    axes.set(
        xlabel="Rank of the worse document; the better one is just below it",
        ylabel="Gradient, over that at rank 1",
        yscale="log",
    )
    axes.set_yticks([1, 0.1, 0.01], ["1", "0.1", "0.01"])
    axes.legend(fontsize="small")
    save_small(figure, path)


def _push(measure: str, n_docs: int, rank: int) -> float:
    """Return the gradient of a document of grade 3 just below one of grade 0."""
    # Documents without a label keep their ranks, and make no pairs.
    labels = np.full(n_docs, np.nan)
    labels[rank - 1 : rank + 1] = 0, 3
    scores = -np.arange(n_docs, dtype=np.float64)
    gradient, _ = rk.lambda_gradients(measure, scores, labels, [0, n_docs], top_grade=4)
    return float(gradient[rank])


def steps_and_costs(path: Path) -> None:
    """Draw NDCG against the score of one document, with the cost and the gradients of pairs."""
    labels = np.array([3.0, 2.0, 0.0, 1.0, 0.0, 0.0])
    others = np.array([1.6, 0.7, 0.1, -0.8, -1.7])
    places = np.linspace(-3.5, 3.5, 701)
    queries = np.array([np.append(place, others) for place in places])
    offsets = np.arange(0, queries.size + 1, len(labels))
    data = rk.RankingData(
        np.zeros((queries.size, 1)), np.tile(labels, len(places)), group_sizes=np.diff(offsets)
    )
    values = rk.evaluate(queries.ravel(), data, "NDCG").per_query["NDCG"]
    worse = labels[:, None] > labels[None, :]
    differences = queries[:, :, None] - queries[:, None, :]
    costs = (np.log1p(np.exp(-differences)) * worse).sum(axis=(1, 2))
    figure, (upper, lower) = subplots(2, height=2.3, per_row=1)
    upper.plot(places, values, color=LINE)
    upper.set_ylabel("NDCG", color=LINE)
    smooth = upper.twinx()
    smooth.plot(places, costs, color=QUIET, linestyle="--")
    smooth.set_ylabel("RankNet's cost", color=QUIET)
    smooth.spines["top"].set_visible(False)
    for measure, colour in (("RankNet", QUIET), ("NDCG", LINE)):
        gradient, _ = rk.lambda_gradients(
            measure, queries.ravel(), np.tile(labels, len(places)), offsets, top_grade=4
        )
        pushes = gradient.reshape(queries.shape)[:, 0]
        dashes = "--" if measure == "RankNet" else "-"
        lower.plot(places, pushes / pushes.max(), color=colour, linestyle=dashes, label=measure)
    for axes in (upper, lower):
        for score in others:
            axes.axvline(score, color="#dddddd", linewidth=0.8, zorder=0)
    lower.set(xlabel="Score of the document of grade 3", ylabel="Gradient, over its largest")
    lower.legend(fontsize="small")
    save_small(figure, path)


def order_by_round(path: Path) -> None:
    """Draw the ranks of one test query's documents, tree by tree."""
    train = rk.polynomials(300, part="train", n_features=10)
    valid = rk.polynomials(100, part="valid", n_features=10)
    test = rk.polynomials(30, part="test", n_features=10)
    model = rk.LambdaMART("NDCG", n_trees=150, average_rounds=False).fit(train, valid=valid)
    query = test[4]
    stages = np.array(list(model.staged_predict(query)))
    ranks = np.argsort(np.argsort(-stages, axis=1), axis=1) + 1
    values = [rk.evaluate(scores, query, "NDCG").mean["NDCG"] for scores in stages]
    trees = np.arange(1, len(stages) + 1)
    figure, (upper, lower) = subplots(2, height=2.4, per_row=1)
    figure.set_size_inches(6.4, 5.6)
    order = np.argsort(query.y, kind="stable")
    for doc in order:
        grade = int(query.y[doc])
        upper.plot(trees, ranks[:, doc], color=GRADE_COLOURS[grade], linewidth=0.8 + 0.4 * grade)
    for grade, colour in reversed(list(enumerate(GRADE_COLOURS))):
        upper.plot([], [], color=colour, linewidth=2, label=f"grade {grade}")
    upper.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    upper.set(ylabel="Rank", ylim=(query.n_docs + 1, 0))
    lower.plot(trees, values, color=LINE)
    lower.set(xlabel="Trees", ylabel="NDCG of the query")
    for axes in (upper, lower):
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        axes.minorticks_off()
    save_small(figure, path)


# Trees


def packed_bits(path: Path) -> None:
    """Draw which bits of an int64 hold gradient, hessian and count, by the number of documents."""
    sizes = (1_000, 10_000, 100_000, 250_000, 1_000_000, 10_000_000)
    figure, (axes,) = subplots(height=2.9)
    figure.set_size_inches(8.0, 2.9)
    for row, n_docs in enumerate(sizes):
        count = n_docs.bit_length()
        separate = n_docs > MOST_DOCS_WITH_PACKED_HESSIANS
        hessian = 0 if separate else (PACKED_BITS - count) // 2 + 1
        gradient = min(SUM_BITS, PACKED_BITS - count - hessian)
        parts = (
            ("sign, carry", 64 - gradient - hessian - count, "#eeeeee"),
            ("sum of gradients", gradient, "#9ec5e8"),
            ("sum of hessians", hessian, "#f3c98b"),
            ("documents", count, "#b9dfc3"),
        )
        left = 0
        for name, bits, colour in parts:
            axes.barh(row, bits, 0.7, left, color=colour, edgecolor="white")
            text = f"{name} {bits}" if bits > 16 else str(bits)
            if bits:
                axes.text(left + bits / 2, row, text, ha="center", va="center", fontsize=9)
            left += bits
        if separate:
            axes.text(65, row, "+ hessians apart", va="center", fontsize=9)
    axes.set(xlim=(0, 80), ylim=(len(sizes) - 0.4, -0.6), xlabel="Bits, the highest on the left")
    axes.set_yticks(range(len(sizes)), [f"{n:,}" for n in sizes])
    axes.set_xticks([0, 16, 32, 48, 64])
    axes.set_ylabel("Documents of the set")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(left=False)
    save_small(figure, path)


def histogram_subtraction(path: Path) -> None:
    """Draw the histograms of a leaf and its two children, one of which is a difference."""
    data = rk.polynomials(200, part="train", n_features=10)
    gradient, _ = rk.lambda_gradients("NDCG", np.zeros(data.n_docs), data.y, data.offsets)
    binned = rk.BinnedData.of(data, most_bins=32)
    goes_left = binned.main.columns[0] <= 10
    shown = binned.main.columns[4]
    titles = ("Parent", "Smaller child, counted", "Larger child = parent - smaller")
    parts = (np.ones(data.n_docs, bool), goes_left, ~goes_left)
    figure, panels = subplots(3, height=2.6)
    figure.set_size_inches(9.6, 2.6)
    for axes, title, part in zip(panels, titles, parts, strict=True):
        sums = np.bincount(shown[part], gradient[part], 32)
        axes.bar(range(32), sums, 0.9, color=[UP if value > 0 else DOWN for value in sums])
        axes.set_title(f"{title}\n{part.sum():,} documents", fontsize=10)
        axes.set_xlabel("Bin of one feature")
        axes.axhline(0.0, color="black", linewidth=0.6)
    low, high = panels[0].get_ylim()
    for axes in panels[1:]:
        axes.set(ylim=(low, high), yticklabels=[])
    panels[0].set_ylabel("Sum of gradients")
    save_small(figure, path)


def leaves_by_split(path: Path) -> None:
    """Draw how the leaves of some documents change while the splits of a tree pass over them."""
    data = rk.polynomials(60, part="train", n_features=6)
    model = rk.LambdaMART("NDCG", n_trees=1, n_leaves=6, symmetric=False).fit(data)
    tree = model.forest_.trees[0]
    X = data.X[:16]
    leaves = np.zeros(len(X), np.int64)
    rows = [leaves.copy()]
    for split in range(len(tree.feature)):
        goes_right = X[:, tree.feature[split]] > tree.threshold[split]
        leaves = np.where(goes_right & (leaves == tree.first[split]), tree.right[split], leaves)
        rows.append(leaves.copy())
    figure, (axes,) = subplots(height=2.9)
    figure.set_size_inches(8.0, 2.9)
    axes.imshow(rows, cmap="Pastel1", vmin=0, vmax=8, aspect="auto")
    for row, step in enumerate(rows):
        for doc, leaf in enumerate(step):
            moved = row > 0 and rows[row - 1][doc] != leaf
            weight = "bold" if moved else "normal"
            axes.text(doc, row, str(leaf), ha="center", va="center", fontsize=9, weight=weight)
    names = ["start"] + [
        f"feature {tree.feature[k] + 1} > {tree.threshold[k]:+.2f}:  "
        f"{tree.first[k]} $\\to$ {tree.right[k]}"
        for k in range(len(tree.feature))
    ]
    axes.set_yticks(range(len(rows)), names)
    axes.set_xticks(range(len(X)), [str(doc + 1) for doc in range(len(X))])
    axes.set(xlabel="Document")
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    save_small(figure, path)


# Mixing


def crossings(path: Path) -> None:
    """Draw the scores of one query's documents between two rankers, and NDCG below them."""
    labels = np.array([0, 3, 1, 2, 0, 1])
    first = np.array([2.0, 1.2, 0.7, -0.2, -0.6, -1.4])
    second = np.array([-0.4, 0.5, 1.6, 1.3, -0.15, 0.2])
    data = rk.RankingData(np.zeros((6, 1)), labels, group_sizes=[6], top_grade=4)
    mix = rk.best_mix(first, second, data, "NDCG")
    figure, (upper, lower) = subplots(2, height=2.4, per_row=1)
    figure.set_size_inches(6.4, 5.4)
    alphas = np.array([0.0, 1.0])
    for doc, grade in enumerate(labels):
        ends = [first[doc], second[doc]]
        upper.plot(alphas, ends, color=GRADE_COLOURS[grade], linewidth=1.2 + 0.4 * grade)
        upper.text(1.01, second[doc], f"grade {grade}", va="center", fontsize=8)
    for a in range(len(labels)):
        for b in range(a):
            ahead, then = first[a] - first[b], second[a] - second[b]
            if ahead * then < 0:
                place = ahead / (ahead - then)
                height = (1 - place) * first[a] + place * second[a]
                matters = labels[a] != labels[b]
                upper.plot(place, height, "o", color="black" if matters else "white",
                           markeredgecolor="black", markersize=5)  # fmt: skip
                for axes in (upper, lower):
                    axes.axvline(place, color="#dddddd", linewidth=0.8, zorder=0)
    upper.set(ylabel="Score", xlim=(0, 1.0))
    for begin, end, value in zip(
        mix.course.begins, mix.course.ends, mix.course.values, strict=True
    ):
        lower.plot([begin, end], [value, value], color=LINE, linewidth=2)
    lower.plot(mix.alpha, mix.value, "o", color=GRADE_COLOURS[4])
    lower.annotate(f"alpha = {mix.alpha:.3f}", (mix.alpha, mix.value), textcoords="offset points",
                   xytext=(0, 7), ha="center", fontsize=9)  # fmt: skip
    lower.margins(y=0.2)
    lower.set(ylabel="NDCG", xlabel="alpha: 0 is all of one ranker, 1 all of the other",
              xlim=(0, 1.0))  # fmt: skip
    save_small(figure, path)


def gain_of_mixing(path: Path) -> None:
    """Draw the gain of the best mix on the queries of its choice and on others, by their number."""
    train = rk.polynomials(150, part="train", n_features=20)
    trees = rk.LambdaMART("NDCG", n_trees=100).fit(train)
    net = rk.LambdaRank("NDCG", n_epochs=10).fit(train)
    data = rk.polynomials(1_000, part="test", n_features=20)
    scores = [model.predict(data) for model in (trees, net)]
    means = [rk.evaluate(values, data, MEASURE).mean[MEASURE] for values in scores]
    if means[1] > means[0]:
        scores.reverse()
    sizes = (5, 10, 20, 50, 100, 200, 500)
    random = np.random.default_rng(0)
    gains = np.array(
        [
            np.mean(
                [_gains(scores, data, random.permutation(1_000)[:n]) for _ in range(60)], axis=0
            )
            for n in sizes
        ]
    )
    figure, (axes,) = subplots(height=3.4)
    axes.plot(sizes, gains[:, 0], "o-", color=DOWN, label="on the queries that alpha was chosen by")
    axes.plot(sizes, gains[:, 1], "o-", color=UP, label="on all other queries")
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set(xscale="log", xlabel="Queries that alpha was chosen by", ylabel=f"Gain of {MEASURE}")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend(fontsize="small")
    save_small(figure, path)


def _gains(
    scores: Sequence[Floats], data: rk.RankingData, queries: Integers
) -> tuple[float, float]:
    """Return the gain over the first ranker on the queries that alpha is chosen by, and others."""
    chosen = np.zeros(data.n_queries, bool)
    chosen[queries] = True
    docs = np.repeat(chosen, data.sizes)
    mix = rk.best_mix(scores[0][docs], scores[1][docs], data[chosen], MEASURE)
    gains = []
    for part, mask in ((data[chosen], docs), (data[~chosen], ~docs)):
        first, second = (values[mask] for values in scores)
        mixed = rk.evaluate(mix.scores(first, second), part, MEASURE).mean[MEASURE]
        gains.append(mixed - rk.evaluate(first, part, MEASURE).mean[MEASURE])
    return gains[0], gains[1]


FIGURES: dict[str, Callable[[Path], Any]] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        ranked_list,
        gradient_by_rank,
        steps_and_costs,
        order_by_round,
        packed_bits,
        histogram_subtraction,
        leaves_by_split,
        crossings,
        gain_of_mixing,
    )
}


def main() -> None:
    """Draw the figures that are named, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name](FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
