"""Between Nova's objects and the algorithms.

In nova-scheduler this package, ``filters`` and ``weighers`` are all that imports Nova. A call goes
from ``filter_all`` or ``weigh_objects`` to :mod:`served_requests`, which has a session for each
RequestSpec (:mod:`session`; active or shadow), and there through the folders ``read``, ``decide``,
``claim``, ``answer`` and ``record``, in this order. ``io`` has what several of them read from.
"""
