"""The page that shows what labeling found."""

from fspll.labeling.report.page import write_report

__all__ = ["write_report"]
