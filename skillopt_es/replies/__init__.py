"""What models answer, read into typed values."""
