"""aotc's own processes: supervision of the command, and isolation of work that may crash or hang.

Two rules hold everywhere. A process with threads is never forked: the child could deadlock on locks
that its parent's other threads hold, or keep their pipes open. Code that reads untrusted bytes or
may crash (MLIR's readers, translation to LLVM IR, front ends) runs in a child process, whose crash
becomes an error.

* `supervisor`: the command's first process. It forks the working process, and waits for signals.
* `fork_server`: a process without threads that forks a child for each task.
* `record`: a killed process's unfinished files, and its last step.
* `memory`: available and used memory, the size of the stack, and how often garbage is collected.
"""
