"""Reports: one self-contained HTML file for a run of the search.

:func:`write_report` reads the run's database, which may still be written by a search.
"""

from cake.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
