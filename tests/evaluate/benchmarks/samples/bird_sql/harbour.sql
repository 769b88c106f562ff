CREATE TABLE ship (name TEXT, length REAL);
INSERT INTO ship VALUES ('Ada', 90.0),('Eve', 120.5);
