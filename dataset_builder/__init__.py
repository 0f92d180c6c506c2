"""What is asked: authored content → a checked, hashed dataset (`helmbench check`, `build`, `stats`, `book`, `review`).

Left to right, each room imports only what stands before it:

    content/      the authored files, and what a judge is asked (content/README.md says how they are written)
    schema.py     the shapes of rows, checks, criteria and the manifest: a leaf
    prompts.py    the templates that judges are asked with, and which fields each has
    release.py    a built dataset, read back with every hash checked
    reading/      authored files → Content, with line numbers
    composing/    Content → rows, spread over the tiers
    checking/     what must hold across files and in the rows; the private split
    stats/        what the content covers, and what a run of it costs
    writing/      rows → parquet, card, MANIFEST.json
    book/         everything that is asked on one page, and what its readers send back
    corpora/      messages of your own → a clean, hashed corpus
    publishing/   one commit and its tag on the Hub, or every reason why not

`judge`, the tasks and the scripts read releases through `schema` and `release`.
"""
