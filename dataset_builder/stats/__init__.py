"""What is counted: the figures of `helmbench stats`, of `stats --giveaway` and of `stats --cost`.

coverage.py        what the content covers, beside the coverage plan; the ceilings of what words may give away
giveaway.py        what gives polarity away without understanding
left_out.py        classifiers that are asked about a scenario they weren't trained on
surface.py         what a rule can measure on one message
real_messages.py   how our messages read beside real ones
alarm_words.py     the word list of the `keyword` policy
hands.py           who wrote the messages: voices, countries, languages
cost.py            samples, requests, tokens and money of one run of the benchmark
cost_messages.py   the same of the messages that stand alone, and of a judge's reading of the replies
cost_of_all.py     both together
"""
