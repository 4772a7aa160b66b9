"""Small PyFlink programs and what Apache PyFlink 2.3 prints for them; yarnflow has to print the same.

``programs/`` holds programs as any user of PyFlink writes them (they import ``pyflink``, nothing of ours);
``expected/`` holds what Apache PyFlink printed: ``scripts/record-pyflink`` records it, nobody writes it.

What surprises in Apache PyFlink, each with a program that shows it where one can:

Types
    Within a chain of operators the very objects travel: a declared type converts and checks nothing before
    an exchange, a Java operator or a sink (``row_names_in_chains``). There coders take no other class than
    their own: only ``Row`` for ROW, ``tuple`` for TUPLE, ``list`` for LIST (``types_coerced``). None may be
    a field of a row, a value of a map, an element of an array of objects (``types_nulls``); in TUPLE and
    LIST, and as a whole element of a stream, it ends the job. Timestamps keep milliseconds
    (``types_print_times``). CHAR, integers of more than 64 bits, LIST in ``from_collection``, and INSTANT
    or SQL_TIMESTAMP in ``execute_and_collect`` do not work.
Printing
    Untyped values by Python's ``str()``; rows as ``+I[a,None]`` by ``str()`` of each field; all others by
    Java: ``true``, ``1.0E10``, ``(a,1.0)``, ``{k=1}``, a row inside a tuple ``+I[x, null]``, arrays by their
    address (``types_print_*``).
Keys
    An untyped key is its pickled bytes: 1, 1.0 and True are three keys (``keyed_by_untyped_keys``).
Time
    Without a timestamp ``ctx.timestamp()`` is -2**63, as the first watermark is (``process_function``).
    ``with_idleness`` forgets the timestamp assigner given before it (``watermarks_at_the_end``).  All timers
    that one watermark passes are handed over before the first one runs (``timers_due_together``).
State
    ``MapState.put_all`` takes pairs, not a dict (``state_map``).
Functions
    ``AllWindowFunction`` and ``ProcessAllWindowFunction`` are in ``pyflink.datastream.functions`` only.  An
    ``OutputTag`` with a type that ``get_side_output`` used cannot be given to a later operator
    (``window_allowed_lateness``).  None as result of a CoMapFunction is left out (``connect_co_map``).
"""
