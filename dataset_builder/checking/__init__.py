"""What must hold across files and in the composed rows. Each finding names a file and a line.

checks.py           every check, and those of jobs, ratings, personas, helplines and prompts
fit.py              that a message, its writer, the job and the product can all be true at once
safe_messaging.py   words that no content holds: harmful language, substances and high places by name, amounts
likeness.py         messages that nearly repeat each other
telltales.py        what a policy could learn without reading the message
held_out.py         a private split, checked together with the public content
checked.py          a folder read and checked, with its rows
"""
