"""The plan of least Hop-Byte with the numbers of VMs that links permit."""
