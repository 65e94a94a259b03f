"""Reports as HTML pages that open offline: of a run, and of a sweep."""

from rankinite.report.page import report_html, write_report
from rankinite.report.sweep_page import write_sweep_report

__all__ = ["report_html", "write_report", "write_sweep_report"]
