"""What Nova requests of Placement for a VM, and the candidates for it in each host's tree."""
