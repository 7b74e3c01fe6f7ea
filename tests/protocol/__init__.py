"""The protocol of claims without a cloud: Placement, Nova and the network in memory."""
