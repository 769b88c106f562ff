CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author TEXT, year INTEGER);
INSERT INTO book VALUES (1,'One','Ann',1940),(2,'Two','Ann',1960),(3,'Three','Bo',1970);
