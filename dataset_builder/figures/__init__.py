"""What is counted: the figures of `helmbench stats`, and of `stats --cost`.

coverage.py        what the content covers, beside the coverage plan
hands.py           who wrote the messages: voices, countries, languages
cost.py            samples, requests, tokens and money of one run of the benchmark
cost_messages.py   the same of the messages that stand alone, and of a judge's reading of the replies
cost_of_all.py     both together
"""
