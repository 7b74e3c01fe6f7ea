"""The published algorithms: Listing 1 (Dudina2013) and the build plan (Gupta2012)."""

from hpc_sched.core.classic.listing_1 import listing1

__all__ = ["listing1"]
