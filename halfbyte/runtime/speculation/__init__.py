"""Speculation: tokens that may come next are computed along, so that a step can bring more than one."""
