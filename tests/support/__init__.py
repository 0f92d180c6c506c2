"""What several test modules share: contents, runs, submissions, servers, hostile input."""
