"""Files that somebody wrote, read with limits: one reader for each format, and one way to say what is wrong.

Whatever the file, a reader ends soon: with what the file holds, or with a `FormatError`.

inert.py       text and names as a terminal and a page may show them
refused.py     the error of all of them: `path:line: what is wrong; what was expected`
plain_file.py  a regular file's bytes and text, up to a size: no device, pipe or folder is read or waited for
yaml_file.py   YAML, typed or as texts, with the line of every key; no anchors, tags or merges
json_file.py   JSON: a whole file strictly; a line, of which there are many, within limits
csv_file.py    CSV as spreadsheets save it
text_lines.py  text lines of a file of any length, plain or gzipped
csv_stream.py  CSV of any length, a row at a time
parquet_file.py  a parquet file's rows, as far as its texts may expand
"""
