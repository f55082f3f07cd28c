"""The pure logic: functions without side effects; no I/O library is imported, not even indirectly."""
