"""Checks across files and on the composed rows. Each finding names a file and a line.

checks.py           the list of all checks, and most of them
fit.py              a message, its writer, the job and the product must be consistent
safe_messaging.py   harmful language, substances and high places by name, amounts
likeness.py         messages that nearly repeat each other
held_out.py         a private split, checked together with the public content
checked.py          reads and checks a folder, and composes its rows
"""
