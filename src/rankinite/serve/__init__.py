"""Scoring over HTTP: several models, two ways to ask, and files that may be replaced meanwhile.

A request goes through ``service.py`` (routes, limits, answers to errors), which hands its body to
``queries.py`` (our own JSON) or ``tensors.py`` (the Open Inference Protocol). Both make a `Batch`
of it (``batches.py``), and a thread of ``pool.py`` scores that. ``repository.py`` holds the models
and watches their files; ``server.py`` runs all this with uvicorn. Nothing outside imports this
package but the command, because it needs the extra ``serve``.
"""
