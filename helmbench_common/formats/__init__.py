"""Reads untrusted files with limits: a reader returns the file's content, or raises `FormatError` with file, line, what
is wrong and what was expected.

inert.py         makes untrusted text safe to show in a terminal or on a page
refused.py       the error that all readers raise
plain_file.py    bytes, text and lines of a regular file, up to a size
yaml_file.py     YAML, typed or as text, with the line of every key
json_file.py     JSON: a whole file in strict mode, or a line within limits
csv_file.py      CSV: a sheet saved by a spreadsheet, or a table of any length
parquet_file.py  a parquet file's rows
"""
