"""Sets of people's labels that others published, each read from a checkout of its own repository, and one's own.

Nothing of them is kept here: their licences, and the people in them, leave the texts where they are.

- `types`: what every set comes down to. `files`: rows as they lie in a repository, counted from 0.
- `bhh`: "Between Help and Harm", categories of messages and ratings of replies. `xstest`: refusals.
- `psychosis`: replies to delusions. `vera_mh`: conversations, in five dimensions. `counselbench`:
  ratings of answers to a forum's questions.
- `own`: any other set, by a mapping file. `sets`: a set by its name. `sources`: where it lies.
"""
