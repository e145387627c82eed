"""The public door: what a notebook, a script or a product builds on. `import skillopt_es` has all of it."""
