"""The large form of the build: the same steps over shards, on datatrove's executors (`helmbench corpus --shards`).

What decides anything is the small form's own code: reading, cleaning, signatures, bands, the rule of near-copies,
strata and writing. Here stands only how the work is cut, so that the corpus is the same, byte for byte:

    folder.py      the folder of shards, and finding a message in it
    cleaning.py    sources → shards → cleaned shards
    copies.py      exact copies and near-copies across shards
    assembling.py  what stays of each shard, and the corpus
    steps.py       these as datatrove's pipeline steps, in stages that any of its executors runs
    local.py       the stages on this machine

A near-copy is a copy of what stands before it and stays, which can't be told from a shard. But texts can only bear on
each other if they share a band and their signatures are alike enough to be compared at all: so the texts fall into
families, between which there is no such pair, and the small form's rule, run over each family in the order of reading,
gives what it gives over all of them.
"""
