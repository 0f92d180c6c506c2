"""The figures of `helmbench stats`.

coverage.py   what the content covers, next to the coverage plan; who wrote it
surface.py    what a rule can measure on one message; ours next to real ones
giveaway.py   what reveals a message's polarity without understanding (`--giveaway`)
cost.py       samples, requests, tokens and money of one run (`--cost`)
"""
