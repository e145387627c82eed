"""A search that learns more from the same calls: candidates meet training items before the gate, edits earn credit."""
