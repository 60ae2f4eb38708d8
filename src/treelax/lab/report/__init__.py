"""Reports of runs: one HTML file that needs nothing else.

`run_records.py` reads the folders of runs, `examples.py` asks models about examples, `sections.py` and
`gallery.py` say what is shown, `page.py` puts it into ``templates/report.html``, where Jinja escapes it.
"""

from treelax.lab.report.examples import Result, Selection, ask
from treelax.lab.report.gallery import Gallery
from treelax.lab.report.page import Report, is_report
from treelax.lab.report.run_records import RunRecord, read_run

__all__ = ["Gallery", "Report", "Result", "RunRecord", "Selection", "ask", "is_report", "read_run"]
