"""Labels that people published. `sets` reads six published sets and `mapping` one of yours, all as `labeled_set`."""
