"""Manifest → generated text: the harness's table. Each generator returns (file name, text)."""
