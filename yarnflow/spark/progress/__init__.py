"""What streaming queries say of themselves: batches, failures, and when they had nothing to do.

Runs in the driver, in threads of Spark's listeners; what there is goes out with the driver's reports.  It
decides nothing, and asks Spark's logs only for where an idle query is.
"""
