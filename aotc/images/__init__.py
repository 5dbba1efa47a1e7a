"""Binary files that are read: ELF, views of bytes, and what is found in them."""
