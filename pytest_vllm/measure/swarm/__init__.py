"""A load that several processes send, on one machine or several, spread and started by Locust.

The measuring stays ours: each worker sends with a `Sender` of its own, and its records come here one by one.
Locust is imported by the processes of `master` and `worker` alone, never by pytest's.
"""
