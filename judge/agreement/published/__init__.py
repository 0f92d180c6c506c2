"""Labels that people published: `labeled_set` is what every set becomes, `sets` reads six published sets, `mapping` a
set of your own, `files` their rows.
"""
