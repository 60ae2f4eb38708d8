"""Reports of runs: one HTML file that needs nothing else.

=================  ===============================================================================
`markup.py`        HTML that is escaped by construction
`runs.py`          what the folder of a run says: settings, metrics, result, and what is missing
`overview.py`      the runs in a table, and what is missing
`settings.py`      settings, those that differ first
`training.py`      curves over training
`results.py`       figures of the test set, beside the paper's
`selection.py`     which examples the gallery shows; `examples.py` asks the models about them
`gallery.py`       examples with their trees; `trees.py` draws them; `filters.py` is the form above
`page.py`          the whole page; `static/` has its style and its script
=================  ===============================================================================
"""

from treelax.report.examples import Said, ask
from treelax.report.page import MARK, Report, is_report
from treelax.report.runs import RunRecord, read_run
from treelax.report.selection import Selection

__all__ = ["MARK", "Report", "RunRecord", "Said", "Selection", "ask", "is_report", "read_run"]
