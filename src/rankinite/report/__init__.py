"""The reports of runs and sweeps: one HTML file each that opens offline."""

from rankinite.report.page import report_html, write_report
from rankinite.report.sweep_page import write_sweep_report

__all__ = ["report_html", "write_report", "write_sweep_report"]
