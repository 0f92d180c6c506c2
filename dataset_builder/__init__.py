"""What is asked: authored content → a checked, hashed dataset (`helmbench check`, `build`, `stats`, `book`, `review`).

Each package imports only from those above it:

    content/      the authored files and the judge's questions (content/README.md describes the format)
    schema.py     the shapes of rows, checks, criteria and the manifest: a leaf
    prompts.py    the prompt templates for judges, and the fields of each
    release.py    a built dataset, read back with every hash checked
    reading/      authored files → Content, with line numbers
    composing/    Content → rows, spread over the tiers
    checking/     checks across files and on the rows; the private split
    stats/        what the content covers, and what a run costs
    writing/      rows → parquet, card, MANIFEST.json
    book/         all content on one page, and the reviews its readers send back
    corpora/      your own messages → a clean, hashed corpus
    publishing/   one tagged commit on the Hub, or every reason why not

`judge`, the tasks and the scripts read releases through `schema` and `release`.
"""
