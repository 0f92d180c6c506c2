"""Language models as judges, and the one way to ask them.

- `questions`: a case, or a message whose category is asked → a request.
- `answers`: a response → a label with quotes, or why there is none.
- `batch`: the request and reply files, for any engine; `engine`: the live one; `budget`: cost estimates and a hard cap.
- `asking`: asks what is missing and collects the answers, for runs, calibration and labeling.
- `reader`: adapts a model to the judge interface of `judge.verdicts`.
- `errors`: why asking stopped.
"""
