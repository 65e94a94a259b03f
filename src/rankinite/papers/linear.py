"""Ensemble, Figure 1: linear nets for NDCG and for ERR, both measures by epoch.

The paper claims (Sec. 4.1): "while training on ERR produces a small drop in the validation NDCG,
training on ERR and training on NDCG gave essentially identical results, when testing on ERR".
"""

from __future__ import annotations

from rankinite.core.figures import Line, Panel
from rankinite.evaluation.tables import Summary, Table
from rankinite.papers.setting import Setting, evaluated, p_value, with_error

MEASURES = ("NDCG@10", "ERR")
# Training measure of a net, and the measure that chooses its best epoch.
TRAINED = {"NDCG": "NDCG@10", "ERR": "ERR"}
# A tenth of the training data, and a validation set of the same size.
QUERIES = 1_994
EPOCHS = 50


def linear(setting: Setting) -> Summary:
    """Train linear nets for NDCG and for ERR, and measure both after every epoch."""
    train, valid, test = (setting.challenge(QUERIES, p) for p in ("train", "valid", "test"))
    curves, results = {}, {}
    with setting.progress.start("linear nets", len(TRAINED), "nets") as bar:
        for trained, first in TRAINED.items():
            # Without patience, as the figure shows all epochs.
            model = setting.net(trained, 0, n_epochs=EPOCHS, patience=None)
            model.set_params(valid_measure=[first, *(m for m in MEASURES if m != first)])
            model.fit(train, valid=valid)
            curves[trained] = model.history_["valid"]
            results[trained] = evaluated(model, test, MEASURES)
            bar.advance(1)
    rows = tuple(
        (f"trained for {trained}", *(with_error(results[trained].per_query[m]) for m in MEASURES))
        for trained in TRAINED
    )
    p = {m: p_value(*(results[trained].per_query[m] for trained in TRAINED)) for m in MEASURES}
    last = ("p-value of the difference", *(f"{p[m]:.3g}" for m in MEASURES))
    epochs = range(1, EPOCHS + 1)
    figure = tuple(
        Panel(
            f"Validation {measure}",
            "Epoch",
            measure,
            tuple(Line(f"trained for {t}", epochs, curves[t][measure]) for t in TRAINED),
        )
        for measure in MEASURES
    )
    title = f"Linear nets on {train.n_queries:,} queries, test set, epochs chosen by validation"
    return Summary(
        "linear",
        (Table(title, ("Net", *MEASURES), (*rows, last)),),
        (),
        {"linear": figure},
        {"curves": curves, "p_values": p, "n_queries": train.n_queries},
    )
