"""The report of a run: one HTML file that opens offline."""

from rankinite.report.page import report_html

__all__ = ["report_html"]
