"""Runs for other tools: traces for OpenTelemetry, experiments for MLflow, tables for Datasette."""
