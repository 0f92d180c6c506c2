"""Labels that people published: `sets` reads six published sets, `mapping` a set of your own, both into `labeled_set`."""
