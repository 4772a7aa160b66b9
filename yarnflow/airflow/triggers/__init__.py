"""What Airflow's triggerer runs for deferred tasks and watched assets.

Runs in its event loop with many others, so it blocks nothing.  Never decides what an event means to a task.
"""
