"""A real Kafka on one machine, for trying yarnflow and for its tests; `scripts/kafka` is its command.

One process (KRaft: broker and controller), with everything it writes below one folder.  Only the standard
library is used, so that it runs before anything is installed.
"""
