"""The third phase of a request: its plan is claimed in Placement, ahead of Nova's claims.

What is claimed is released, all by :meth:`GangClaim.release`,

* by the thread of the request, where no plan holds in the end or an exception ends the claim
  (``gang_claiming``), and where a filter refuses the request, or fails while a new VM has a
  guarantee (``active_session``);
* by a thread of its own, once the request is over (``claim_followup``): its thread serves another
  one, Nova has dropped the RequestSpec or released its own claims, or has not called for long.

What a scheduler holds that is killed, or whose worker ends by SIGHUP, the other ones release once
the request is proved dead (``abandoned_claims``); operators list and release it by a command
(``unused_claims``). Nothing of this process runs at the end of a worker: it exits by ``os._exit``
when its requests are over.

A claim is allocations written to Placement, as Nova's scheduler writes them, not a claim of
nova-compute's resource tracker. *Held* is what is claimed ahead of Nova, *placed* what Nova has
claimed.

Where Nova places a VM elsewhere, :meth:`GangClaim.note_placed` takes the claimed place from it.
Nothing else releases: a fence claims one VM, and what is planned again replaces the claim.
"""
