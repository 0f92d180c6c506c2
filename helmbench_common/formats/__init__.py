"""Files from other people, read with limits: a reader returns what the file holds, or raises `FormatError` with file,
line, what is wrong and what was expected.

inert.py         foreign text and names as a terminal or a page may show them
refused.py       the error of all readers
plain_file.py    bytes, text and lines of a regular file, up to a size
yaml_file.py     YAML, typed or as texts, with the line of every key
json_file.py     JSON: a whole file strictly, a line within limits
csv_file.py      CSV: a sheet as spreadsheets save it, a table of any length
parquet_file.py  a parquet file's rows
"""
