"""The golden set: what the plugin and its commands answer, recorded case by case.

Thousands of drawn requests, snapshots and simulations with the hosts, texts and numbers that came
of them. A change that must not change an answer is compared with the record::

    python -m tests.golden --compare           # every case; prints the first that differ
    python -m tests.golden --record            # writes the record anew
    python -m tests.golden --compare fits      # one part: requests, fits or simulated

Cases are drawn from their numbers alone: neither the hash seed nor the time, the place of
temporary files or the other cases change one. ``requests`` needs Nova, the others do not.
"""
