"""Made worlds with hidden rules, and two simulated models that know them only by what a request says."""
