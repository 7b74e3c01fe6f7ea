"""What is logged of a request: its decision, and where its VMs landed."""
