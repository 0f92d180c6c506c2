"""Language models as judges, and the one way to ask them.

- `questions`: a case → a request, the rubric first; `category_question`: a corpus's message → the same.
- `answers`: what came back → a label with quotes, or why there is none.
- `batch`: the files between both, any engine's; `engine`: the live one; `budget`: what asking costs, and a hard cap.
- `asking`: asks what is missing and collects the answers, for runs, calibration and labelling.
- `reader`: a model as `judge.verdicts` asks for one.
- `errors`: why nothing more can be asked.
"""
