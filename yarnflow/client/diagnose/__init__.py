"""What ``yarnflow doctor`` and ``yarnflow logs`` find out, support bundles included.

Runs in the user's command and reads only; ``doctor`` on YARN starts one container and waits for its end.
Never mends anything, and never decides how its answers are shown.
"""
