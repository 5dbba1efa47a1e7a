"""Host module → LLVM IR text → object → executable or library."""
