ARCH: str
