"""The third phase of a request: its plan is claimed in Placement, ahead of Nova's claims.

What is claimed is released, all by :meth:`GangClaim.release`,

* by the thread of the request, where no plan holds in the end or an exception ends the claim
  (``gang_claiming``), and where a filter refuses the request or fails (``active_session``);
* by a thread of its own, once the request is over (``claim_followup``).

Where Nova places a VM elsewhere, :meth:`GangClaim.note_placed` takes the claimed place from it.
Nothing else releases: a fence claims one VM, and what is planned again replaces the claim.
"""
