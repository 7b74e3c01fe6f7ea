"""Places that are held for the VMs of a group that follow; knows Placement and nothing of groups.

All holds of a cloud are allocations of one resource provider of hpc_sched, the *provider of the
holds*, of custom resource classes only: its inventories are larger than whatever is held, so that
Placement refuses none. One consumer more, the *turn*, is in every transaction with the generation
that was read: which holds there are changes only where nothing else has changed it since. So one
call reads all of them at one moment, and one call writes, whatever the number of hosts.

That a hold is on a host is an amount, too: Nova sees no provider of the kind of a host, and
Placement no tree, which would make all its answers to Nova slower.

:mod:`store` is what the phases of a request use.
"""
