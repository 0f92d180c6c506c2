"""lm-eval drives generation: a class task, live turns in rounds, and a layer that one bad sample does not end.

`task` is the benchmark's and `messages_task` that of standalone messages; `metrics` is what lm-eval prints at once.
`layer` sits between lm-eval and a model, `api_models` sends requests over HTTP, `cache` keeps replies, and `lifecycle`
checks a run's settings and reports at its end. lm_eval_tasks/README.md lists the lm-eval internals that they use.
"""
