"""The page: runs of a folder watched, compared, started and steered in a browser, over what the log says."""
