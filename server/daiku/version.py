"""The version of Daiku and of its wire contract; imports nothing, so that `initialize` is answered at once."""

__version__ = "0.1.0"
PROTOCOL = 1
"""Version of the wire contract. It rises when an old client could no longer speak with a new server."""
COMMANDS = (
    "daiku.newChat", "daiku.plan", "daiku.research", "daiku.generateCode", "daiku.runCommands",
    "daiku.explain", "daiku.fix", "daiku.writeTests", "daiku.document", "daiku.review", "daiku.commitMessage",
    "daiku.undo", "daiku.stop", "daiku.resume", "daiku.doctor",
)  # fmt: skip
"""Commands that `workspace/executeCommand` runs in the server; the client's own commands are not here."""
