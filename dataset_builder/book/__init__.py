"""All content on one page, to read, comment on and sign; and the reviews that readers send back.

page.py     Content → the page, over templates/
words.py    severities, checks and codes in plain words
review.py   a reader's review, checked against the content → a patch of review lines and notes
"""
