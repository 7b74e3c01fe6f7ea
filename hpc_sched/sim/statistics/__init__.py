"""What runs with several seeds show: means, confidence intervals, which policy is the best."""
