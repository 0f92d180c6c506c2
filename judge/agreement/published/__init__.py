"""Labels that people published. `sets` reads six published sets, `labeled_set` one of yours."""
