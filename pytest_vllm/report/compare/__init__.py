"""What a run leaves behind to be compared (its extract), and what differs between two of them.

Pure but for `kept`, which reads and writes the files.
"""
