"""What the three controllers of endpoints share: addresses, ports, membership, subsets, slices, trigger times."""
