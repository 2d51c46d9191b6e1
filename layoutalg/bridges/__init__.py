"""From one family to another: conversions, equality and composition across families."""
