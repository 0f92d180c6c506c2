"""HTTP for the runner and the judge: `client`, `retry`, `bodies`, `keys`, `addresses`."""
