"""Turn Markdown into statements, tables and quotations, and statements into what could be otherwise."""
