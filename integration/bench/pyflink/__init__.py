"""``scripts/bench pyflink``: PyFlink programs on Apache PyFlink and on yarnflow, and their like elsewhere.

The programs in ``programs/`` are plain PyFlink; the very same file runs on both.  All read text files of
``key,time,amount``, two files for two subtasks, and print what comes of key 0 alone, so that the sink is
no part of what is measured.

Records per second are those of the steady part: each engine runs a program on a small and on a large
input, and the records that the second has more are divided by the seconds that it took longer.  So the
starts of JVMs, Python workers and jobs count for nothing in this figure; they are in *first result*, from
the start of the command to the first line it prints, with the small input.  Memory is the largest sum
of proportional set sizes of all processes of the command, with the large input.
"""
