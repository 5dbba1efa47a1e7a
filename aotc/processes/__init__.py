"""aotc's own processes: who supervises the command, and who does what may crash, hang or grow.

Two rules hold everywhere. A process with threads is never forked: a child would wait forever for
locks that its parent's other threads hold, or keep their pipes open. And what reads bytes of
others, or may crash (MLIR's readers, translation to LLVM IR, front ends), runs in a child whose
end is an error and no crash.

* `supervisor`: the command's first process. It forks the one that works, and waits for signals.
* `fork_server`: a process without threads that forks a child for each task.
* `record`: what a killed process leaves to be removed, and what it was doing.
* `garbage`: how often Python looks for cyclic garbage during a build.
"""
