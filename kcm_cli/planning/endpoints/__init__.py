"""Rules of the three endpoint controllers: addresses, ports, membership, subsets, slices, trigger times."""
