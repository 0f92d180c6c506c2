"""The figures of `helmbench stats`.

coverage.py   what the content covers, compared to the coverage plan; who wrote it
surface.py    surface features of a message; ours compared to real ones
giveaway.py   what reveals a message's polarity without understanding it (`--giveaway`)
cost.py       samples, requests, tokens and money of one run (`--cost`)
"""
