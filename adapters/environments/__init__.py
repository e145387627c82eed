"""The benchmarks, one package each, and what they share: reading items, splits, options, text measures."""
