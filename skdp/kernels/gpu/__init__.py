"""The kernels for CuPy arrays; imported when a kernel first meets one."""
