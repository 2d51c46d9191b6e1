"""Every public operation of the layout families, each with a judge that computes its defining sentence from tables.

``record`` holds the registry and the outcomes, ``tables`` the arithmetic of the judges; every other module draws the
layouts of a family and judges its operations. ``benchmarks/campaign_operations.py`` runs them.
"""
