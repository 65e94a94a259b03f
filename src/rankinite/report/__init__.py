"""Reports as HTML pages that open offline: of a run, and of a sweep."""

from rankinite.report.page import report_html

__all__ = ["report_html"]
