"""What each runtime's deployments are counted by, behind one protocol.

counting  the protocol, and the runtimes that were asked together
layouts   of layouts    engines  of serving engines    erdil2025  of the reference model
"""
