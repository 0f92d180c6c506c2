"""Everything that is asked on one page, to read, comment and sign; and what its readers send back.

page.py           Content → the page, over templates/
words.py          severities, checks and codes in plain words
chapters.py       the rating protocols and the taxonomy as chapters
readable.py       what a reader can write about
review.py         a reader's download, checked against the content
review_patch.py   a review → a patch of review lines and notes
"""
