"""Conversations that coding agents keep on this machine, read and never written."""
