"""Find out whether the judge of a package tells its golden report from attacks on it."""
