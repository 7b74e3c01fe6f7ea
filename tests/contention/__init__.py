"""Several nova-scheduler processes that compete for the same hosts, and what they leave behind.

Schedulers are Nova's own, Placement is a real one in a process of its own, and all use databases on
MariaDB or PostgreSQL. The parent process stands in for nova-api and nova-conductor: it writes what
they write, and deletes the servers after each round. What happened is read from Placement's
database and from a log of the writes that Placement was sent, not from the plugin.
"""
