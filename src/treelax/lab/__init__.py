"""The laboratory: ListOps, the tables of the paper, studies of trees and reports.

Importing it adds its task to those of `treelax.apps.tasks`.
"""

from treelax.apps.tasks import TASKS

TASKS.setdefault("listops", "treelax.lab.listops.task:LISTOPS")
