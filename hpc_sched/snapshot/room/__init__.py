"""What one VM requests of Placement, and the VMs that hypervisors of a snapshot take."""
