"""Calibrate the judge of a package: good reports above shallow ones, attacks below all of them."""
