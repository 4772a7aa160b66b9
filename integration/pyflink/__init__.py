"""Small PyFlink programs and what Apache PyFlink 2.3 prints for them; yarnflow has to print the same.

``programs/`` holds programs as any user of PyFlink writes them (they import ``pyflink``, nothing of ours);
``expected/`` holds what Apache PyFlink printed: ``scripts/record-pyflink`` records it, nobody writes it.
"""
