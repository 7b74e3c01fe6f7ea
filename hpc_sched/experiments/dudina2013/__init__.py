"""Dudina2013, section 4: NPB on 16 VMs, placed at random and under few leaf switches."""
