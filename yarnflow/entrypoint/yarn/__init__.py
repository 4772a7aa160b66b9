"""What runs in containers of YARN: the master's supervisor, the janitor, TaskManagers, a program's main.

Never decides about jobs, nor how many TaskManagers there should be: the JobManager does.
"""
