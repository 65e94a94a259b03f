"""The report in a real browser: on a phone nothing is wider than the screen."""

from rankinite.report import report_html
from tests.report.cases import WINNERS, fake_recipe, fake_results
from tests.report.pages import assert_fits_screens


def test_no_page_is_wider_than_its_screen(tmp_path):
    results = fake_results(
        fake_recipe({**WINNERS, "a-model-with-an-unusually-long-name-of-one-word": "MART"})
    )
    assert_fits_screens(report_html(results), tmp_path)
