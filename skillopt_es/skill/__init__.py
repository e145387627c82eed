"""Pure algebra over skill texts: protected regions, edits, and the textual learning rate."""
