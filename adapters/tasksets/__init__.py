"""Tasks that lie in the files of other tools, read into items of the environment `tasks`."""
