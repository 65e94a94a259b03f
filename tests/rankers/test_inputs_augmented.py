"""Training on samples of queries; validation on whole ones."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID, every_ranker

MORE = rk.augment(TRAIN, 0.5, 4)


@every_ranker
def test_rankers_train_on_samples(case):
    model = case.fit(MORE, valid=VALID)
    whole = case.fit(TRAIN, valid=VALID)
    assert np.isfinite(model.predict(TEST)).all()
    assert (model.predict(TEST) != whole.predict(TEST)).any()
    np.testing.assert_array_equal(case.fit(MORE, valid=VALID).predict(TEST), model.predict(TEST))


def test_a_fold_of_augmented_data():
    train, valid = next(iter(MORE.folds(4, seed=1)))
    model = rk.LambdaMART(**SMALL).fit(train, valid=valid)
    # As if the fold had been augmented, and not the whole: samples do not know other queries.
    alone, held_out = next(iter(TRAIN.folds(4, seed=1)))
    by_hand = rk.LambdaMART(**SMALL).fit(rk.augment(alone, 0.5, 4), valid=held_out)
    np.testing.assert_array_equal(model.predict(TEST), by_hand.predict(TEST))


def test_samples_that_share_rows_are_like_copies():
    copies = rk.RankingData(np.array(MORE.X), MORE.y, MORE.qid)
    shared = rk.LambdaMART(**SMALL).fit(MORE)
    np.testing.assert_array_equal(
        rk.LambdaMART(**SMALL).fit(copies).predict(TEST), shared.predict(TEST)
    )


SENTENCE = (
    r"set 'valid': it holds samples, such as '1~1' .*, and validation data is never augmented"
)


@every_ranker
@pytest.mark.parametrize(
    "valid", [MORE, (MORE.X, MORE.y, MORE.qid), {"valid": MORE, "other": VALID}]
)
def test_validation_data_is_never_augmented(case, valid):
    with pytest.raises(rk.DataError, match=SENTENCE + r".* \(valid\.originals, or rankinite"):
        case.new().fit(TRAIN, valid=valid)
    case.new().fit(TRAIN, valid=MORE.originals)
