"""lm-eval drives generation: a class task, live turns in rounds, and a layer that survives bad samples.

`task` is the benchmark's task, `messages_task` that of stand-alone messages; `metrics` is what lm-eval prints at once.
`layer` sits between lm-eval and a model, `api_models` sends requests over HTTP, `cache` stores replies, and `lifecycle`
checks a run's settings and reports at its end. lm_eval_tasks/README.md lists the lm-eval internals that they use.
"""
